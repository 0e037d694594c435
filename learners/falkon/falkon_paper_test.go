package falkon

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/sketch"
)

// These tests check the claims of chapter 4 and §5.3 of Carratino (2020), one test
// each, and confirm the errata.

// prepared returns the system of p for the given centres, or for p's own if c is nil.
func prepared(t testing.TB, p Params, train data.Source, c *learners.Centers) *fit {
	t.Helper()
	if c == nil {
		c = must(learners.ChooseCenters(background, p.Kernel, train, learners.Sampling{Sampler: p.Sampler, Lambda: p.SamplerLambda, Most: p.Centers}, 0))
	}
	f := must(newFit(background, p, train, learners.Options{Workers: 2}))
	if err := f.center(background, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

// dense returns W, by its products with the columns of I.
func (s *system) dense(t testing.TB) *mat.SymDense {
	t.Helper()
	q := s.rank()
	eye, w := make([]float64, q*q), make([]float64, q*q)
	for i := range q {
		eye[i*q+i] = 1
	}
	if err := s.apply(background, w, eye, q); err != nil {
		t.Fatal(err)
	}
	return symmetric(mat.NewDense(q, q, w))
}

// conditionOf returns λ_max/λ_min, and both values.
func conditionOf(w *mat.SymDense) (cond, least, most float64) {
	var eig mat.EigenSym
	if !eig.Factorize(w, false) {
		panic("no convergence")
	}
	v := eig.Values(nil)
	return v[len(v)-1] / v[0], v[0], v[len(v)-1]
}

// preconditionerB returns B, M×q, on all used centres.
func (f *fit) preconditionerB() *mat.Dense {
	q, u := f.sys.rank(), f.points.Len()
	v := make([]float64, q*q)
	for i := range q {
		v[i*q+i] = 1 / math.Sqrt(float64(f.sys.n))
	}
	f.sys.pre.up(v, q)
	b := make([]float64, u*q)
	f.sys.pre.factor.coefficients(b, v, q)
	return mat.NewDense(u, q, b)
}

// (4.7), (4.10) and Definition 4 say that (BBᵀ)⁻¹ = K_MM diag(w) K_MM + λnK_MM.
func TestPaperPreconditioner(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 1)
	train := regression(rng, 300, 3, 1)
	k := must(kernel.NewMatern32(1))
	for _, f := range factorizations {
		c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: 30}, 0))
		for j := range c.Weights {
			c.Weights[j] *= rng.ExpFloat64()
		}
		s := prepared(t, Params{Kernel: k, Lambda: 1e-3, Factorization: f}, train, c)
		b := s.preconditionerB()
		var bb, inverse mat.Dense
		bb.Mul(b, b.T())
		if err := inverse.Inverse(&bb); err != nil {
			t.Logf("factor %q: %v", f, err)
		}
		weights := map[int]float64{}
		for j, i := range c.Indices {
			weights[i] = c.Weights[j]
		}
		// The pivots are in another order, so this is K_CP for all centres C and used
		// ones P.
		kcp, kpp := kerneltest.Gram(k, c.Points, s.points), kerneltest.Gram(k, s.points, s.points)
		var wk, want mat.Dense
		wk.Apply(func(i, _ int, v float64) float64 { return c.Weights[i] * v }, kcp)
		want.Mul(kcp.T(), &wk)
		kpp.Scale(1e-3*300, kpp)
		want.Add(&want, kpp)
		requireNear(t, fmt.Sprintf("factor %q", f), inverse.RawMatrix().Data, want.RawMatrix().Data, 1e-8)
	}
}

// Definition 4 as printed has the weights inside, with QTᵀTQᵀ = DKD, RᵀR = TTᵀ/M + λI
// and B = n^−½ DQT⁻¹R⁻¹ with D_jj = √(w_j M/n). Our form has them in R and gives the
// same BBᵀ.
func TestPaperWeightsInsideOrOutside(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 2)
	train := regression(rng, 200, 3, 1)
	k := must(kernel.NewMatern32(1))
	s := weighted(t, rng, train, k, 25, FactorCholesky)
	got := s.preconditionerB()
	want := printedPreconditioner(k, s.centers, 200, 1e-3)
	var a, b mat.Dense
	a.Mul(got, got.T())
	b.Mul(want.b, want.b.T())
	requireNear(t, "BBᵀ", a.RawMatrix().Data, b.RawMatrix().Data, 1e-7)
}

