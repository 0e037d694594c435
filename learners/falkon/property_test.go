package falkon

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// randomProblem returns a problem of any shape, with repeated rows at times, and Params
// that should solve it.
func randomProblem(rng *rand.Rand) (Params, *data.Memory) {
	n, d, c := 1+rng.IntN(80), 1+rng.IntN(4), 1+rng.IntN(3)
	x := kerneltest.Points(rng, n, d)
	for i := range n {
		if rng.IntN(4) == 0 {
			copy(x.Row(i), x.Row(rng.IntN(n)))
		}
	}
	width := math.Exp(rng.NormFloat64())
	kernels := []kernel.Kernel{
		kerneltest.Gaussian(width), must(kernel.NewMatern12(width)), must(kernel.NewMatern52(width)), must(kernel.NewLinear(width)),
		must(kernel.NewPolynomial(3, 1, width)), must(kernel.NewScaled(10, must(kernel.NewLaplace(width)))), must(kernel.NewArcCosine(width)),
	}
	p := Params{
		Kernel: kernels[rng.IntN(len(kernels))], Centers: 1 + rng.IntN(100), Factorization: factorizations[rng.IntN(4)],
		Lambda: math.Pow(10, -8*rng.Float64()), Iterations: 400, Tolerance: 1e-11,
	}
	if b := p.Kernel.Bound(); !math.IsInf(b, 0) {
		p.Sampler = []sketch.Sampler{nil, sketch.BLESS{}, sketch.BLESSR{}, sketch.ExactRLS{}, sketch.RecursiveRLS{}, sketch.SQUEAK{}, sketch.TwoPass{}}[rng.IntN(7)]
	}
	return p, withTargets(rng, x, c)
}

// objectiveOf is Σ(f − y)²/n + λ aᵀK a.
func objectiveOf(k kernel.Kernel, centers kernel.Rows, a, values, y []float64, n int, lambda float64) float64 {
	j, c := 0.0, len(y)/n
	for i := range y {
		j += (values[i] - y[i]) * (values[i] - y[i]) / float64(n)
	}
	am := mat.NewDense(centers.Len(), c, a)
	var ka, aka mat.Dense
	ka.Mul(kerneltest.Gram(k, centers, centers), am)
	aka.Mul(am.T(), &ka)
	return j + lambda*mat.Trace(&aka)
}

// For every problem the objective never rises from one iterate to the next. It ends at
// the minimum, to a millionth of the objective of f = 0.
func TestRandomProblems(t *testing.T) {
	racetest.Alone(t)
	for seed := range uint64(150) {
		rng := kerneltest.Seeded(t, seed)
		p, train := randomProblem(rng)
		n := train.Len()
		zero := 0.0
		for _, y := range train.Targets() {
			zero += y * y / float64(n)
		}
		last := zero
		m, err := p.Fit(background, train, learners.Options{Seed: seed, Progress: func(q learners.Progress) error {
			if q.Objective > last+1e-7*zero {
				t.Errorf("seed %d, %+v: objective %g after %g in iteration %d", seed, p, q.Objective, last, q.Iteration)
			}
			last = q.Objective
			return nil
		}})
		if err != nil {
			t.Errorf("seed %d, %+v: %v", seed, p, err)
			continue
		}
		e := m.(*learners.Expansion)
		got := objectiveOf(p.Kernel, e.Centers(), e.Coefficients(), predict(t, m, train.Rows()), train.Targets(), n, p.Lambda)
		f := must(newFit(background, p, train, learners.Options{}))
		c := must(f.choose(background, seed))
		least := leastObjective(p.Kernel, train, c.Points, p.Lambda)
		if !(got <= least+1e-6*zero) {
			t.Errorf("seed %d, %+v, n = %d: objective %g, the least is %g, of 0 %g", seed, p, n, got, least, zero)
		}
	}
}

// leastObjective is min Σ(f − y)²/n + λ‖f‖² over the span of the centres. With K_nM
// K_MM⁺ K_Mn = Q, it is λ tr yᵀ(Q + λnI)⁻¹y.
func leastObjective(k kernel.Kernel, train *data.Memory, centers kernel.Rows, lambda float64) float64 {
	n, c := train.Len(), train.Outputs()
	x := train.Rows()
	var eig mat.EigenSym
	if !eig.Factorize(symmetric(kerneltest.Gram(k, centers, centers)), true) {
		panic("no convergence")
	}
	s := eig.Values(nil)
	var u, z mat.Dense
	eig.VectorsTo(&u)
	z.Mul(kerneltest.Gram(k, x, centers), &u)
	z.Apply(func(_, j int, v float64) float64 {
		if s[j] <= 1e-12*s[len(s)-1] {
			return 0
		}
		return v / math.Sqrt(s[j])
	}, &z)
	var q mat.Dense
	q.Mul(&z, z.T())
	a := symmetric(&q)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+lambda*float64(n))
	}
	var values mat.EigenSym // Cholesky would need λn above rounding
	if !values.Factorize(a, true) {
		panic("no convergence")
	}
	var vectors, vy mat.Dense
	values.VectorsTo(&vectors)
	vy.Mul(vectors.T(), mat.NewDense(n, c, train.Targets()))
	sum := 0.0
	for i, v := range values.Values(nil) {
		for j := range c {
			sum += lambda * vy.At(i, j) * vy.At(i, j) / max(v, lambda*float64(n))
		}
	}
	return sum
}
