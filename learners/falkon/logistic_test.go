package falkon

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/sketch"
)

func TestLogisticConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	for name, p := range map[string]LogisticParams{
		"defaults": {Params: Params{Kernel: k, Tolerance: 1e-6}, Steps: 100},
		"uniform":  {Params: Params{Kernel: k, Lambda: 1e-5, Centers: 30, Tolerance: 1e-6}, Steps: 100},
		"bless":    {Params: Params{Kernel: k, Lambda: 1e-4, Sampler: sketch.BLESS{}, Factorization: FactorCholesky}},
	} {
		t.Run(name, func(t *testing.T) {
			learnerstest.Run(t, learnerstest.Case{
				New:     func() learners.Estimator { return p },
				Invalid: []learners.Estimator{LogisticParams{}, LogisticParams{Params: Params{Kernel: k, Lambda: -1}}, LogisticParams{Params: Params{Kernel: k}, Decay: 1}, LogisticParams{Params: Params{Kernel: k}, Steps: -1}},
				Signs:   true,
				// Outputs share a preconditioner and the norm that ends a fit.
				AloneTolerance: 1e-3,
			})
		})
	}
}

// classes returns n normal rows with classes ±1 of noisy labels and c outputs.
func classes(rng *rand.Rand, n, d, c int) *data.Memory {
	x := kerneltest.Points(rng, n, d)
	y := make([]float64, n*c)
	for i := range y {
		row := x.Row(i / c)
		y[i] = -1
		if rng.Float64() < 1/(1+math.Exp(-4*math.Sin(float64(i%c+1)*row[0])-row[1])) {
			y[i] = 1
		}
	}
	return must(data.NewMemory(x, y, c))
}

// exactLogistic minimises (1/n)Σ s_i log(1+exp(−y f)) + (λ/2) aᵀKa over all expansions
// f = K_·C a and returns the values at the rows of at. It uses Newton's method with
// dense matrices, in the coordinates of the eigenvectors of K_CC. It fails the test
// unless its own gradient vanishes.
func exactLogistic(t *testing.T, k kernel.Kernel, x, centers kernel.Rows, y, s []float64, lambda float64, at kernel.Rows) []float64 {
	t.Helper()
	n, m := x.Len(), centers.Len()
	var eig mat.EigenSym
	if !eig.Factorize(symmetric(kerneltest.Gram(k, centers, centers)), true) {
		t.Fatal("no convergence")
	}
	values := eig.Values(nil)
	var u mat.Dense
	eig.VectorsTo(&u)
	first := 0
	for values[first] <= 1e-12*values[m-1] {
		first++
	}
	q := m - first
	basis := mat.NewDense(m, q, nil)
	for i := range m {
		for j := range q {
			basis.Set(i, j, u.At(i, first+j)/math.Sqrt(values[first+j]))
		}
	}
	var z, zt mat.Dense
	z.Mul(kerneltest.Gram(k, x, centers), basis)
	zt.Mul(kerneltest.Gram(k, at, centers), basis)
	v := mat.NewVecDense(q, nil)
	for iteration := 0; ; iteration++ {
		f, g := mat.NewVecDense(n, nil), mat.NewVecDense(q, nil)
		f.MulVec(&z, v)
		g.ScaleVec(lambda, v)
		h := mat.NewSymDense(q, nil)
		for i := range q {
			h.SetSym(i, i, lambda)
		}
		for i := range n {
			p := 1 / (1 + math.Exp(y[i]*f.AtVec(i)))
			g.AddScaledVec(g, -s[i]*y[i]*p/float64(n), z.RowView(i))
			h.SymRankOne(h, s[i]*p*(1-p)/float64(n), z.RowView(i))
		}
		if norm := mat.Norm(g, 2); norm < 1e-13 || iteration == 60 {
			if norm > 1e-10 {
				t.Fatalf("the oracle's gradient is %g", norm)
			}
			break
		}
		var chol mat.Cholesky
		if !chol.Factorize(h) {
			t.Fatal("the oracle's Hessian is not positive definite")
		}
		var step mat.VecDense
		if err := chol.SolveVecTo(&step, g); err != nil {
			t.Fatal(err)
		}
		v.AddScaledVec(v, -1, &step)
	}
	var out mat.VecDense
	out.MulVec(&zt, v)
	return out.RawVector().Data
}