// weighted prepares FALKON with uniform centres and random weights.
func weighted(t *testing.T, rng interface{ ExpFloat64() float64 }, train data.Source, k kernel.Kernel, m int, how Factorization) *fit {
	t.Helper()
	c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: m}, 0))
	for j := range c.Weights {
		c.Weights[j] *= rng.ExpFloat64()
	}
	return prepared(t, Params{Kernel: k, Lambda: 1e-3, Factorization: how}, train, c)
}

// printed holds D, T⁻¹R⁻¹ and B of (4.10) and Definition 4 as dense matrices.
type printed struct {
	d          []float64
	tr, b      *mat.Dense
	tInv, rInv *mat.TriDense
}

func printedPreconditioner(k kernel.Kernel, c *learners.Centers, n int, lambda float64) printed {
	m := c.Len()
	g := kerneltest.Gram(k, c.Points, c.Points)
	p := printed{d: make([]float64, m)}
	for j, w := range c.Weights {
		p.d[j] = math.Sqrt(w * float64(m) / float64(n))
	}
	g.Apply(func(i, j int, v float64) float64 { return p.d[i] * v * p.d[j] }, g)
	upper := func(a *mat.SymDense) *mat.TriDense {
		var chol mat.Cholesky
		if !chol.Factorize(a) {
			panic("not positive definite")
		}
		var u mat.TriDense
		chol.UTo(&u)
		return &u
	}
	tt := upper(symmetric(g))
	var ttt mat.Dense
	ttt.Mul(tt, tt.T())
	ttt.Scale(1/float64(m), &ttt)
	for i := range m {
		ttt.Set(i, i, ttt.At(i, i)+lambda)
	}
	r := upper(symmetric(&ttt))
	p.tInv, p.rInv = new(mat.TriDense), new(mat.TriDense)
	if err := p.tInv.InverseTri(tt); err != nil {
		if _, ok := err.(mat.Condition); !ok {
			panic(err)
		}
	}
	if err := p.rInv.InverseTri(r); err != nil {
		panic(err)
	}
	p.tr, p.b = new(mat.Dense), new(mat.Dense)
	p.tr.Mul(p.tInv, p.rInv)
	p.b.Apply(func(i, _ int, v float64) float64 { return p.d[i] * v / math.Sqrt(float64(n)) }, p.tr)
	return p
}

// Algorithm 2 with weights lacks D in BHB, r and alpha. As printed it solves the
// problem with the regulariser λnDK_MMD in place of λnK_MM, which gives another
// function.
func TestPaperMissingD(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 3)
	train, test := regression(rng, 200, 3, 1), kerneltest.Points(rng, 50, 3)
	k, lambda := must(kernel.NewMatern32(1)), 1e-3
	s := weighted(t, rng, train, k, 25, FactorPivoted)
	p := printedPreconditioner(k, s.centers, 200, lambda)
	want := direct(k, train.Rows(), s.centers.Points, train.Targets(), nil, 1, lambda, test)

	knm := kerneltest.Gram(k, train.Rows(), s.centers.Points)
	solve := func(withD bool) []float64 {
		tr := mat.DenseCopyOf(p.tr)
		if withD {
			tr.Apply(func(i, _ int, v float64) float64 { return p.d[i] * v }, tr)
		}
		var a, w, r mat.Dense
		a.Mul(knm, tr)
		w.Mul(a.T(), &a)
		w.Scale(1.0/200, &w)
		r.Mul(p.rInv.T(), p.rInv) // λR⁻ᵀR⁻¹, which T⁻ᵀ(DKD)T⁻¹ = I leaves of λnK_MM
		r.Scale(lambda, &r)
		w.Add(&w, &r)
		var b, beta, c, f mat.VecDense
		b.MulVec(a.T(), mat.NewVecDense(200, train.Targets()))
		b.ScaleVec(1.0/200, &b)
		if err := beta.SolveVec(&w, &b); err != nil {
			panic(err)
		}
		c.MulVec(tr, &beta)
		f.MulVec(kerneltest.Gram(k, test, s.centers.Points), &c)
		return f.RawVector().Data
	}
	requireNear(t, "with D", solve(true), want, 1e-6)
	without := difference(solve(false), want)
	t.Logf("without D the predictions are off by %.2g", without)
	if without < 1e-3 {
		t.Error("D does not matter here: this case shows nothing")
	}
	s.Iterations, s.Tolerance = 200, 1e-12
	requireNear(t, "FALKON", solutionOf(t, s, test), want, 1e-7)
}

