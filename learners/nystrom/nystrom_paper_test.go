package nystrom

import (
	"context"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/sketch"
)

// Carratino (2020) compares FALKON with iterations that share its centres but not its
// preconditioner. It says that they suffer from the conditioning of (4.5), which can be
// arbitrarily bad even where K_MM is invertible. In the coordinates of NYTRO, which
// whiten K_MM, the condition number is (κ² + λ)/λ at most. Conjugate gradients need
// about the root of the number of iterations of gradient descent.
//
// See section 4.4 and figure 4.1 there.
func TestConditioning(t *testing.T) {
	kerneltest.Claim(t)
	const iterations, lambda = 20, 1e-5
	train, err := data.Generate[float64](data.SUSYLike{Seed: 1}, 0, 1500)
	if err != nil {
		t.Fatal(err)
	}
	k := kerneltest.Gaussian(4)
	run := func(s Solver, c Coordinates) float64 {
		objective := 0.0
		p := Params{Kernel: k, Lambda: lambda, Centers: 150, Solver: s, Coordinates: c, Iterations: iterations}
		if _, err := p.Fit(context.Background(), train, learners.Options{Seed: 1, Progress: func(p learners.Progress) error {
			objective = p.Objective
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		return objective
	}
	least := run(Direct, Whitened)
	excess := func(s Solver, c Coordinates) float64 { return run(s, c) - least }
	cg, plainCG := excess(CG, Whitened), excess(CG, Plain)
	gradient, plainGradient := excess(Gradient, Whitened), excess(Gradient, Plain)
	t.Logf("after %d iterations above the least objective %.4f: CG %.2g, plain %.2g; gradient %.2g, plain %.2g",
		iterations, least, cg, plainCG, gradient, plainGradient)
	if !(cg < gradient && plainCG < plainGradient && gradient < plainGradient && cg < plainCG) {
		t.Error("not in the order of their condition numbers")
	}
	if cg < -1e-9 || plainCG < -1e-9 {
		t.Error("the direct solution is not the least")
	}
}

// Direct methods for (4.5) form H and factor it. Its condition number is that of K
// squared. With a smooth kernel no factor exists, or no digit is left, where the
// whitened problem still has five. The oracle has 77 digits.
//
// See Carratino (2020), section 4.1.1, "Direct methods for solving (4.5)".
func TestNormalEquations(t *testing.T) {
	kerneltest.Claim(t)
	const n, m = 60, 24
	data, test := learnerstest.Data(t, n, 1, 3, false), learnerstest.Data(t, 20, 1, 4, false)
	x := data.Rows().(*kernel.Points[float64])
	idx := learnerstest.Fixed{}
	for i := range m {
		idx = append(idx, 2*i)
	}
	centers := x.Select(idx).(*kernel.Points[float64])
	for _, c := range []struct{ scale, lambda, tolerance float64 }{
		{2, 1e-4, 1e-10}, {2, 1e-10, 1e-9}, {10, 1e-6, 1e-6}, {10, 1e-10, 1e-4},
	} {
		k := kerneltest.Gaussian(c.scale)
		want := exactPrediction(x, centers, test.Rows().(*kernel.Points[float64]), data.Targets(), c.scale, c.lambda)
		p := Params{Kernel: k, Lambda: c.lambda, Sampler: idx}
		whitened := distance(predict(t, fit(t, p, data), test), want)
		if !(whitened < c.tolerance) {
			t.Errorf("ℓ = %v, λ = %g: off by %g", c.scale, c.lambda, whitened)
		}
		h, ok := normalEquations(t, k, data, centers, test, c.lambda)
		t.Logf("ℓ = %v, λ = %g: whitened off by %.1e; H has a factor: %v, off by %.1e", c.scale, c.lambda, whitened, ok, distance(h, want))
		if ok && c.scale > 2 && distance(h, want) < 10*whitened {
			t.Errorf("ℓ = %v, λ = %g: H itself does as well", c.scale, c.lambda)
		}
	}
}

// normalEquations returns the predictions from the Cholesky factor of H, if it exists.
func normalEquations(t *testing.T, k kernel.Kernel, data *data.Memory, centers kernel.Rows, test kernel.Source, lambda float64) ([]float64, bool) {
	t.Helper()
	n, m := data.Len(), centers.Len()
	knm, err := kernel.Matrix(k, data.Rows(), centers)
	if err != nil {
		t.Fatal(err)
	}
	kmm, err := kernel.Gramian(k, centers)
	if err != nil {
		t.Fatal(err)
	}
	a, h := mat.NewDense(n, m, knm), mat.NewSymDense(m, kmm)
	h.ScaleSym(lambda*float64(n), h)
	h.SymRankK(h, 1, a.T())
	var chol mat.Cholesky
	var z, c mat.VecDense
	z.MulVec(a.T(), mat.NewVecDense(n, data.Targets()))
	if !chol.Factorize(h) || chol.SolveVecTo(&c, &z) != nil && c.IsEmpty() {
		return make([]float64, test.Len()), false
	}
	e, err := learners.NewExpansion(k, centers, c.RawVector().Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	return predict(t, e, test), true
}

// The estimator on M ≪ n centres is about as good as that on all rows and tends to it
// as M grows (Carratino 2020, §4.1, and Rudi, Camoriano and Rosasco 2015). The data are
// real, the compressive strength of concrete.
func TestCentersOnConcrete(t *testing.T) {
	kerneltest.Claim(t)
	path := filepath.Join(datatest.Folder(t), "uci", "concrete.data.csv.gz")
	ctx := context.Background()
	table, err := dataset.Open(ctx, dataset.Options{Target: []string{"9"}}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	parts, err := data.Split(table.Len(), nil, 1, 0.8, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := table.FitEncoding(ctx, parts[0], data.EncodingOptions{Task: data.Regression})
	if err != nil {
		t.Fatal(err)
	}
	all, err := table.Encode(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	train, err := data.Subset(all, parts[0])
	if err != nil {
		t.Fatal(err)
	}
	test, err := data.Subset(all, parts[1])
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.NewMatern52(3)
	if err != nil {
		t.Fatal(err)
	}
	y, err := data.Targets(ctx, test)
	if err != nil {
		t.Fatal(err)
	}
	rmse := func(p learners.Estimator) float64 {
		m, err := p.Fit(ctx, train, learners.Options{Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		return learners.RMSE(predict(t, m, test), y, 1)
	}
	const lambda = 1e-5
	exact := rmse(krr.Params{Kernel: k, Lambda: lambda})
	few, many, full := rmse(Params{Kernel: k, Lambda: lambda, Centers: 40}), rmse(Params{Kernel: k, Lambda: lambda, Centers: 400}),
		rmse(Params{Kernel: k, Lambda: lambda, Centers: train.Len()})
	bless := rmse(Params{Kernel: k, Lambda: lambda, Sampler: sketch.BLESS{}, SamplerLambda: 1e-3})
	t.Logf("RMSE in standard deviations: exact %.4f; M = 40 %.4f, 400 %.4f, %d %.4f; BLESS %.4f", exact, few, many, train.Len(), full, bless)
	if exact > 0.4 {
		t.Errorf("exact ridge regression has RMSE %v; Gaussian processes have about 0.3", exact)
	}
	if d := full/exact - 1; d > 1e-6 || d < -1e-6 {
		t.Errorf("with all rows as centres the RMSE is %v, that of exact ridge regression %v", full, exact)
	}
	if few < many || many > 1.15*exact || bless > 1.25*exact {
		t.Errorf("RMSE %v with 40 centres, %v with 400, %v of BLESS, %v exactly", few, many, bless, exact)
	}
}