// With a small tolerance, the function is that of the exact minimiser over the same
// centres, and over all.
func TestLogisticIsExact(t *testing.T) {
	racetest.Alone(t)
	for seed := range uint64(2) {
		rng := kerneltest.Seeded(t, seed)
		train, test := classes(rng, 160, 2, 1), kerneltest.Points(rng, 40, 2)
		k := kerneltest.Gaussian(1)
		ones := slices.Repeat([]float64{1}, 160)
		weights := make([]float64, 160)
		for i := range weights {
			weights[i] = rng.ExpFloat64()
		}
		weights = meanOne(weights)
		for _, c := range []struct {
			m      int
			lambda float64
			s      []float64
		}{{25, 1e-3, nil}, {25, 1e-6, nil}, {160, 1e-4, nil}, {25, 1e-3, weights}} {
			p := LogisticParams{Params: Params{Kernel: k, Lambda: c.lambda, Centers: c.m, Tolerance: 1e-9, Iterations: 60}, Steps: 200}
			m := must(p.Fit(background, train, learners.Options{Seed: seed, Weights: c.s}))
			centers := must(learners.ChooseCenters(background, k, train, learners.Sampling{Most: c.m, Weights: c.s}, seed))
			s := c.s
			if s == nil {
				s = ones
			}
			want := exactLogistic(t, k, train.Rows(), centers.Points, train.Targets(), s, c.lambda, test)
			requireNear(t, "logistic", predict(t, m, test), want, 1e-6)
		}
	}
}

// The reported residual is the norm of the gradient. At the end of a fit with the
// default tolerance it is small, and the objective equals its definition.
func TestLogisticObjective(t *testing.T) {
	rng := kerneltest.Seeded(t, 3)
	train := classes(rng, 400, 3, 2)
	k := kerneltest.Gaussian(1)
	var last learners.Progress
	p := LogisticParams{Params: Params{Kernel: k, Lambda: 1e-5, Centers: 50}}
	m := must(p.Fit(background, train, learners.Options{Progress: func(p learners.Progress) error {
		last = p
		return nil
	}})).(*learners.Expansion)
	if !(last.Residual <= 1e-3) {
		t.Errorf("the gradient is %g after %d of %d steps", last.Residual, last.Iteration, last.Iterations)
	}
	f, want := predict(t, m, train.Rows()), 0.0
	for i, y := range train.Targets() {
		want += math.Log1p(math.Exp(-y*f[i])) / 400
	}
	a := mat.NewDense(m.Centers().Len(), 2, m.Coefficients())
	var ka, aka mat.Dense
	ka.Mul(kerneltest.Gram(k, m.Centers(), m.Centers()), a)
	aka.Mul(a.T(), &ka)
	want += 1e-5 / 2 * mat.Trace(&aka)
	requireNear(t, "objective", []float64{last.Objective}, []float64{want}, 1e-9)
	if m.Link() != learners.Logistic {
		t.Errorf("the link is %q", m.Link())
	}
	if prob := m.Link().Probabilities(f, 2); math.Abs(prob[0]+prob[1]-1) > 1e-12 {
		t.Errorf("probabilities %v", prob[:2])
	}
}