// solutionOf runs a prepared fit to its end.
func solutionOf(t *testing.T, f *fit, at kernel.Rows) []float64 {
	t.Helper()
	monitor := must(learners.NewMonitor(background, algorithm, f.Iterations, f.train, learners.Options{}))
	if err := f.run(background, monitor); err != nil {
		t.Fatal(err)
	}
	return predict(t, must(monitor.Finish(nil)), at)
}

// By §4.2.2 the preconditioner is exact for M = n, with BᵀHB = I.
func TestPaperExactPreconditioner(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 4)
	train := regression(rng, 120, 3, 1)
	for _, f := range factorizations {
		s := prepared(t, Params{Kernel: must(kernel.NewMatern32(1)), Lambda: 1e-4, Centers: 120, Factorization: f}, train, nil)
		w := s.sys.dense(t)
		for i := range s.sys.rank() {
			for j := range i + 1 {
				want := 0.0
				if i == j {
					want = 1
				}
				if d := math.Abs(w.At(i, j) - want); !(d < 1e-8) {
					t.Fatalf("factor %q: W_%d,%d − I = %g", f, i, j, d)
				}
			}
		}
	}
}

// By Theorem 5 the condition number of BᵀHB is at most 17, so that ν ≥ ½, for M ≥ 5(1 +
// 14κ²/λ)log(8κ²/(λδ)). It is so with the practical constants of package theory too,
// but not for few centres.
func TestPaperConditionNumber(t *testing.T) {
	kerneltest.Claim(t)
	train := must(data.Generate[float64](data.SUSYLike{Seed: 5}, 0, 1000))
	k := kerneltest.Gaussian(4)
	for _, c := range []struct {
		lambda    float64
		m         int
		practical bool
	}{
		{1, int(math.Ceil(5 * (1 + 14) * math.Log(8/0.1))), false},
		{3e-2, must(theory.PracticalCenters(1000, 1/3e-2, 3e-2, 1)), true},
	} {
		s := prepared(t, Params{Kernel: k, Lambda: c.lambda, Centers: c.m}, train, nil)
		cond, least, most := conditionOf(s.sys.dense(t))
		t.Logf("λ = %g, M = %d (practical: %t): cond %.2f, eigenvalues %.2g … %.2g", c.lambda, c.m, c.practical, cond, least, most)
		if cond > 17 {
			t.Errorf("λ = %g, M = %d: condition number %.1f", c.lambda, c.m, cond)
		}
	}
	s := prepared(t, Params{Kernel: k, Lambda: 1e-5, Centers: 40}, train, nil)
	if cond, _, _ := conditionOf(s.sys.dense(t)); cond <= 17 {
		t.Errorf("λ = 1e-5, M = 40: condition number %.1f: 17 is no bound worth testing", cond)
	}
}

// By Theorem 4 the error of the iterates falls at least as e^−νt, with
// ν = log(1 + 2/(√cond − 1)), in the norm of W.
func TestPaperConvergence(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 6)
	train := regression(rng, 400, 3, 1)
	s := prepared(t, Params{Kernel: must(kernel.NewMatern32(1)), Lambda: 1e-4, Centers: 60}, train, nil)
	w := s.sys.dense(t)
	cond, _, _ := conditionOf(w)
	nu := math.Log1p(2 / (math.Sqrt(cond) - 1))
	var best mat.VecDense
	if err := best.SolveVec(w, mat.NewVecDense(len(s.sys.b), s.sys.b)); err != nil {
		t.Fatal(err)
	}
	energy := func(x []float64) float64 {
		var d mat.VecDense
		d.SubVec(mat.NewVecDense(len(x), x), &best)
		return math.Sqrt(mat.Inner(&d, w, &d))
	}
	it := must(s.begin(background))
	x, _ := it.state()
	start := energy(x)
	for step := 1; step <= 25; step++ {
		must(it.iterate(background))
		x, _ := it.state()
		bound := 2 * math.Exp(-nu*float64(step)) * start
		if e := energy(x); !(e <= bound+1e-12*start) {
			t.Errorf("after %d iterations: error %.3g, bound %.3g (cond %.1f)", step, e, bound, cond)
		}
	}
}

// (4.9) has the step γ/n. With B of (4.7), where the eigenvalues of BᵀHB are about 1,
// the step must be γ. The solver's own step converges, and 1/n of it stays near 0.
func TestPaperGradientStep(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 7)
	train := regression(rng, 1000, 3, 1)
	k := must(kernel.NewMatern32(1))
	s := prepared(t, Params{Kernel: k, Lambda: 1e-2, Centers: 60, Solver: Gradient}, train, nil)
	cond, least, most := conditionOf(s.sys.dense(t))
	it := must(s.begin(background)).(*descent)
	if product := it.gamma * most; product > 1 || product < 0.8 {
		t.Errorf("the step is %.3g, 1/λ_max = %.3g", it.gamma, 1/most)
	}
	printed := *it
	printed.gamma /= 1000
	printed.x, printed.r = append([]float64(nil), it.x...), append([]float64(nil), it.r...)
	for range 60 {
		must(it.iterate(background))
		must(printed.iterate(background))
	}
	t.Logf("eigenvalues %.2g … %.2g (cond %.1f); residuals after 60 iterations: step γ %.2g, step γ/n %.2g", least, most, cond, it.residual(), printed.residual())
	if it.residual() > 1.1*math.Pow(1-it.gamma*least, 60) || printed.residual() < 0.8 {
		t.Errorf("residuals %g and %g", it.residual(), printed.residual())
	}
}

// This checks §5.3 with its errata. Of the preconditioners for the centres of BLESS, K
// A⁻¹ K + λnK is good. (5.22), with n/M beside the A of Algorithm 3, and (5.21), with λ
// in place of λn, are not.
func TestPaperWeightsOfBLESS(t *testing.T) {
	kerneltest.Claim(t)
	train := must(data.Generate[float64](data.SUSYLike{Seed: 8}, 0, 2500))
	k, lambda := kerneltest.Gaussian(4), 1e-3
	c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Sampler: sketch.BLESS{}, Lambda: lambda}, 1))
	n, m := 2500.0, float64(c.Len())
	cond := func(change func(w float64) float64, preLambda float64) float64 {
		other := *c
		other.Weights = make([]float64, c.Len())
		for j, w := range c.Weights {
			other.Weights[j] = change(w)
		}
		f := prepared(t, Params{Kernel: k, Lambda: lambda}, train, &other)
		if !f.sys.pre.set(f.perRow(), preLambda) {
			t.Fatal("no factor")
		}
		f.sys.lambda = lambda
		c, _, _ := conditionOf(f.sys.dense(t))
		return c
	}
	good := cond(func(w float64) float64 { return w }, lambda)
	ignored := cond(func(float64) float64 { return n / m }, lambda)
	printed := cond(func(w float64) float64 { return n / m * w }, lambda)
	noN := cond(func(w float64) float64 { return w }, lambda/n)
	inverted := cond(func(w float64) float64 { return n / m * (n / m) / w }, lambda)
	t.Logf("M = %d: cond %.1f with w = 1/A, %.1f with n/M, %.1f as in (5.22), %.0f with λ for λn, %.1f with A for 1/A", c.Len(), good, ignored, printed, noN, inverted)
	if good > 17 || good > ignored || 2*good > printed || 3*good > noN || good > inverted {
		t.Error("another preconditioner is as good")
	}
}