// On other rows, the loss of a logistic fit is near that of the true probabilities. It
// is below that of the squared loss, whose outputs are not logits.
func TestLogisticProbabilities(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	k := kerneltest.Gaussian(2)
	train, test := classes(rng, 3000, 2, 1), classes(rng, 2000, 2, 1)
	m := must(LogisticParams{Params: Params{Kernel: k, Lambda: 1e-4, Centers: 100}}.Fit(background, train, learners.Options{})).(*learners.Expansion)
	got := (learners.Scoring{Link: m.Link()}).Measure("log-loss")(predict(t, m, test.Rows()), test.Targets(), 1)
	truth := make([]float64, 2000)
	for i := range truth {
		row := test.Rows().(*kernel.Points[float64]).Row(i)
		truth[i] = 4*math.Sin(row[0]) + row[1]
	}
	best := (learners.Scoring{Link: learners.Logistic}).Measure("log-loss")(truth, test.Targets(), 1)
	if !(got < best+0.03) {
		t.Errorf("log loss %.4f, of the true probabilities %.4f", got, best)
	}
}

// Targets that are not classes are refused with the row, in memory and streamed.
func TestLogisticRefusesOtherTargets(t *testing.T) {
	rng := kerneltest.Seeded(t, 5)
	train := classes(rng, 600, 2, 1)
	train.Targets()[431] = 0.5
	for _, src := range []data.Source{train, streamed{train}} {
		_, err := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(1), Centers: 10}}.Fit(background, src, learners.Options{})
		var bad *learners.DataError
		if !errors.As(err, &bad) || bad.Reason != "the target of row 432 is 0.5; the logistic loss is for classes, coded −1 and +1" {
			t.Errorf("error %v", err)
		}
	}
}

// For separable classes the minimiser is finite for λ > 0, and Newton's steps reach it.
func TestLogisticSeparable(t *testing.T) {
	rng := kerneltest.Seeded(t, 6)
	x := kerneltest.Points(rng, 100, 2)
	y := make([]float64, 100)
	for i := range y {
		y[i] = math.Copysign(1, x.Row(i)[0])
	}
	train := must(data.NewMemory(x, y, 1))
	k := kerneltest.Gaussian(1)
	p := LogisticParams{Params: Params{Kernel: k, Lambda: 1e-7, Centers: 100, Tolerance: 1e-9, Iterations: 100}, Steps: 300}
	m := must(p.Fit(background, train, learners.Options{}))
	ones := slices.Repeat([]float64{1}, 100)
	// The oracle needs a start from which plain Newton steps converge, as here.
	want := exactLogistic(t, k, x, x, y, ones, 1e-7, x)
	requireNear(t, "separable", predict(t, m, x), want, 1e-5)
	if e := learners.ClassError(predict(t, m, x), y, 1); e != 0 {
		t.Errorf("class error %g on separable rows", e)
	}
}

// The sum of losses is exact in its unit, in any order.
func TestLossSum(t *testing.T) {
	rng := kerneltest.Seeded(t, 7)
	var forward, backward lossSum
	v := make([]float64, 1000)
	want := 0.0
	for i := range v {
		v[i] = math.Exp(10 * rng.NormFloat64())
		want += min(v[i], lossMost)
	}
	parts := make([]lossSum, 3)
	for i := range v {
		forward.add(v[i])
		parts[i%3].add(v[len(v)-1-i])
	}
	for i := range parts {
		backward.merge(&parts[i])
	}
	if forward.value() != backward.value() || math.Abs(forward.value()-want) > 1e-12*want {
		t.Errorf("sums %v and %v, want %v", forward.value(), backward.value(), want)
	}
}

// A step that is too long is halved until the objective does not increase. A step that
// leads nowhere changes nothing.
func TestLogisticHalving(t *testing.T) {
	rng := kerneltest.Seeded(t, 8)
	train := classes(rng, 200, 2, 2)
	f := must(newFit(background, Params{Kernel: kerneltest.Gaussian(1), Lambda: 1e-4, Centers: 30}, train, learners.Options{}))
	defer f.close()
	f.classes = true
	if err := f.center(background, must(f.choose(background, 0))); err != nil {
		t.Fatal(err)
	}
	w := &newton{fit: f, losses: logistic, columns: 2, mu: 1e-4, lambda: 1e-4}
	q, u := f.sys.rank()*2, f.points.Len()*2
	w.v, w.a = make([]float64, q), make([]float64, u)
	var err error
	if w.gradient, w.loss, err = w.evaluate(background, w.a); err != nil {
		t.Fatal(err)
	}
	requireNear(t, "loss of 0", []float64{w.loss}, []float64{2 * math.Ln2}, 1e-9)
	before := w.objective(w.loss, w.v, w.mu)
	downhill, uphill := make([]float64, q), make([]float64, q)
	for i, g := range w.gradient {
		downhill[i], uphill[i] = -1e4*g, 1e4*g
	}
	if err := w.move(background, downhill); err != nil {
		t.Fatal(err)
	}
	after := w.objective(w.loss, w.v, w.mu)
	if !(after < before) {
		t.Errorf("objective %g after %g", after, before)
	}
	for i := range uphill {
		uphill[i] = 1e4 * (w.gradient[i] + w.mu*w.v[i])
	}
	if err := w.move(background, uphill); err != nil {
		t.Fatal(err)
	}
	if last := w.objective(w.loss, w.v, w.mu); last > after+1e-9 {
		t.Errorf("objective %g after %g, uphill", last, after)
	}
}

// oneHot returns n rows with classes by noisy linear scores, coded ±1.
func oneHot(rng *rand.Rand, n, d, c int) *data.Memory {
	x := kerneltest.Points(rng, n, d)
	y := slices.Repeat([]float64{-1}, n*c)
	for i := range n {
		best, at := math.Inf(-1), 0
		for j := range c {
			if v := 2*math.Cos(x.Row(i)[j%d]+float64(j)) - rng.ExpFloat64()/2; v > best {
				best, at = v, j
			}
		}
		y[i*c+at] = 1
	}
	return must(data.NewMemory(x, y, c))
}

// The multinomial fit is a stationary point of its convex objective over the centres, by
// the definition of its gradient.
func TestSoftmaxIsStationary(t *testing.T) {
	const n, c = 150, 4
	for seed := range uint64(3) {
		rng := kerneltest.Seeded(t, 20+seed)
		train, k := oneHot(rng, n, 2, c), kerneltest.Gaussian(1)
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = rng.ExpFloat64()
		}
		weights = meanOne(weights)
		for _, lambda := range []float64{1e-2, 1e-5} {
			var last learners.Progress
			p := LogisticParams{
				Params: Params{
					Kernel: k, Lambda: lambda, Centers: 30,
					Tolerance: 1e-10, Iterations: 60,
				}, Multiclass: SoftmaxLoss, Steps: 300,
			}
			m := must(p.Fit(background, train, learners.Options{Seed: seed, Weights: weights, Progress: func(p learners.Progress) error {
				last = p
				return nil
			}})).(*learners.Expansion)
			f, loss := predict(t, m, train.Rows()), 0.0
			residual := mat.NewDense(n, c, nil) // S(P − Y)/n
			probabilities := m.Link().Probabilities(f, c)
			for i := range n {
				for j := range c {
					v := probabilities[i*c+j]
					if train.Targets()[i*c+j] > 0 {
						loss -= weights[i] * math.Log(v) / n
						v--
					}
					residual.Set(i, j, weights[i]*v/n)
				}
			}
			a := mat.NewDense(m.Centers().Len(), c, m.Coefficients())
			var gradient, penalty, norm mat.Dense
			gradient.Mul(kerneltest.Gram(k, m.Centers(), train.Rows()), residual)
			penalty.Mul(kerneltest.Gram(k, m.Centers(), m.Centers()), a)
			norm.Mul(a.T(), &penalty)
			loss += lambda / 2 * mat.Trace(&norm)
			penalty.Scale(lambda, &penalty)
			gradient.Add(&gradient, &penalty)
			if g := mat.Max(&gradient) - mat.Min(&gradient); !(g < 1e-9) {
				t.Errorf("λ = %g: the gradient is up to %g", lambda, g)
			}
			requireNear(t, "objective", []float64{last.Objective}, []float64{loss}, 1e-9)
		}
	}
}