// Weights change the number of iterations, not the solution.
func TestPaperWeightsOnlyPrecondition(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 9)
	train, test := regression(rng, 300, 3, 1), kerneltest.Points(rng, 50, 3)
	k := must(kernel.NewMatern32(1))
	var want []float64
	for trial := range 4 {
		c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: 30}, 0))
		for j := range c.Weights {
			c.Weights[j] *= math.Exp(float64(trial) * rng.NormFloat64())
		}
		f := prepared(t, Params{Kernel: k, Lambda: 1e-4, Iterations: 300, Tolerance: 1e-13}, train, c)
		got := solutionOf(t, f, test)
		if trial == 0 {
			want = got
		}
		requireNear(t, fmt.Sprintf("weights %d", trial), got, want, 1e-7)
	}
}

// Residuals are orthogonal to each other.
func TestPaperOrthogonalResiduals(t *testing.T) {
	kerneltest.Claim(t)
	rng := kerneltest.Seeded(t, 10)
	train := regression(rng, 300, 3, 1)
	s := prepared(t, Params{Kernel: must(kernel.NewMatern32(1)), Lambda: 1e-4, Centers: 50}, train, nil)
	it := must(s.begin(background))
	var residuals [][]float64
	for range 9 {
		_, r := it.state()
		residuals = append(residuals, append([]float64(nil), r...))
		must(it.iterate(background))
	}
	for i, a := range residuals {
		for j, b := range residuals[:i] {
			dot := 0.0
			for k := range a {
				dot += a[k] * b[k]
			}
			if cos := dot / (norms(a, 1)[0] * norms(b, 1)[0]); math.Abs(cos) > 1e-6 {
				t.Errorf("residuals %d and %d: cosine %g", i, j, cos)
			}
		}
	}
}

// This is figure 4.1 in small. On (4.5), ten iterations of FALKON are nearer to the
// solution than a hundred of plain conjugate gradients or of gradient descent.
func TestPaperPreconditioningPays(t *testing.T) {
	kerneltest.Claim(t)
	train := must(data.Load(background, must(data.Generate[float64](data.SUSYLike{Seed: 11}, 0, 1500))))
	k, lambda, m := kerneltest.Gaussian(4), 1e-5, 300
	c := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: m}, 0))
	want := direct(k, train.Rows(), c.Points, train.Targets(), nil, 1, lambda, train.Rows())
	f := must(Params{Kernel: k, Lambda: lambda, Centers: m, Iterations: 10}.Fit(background, train, learners.Options{}))
	falkon := difference(predict(t, f, train.Rows()), want)

	knm := kerneltest.Gram(k, train.Rows(), c.Points)
	var h, z mat.Dense
	h.Mul(knm.T(), knm)
	kmm := kerneltest.Gram(k, c.Points, c.Points)
	kmm.Scale(lambda*1500, kmm)
	h.Add(&h, kmm)
	z.Mul(knm.T(), mat.NewDense(1500, 1, train.Targets()))
	apply := func(_ context.Context, dst, u []float64, c int) error {
		mat.NewDense(m, c, dst).Mul(&h, mat.NewDense(m, c, u))
		return nil
	}
	plain := newConjugate(apply, z.RawMatrix().Data, make([]float64, m), append([]float64(nil), z.RawMatrix().Data...), 1, 0, 0)
	gd := must(newDescent(background, apply, z.RawMatrix().Data, make([]float64, m), append([]float64(nil), z.RawMatrix().Data...), 1, 0))
	for range 100 {
		must(plain.iterate(background))
		must(gd.iterate(background))
	}
	values := func(a []float64) []float64 {
		var f mat.Dense
		f.Mul(knm, mat.NewDense(m, 1, a))
		return f.RawMatrix().Data
	}
	cg, descent := difference(values(plain.x), want), difference(values(gd.x), want)
	t.Logf("distance to the solution: FALKON after 10 iterations %.2g, CG after 100 %.2g, GD after 100 %.2g", falkon, cg, descent)
	if falkon > cg || falkon > descent {
		t.Error("preconditioning does not pay")
	}
}