// A fit that keeps probabilities makes the same steps as one that computes them in each
// product, with weights and by several workers. A wide kernel would let rounding grow.
func TestSoftmaxKeepsProbabilities(t *testing.T) {
	const n, c = 700, 5
	rng := kerneltest.Seeded(t, 33)
	train, weights := oneHot(rng, n, 2, c), make([]float64, n)
	for i := range weights {
		weights[i] = rng.ExpFloat64()
	}
	test := kerneltest.Points(rng, 40, 2)
	p := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(0.1), Lambda: 1e-4, Centers: 60}, Multiclass: SoftmaxLoss}
	var steps [2]learners.Progress
	fit := func(i, most int) []float64 {
		o := learners.Options{Weights: meanOne(weights), Workers: 2, Progress: func(q learners.Progress) error {
			steps[i] = q
			return nil
		}}
		w := must(p.newton(background, train, o, most))
		if keeps := most >= n*c; (w.kept != nil) != keeps {
			t.Errorf("up to %d probabilities of %d are kept: %t, want %t", most, n*c, !keeps, keeps)
		}
		return predict(t, must(w.fitAll(background, o)), test)
	}
	kept, computed := fit(0, n*c), fit(1, n*c-1)
	requireNear(t, "predictions", kept, computed, 1e-8)
	if a, b := steps[0], steps[1]; a.Iteration != b.Iteration || a.Passes != b.Passes {
		t.Errorf("%d steps and %v passes, not %d and %v", a.Iteration, a.Passes, b.Iteration, b.Passes)
	}
	t.Logf("%d steps, %v passes", steps[0].Iteration, steps[0].Passes)
}

// Two classes with the multinomial loss and λ are one output with the logistic loss and
// λ/2, because the two functions are opposite.
func TestSoftmaxOfTwo(t *testing.T) {
	rng := kerneltest.Seeded(t, 30)
	two := oneHot(rng, 200, 2, 2)
	one := make([]float64, 200)
	for i := range one {
		one[i] = two.Targets()[2*i+1]
	}
	binary := must(data.NewMemory(two.Rows(), one, 1))
	test := kerneltest.Points(rng, 40, 2)
	p := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(1), Lambda: 2e-4, Centers: 40, Tolerance: 1e-10, Iterations: 60}, Multiclass: SoftmaxLoss, Steps: 300}
	both := predict(t, must(p.Fit(background, two, learners.Options{})), test)
	p.Lambda /= 2
	m := must(p.Fit(background, binary, learners.Options{})).(*learners.Expansion)
	if m.Link() != learners.Logistic {
		t.Errorf("the link of one output is %q", m.Link())
	}
	difference := make([]float64, 40)
	for i := range difference {
		difference[i] = both[2*i+1] - both[2*i]
		if s := both[2*i+1] + both[2*i]; math.Abs(s) > 1e-6 {
			t.Errorf("the functions sum to %g", s)
		}
	}
	requireNear(t, "logits", difference, predict(t, m, test), 1e-6)
}

// Rows without a class, or with two, are refused.
func TestSoftmaxRefusesOtherTargets(t *testing.T) {
	rng := kerneltest.Seeded(t, 31)
	for _, value := range []float64{-1, 1} {
		train := oneHot(rng, 600, 2, 3)
		for j := range 3 {
			train.Targets()[431*3+j] = value
		}
		_, err := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(1), Centers: 10}, Multiclass: SoftmaxLoss}.Fit(background, train, learners.Options{})
		var bad *learners.DataError
		if !errors.As(err, &bad) || !strings.Contains(bad.Reason, "row 432 has ") {
			t.Errorf("error %v", err)
		}
	}
	_, err := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(1)}, Multiclass: "other"}.Fit(background, oneHot(rng, 20, 2, 3), learners.Options{})
	var invalid *learners.ParameterError
	if !errors.As(err, &invalid) {
		t.Errorf("another name: %v", err)
	}
}
