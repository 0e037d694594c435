package falkon

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// exactRobust returns the values at the rows of the exact minimiser over all rows, by
// coordinate descent on the dual. The coefficients c minimise
//
//	½cᵀKc + ½Σ ridge_i c_i² − cᵀy,   low_i ≤ c_i ≤ high_i.
//
// It ends when the conditions of Karush, Kuhn and Tucker hold to 1e-10.
func exactRobust(t *testing.T, k kernel.Kernel, train *data.Memory, s []float64, lambda float64, p RobustParams) []float64 {
	t.Helper()
	n, y := train.Len(), train.Targets()
	gram := kerneltest.Gram(k, train.Rows(), train.Rows())
	c, f := make([]float64, n), make([]float64, n)
	for range 200_000 {
		worst := 0.0
		for i := range n {
			scale := s[i] / (float64(n) * lambda)
			low, high, ridge := (p.Quantile-1)*scale, p.Quantile*scale, 0.0
			if p.Loss == learners.HuberLoss {
				low, high, ridge = -p.Delta*scale, p.Delta*scale, 1/scale
			}
			slope := y[i] - f[i] - ridge*c[i]
			next := min(max(c[i]+slope/(gram.At(i, i)+ridge), low), high)
			step := next - c[i]
			worst = max(worst, math.Abs(step)*gram.At(i, i))
			if step == 0 {
				continue
			}
			c[i] = next
			for j := range n {
				f[j] += step * gram.At(i, j)
			}
		}
		if worst < 1e-10 {
			return f
		}
	}
	t.Fatal("the oracle did not converge")
	return nil
}

// outliers returns n rows of a wave with noise, a tenth of it far off.
func outliers(rng *rand.Rand, n int) *data.Memory {
	x := kerneltest.Points(rng, n, 1)
	y := make([]float64, n)
	for i := range y {
		y[i] = math.Sin(2*x.Row(i)[0]) + 0.3*rng.NormFloat64()
		if i%10 == 0 {
			y[i] += 8
		}
	}
	return must(data.NewMemory(x, y, 1))
}

func TestRobustIsExact(t *testing.T) {
	racetest.Alone(t)
	k := kerneltest.Gaussian(0.7)
	for seed := range uint64(2) {
		train := outliers(kerneltest.Seeded(t, seed), 90)
		weights := make([]float64, 90)
		rng := kerneltest.Seeded(t, 10+seed)
		for i := range weights {
			weights[i] = rng.ExpFloat64()
		}
		weights = meanOne(weights)
		for _, c := range []struct {
			p         RobustParams
			lambda    float64
			weights   []float64
			tolerance float64
		}{
			{RobustParams{Loss: learners.HuberLoss, Delta: 0.5}, 1e-2, nil, 1e-6},
			{RobustParams{Loss: learners.HuberLoss, Delta: 0.1}, 1e-4, nil, 1e-5},
			{RobustParams{Loss: learners.HuberLoss, Delta: 0.3}, 1e-3, weights, 1e-5},
			{RobustParams{Loss: learners.QuantileLoss, Quantile: 0.5, Smoothing: 1e-5}, 1e-2, nil, 1e-3},
			{RobustParams{Loss: learners.QuantileLoss, Quantile: 0.9, Smoothing: 1e-5}, 1e-2, nil, 1e-3},
			{RobustParams{Loss: learners.QuantileLoss, Quantile: 0.2, Smoothing: 1e-5}, 1e-3, weights, 1e-3},
		} {
			p := c.p
			p.Kernel, p.Lambda, p.Centers, p.Tolerance, p.Iterations, p.Steps = k, c.lambda, 90, 1e-9, 400, 200
			m := must(p.Fit(background, train, learners.Options{Weights: c.weights}))
			s := c.weights
			if s == nil {
				s = slices.Repeat([]float64{1}, 90)
			}
			requireNear(t, fmt.Sprintf("%s, λ = %g", p.Loss, c.lambda), predict(t, m, train.Rows()), exactRobust(t, k, train, s, c.lambda, p), c.tolerance)
		}
	}
}

// With a large δ the loss of Huber is the squared loss.
func TestHuberOfLargeDelta(t *testing.T) {
	train, k := regression(kerneltest.Seeded(t, 3), 200, 2, 2), kerneltest.Gaussian(1)
	p := Params{Kernel: k, Lambda: 1e-4, Centers: 50, Iterations: 200, Tolerance: 1e-12}
	want := predict(t, must(p.Fit(background, train, learners.Options{})), train.Rows())
	r := RobustParams{Params: p, Loss: learners.HuberLoss, Delta: 1e3, Steps: 200}
	r.Tolerance = 1e-9
	requireNear(t, "δ = 1000", predict(t, must(r.Fit(background, train, learners.Options{})), train.Rows()), want, 1e-6)
}

// The default settings converge on rows of any scale, and as many rows as asked lie
// below a quantile.
func TestRobustDefaults(t *testing.T) {
	rng := kerneltest.Seeded(t, 4)
	const n = 2000
	for _, scale := range []float64{1e-6, 1, 1e6} {
		x, y := kerneltest.Points(rng, n, 1), make([]float64, n)
		for i := range y {
			y[i] = scale * (math.Sin(x.Row(i)[0]) + rng.NormFloat64()*(0.1+math.Abs(x.Row(i)[0])/4))
		}
		train := must(data.NewMemory(x, y, 1))
		for _, tau := range []float64{0.05, 0.5, 0.9} {
			p := RobustParams{Params: Params{Kernel: kerneltest.Gaussian(1), Lambda: 1e-4 / scale}, Loss: learners.QuantileLoss, Quantile: tau}
			var notes []string
			m := must(p.Fit(background, train, learners.Options{Progress: func(p learners.Progress) error {
				notes = append(notes, p.Notes...)
				return nil
			}}))
			for _, n := range notes {
				if len(n) > 3 && n[:3] == "not" {
					t.Errorf("τ = %g, scale %g: %s", tau, scale, n)
				}
			}
			below := 0.0
			for i, f := range predict(t, m, x) {
				if y[i] <= f {
					below += 1.0 / n
				}
			}
			if math.Abs(below-tau) > 0.02 {
				t.Errorf("scale %g: %.3f of the rows lie below the quantile %g", scale, below, tau)
			}
		}
	}
}

// A tenth of outliers moves the squared loss by their mean, and Huber and the median
// hardly.
func TestRobustIgnoresOutliers(t *testing.T) {
	train := outliers(kerneltest.Seeded(t, 5), 1000)
	x := kerneltest.Points(kerneltest.Seeded(t, 6), 200, 1)
	wrong := func(e learners.Estimator) float64 {
		sum := 0.0
		for i, f := range predict(t, must(e.Fit(background, train, learners.Options{})), x) {
			d := f - math.Sin(2*x.Row(i)[0])
			sum += d * d / 200
		}
		return math.Sqrt(sum)
	}
	p := Params{Kernel: kerneltest.Gaussian(0.7), Lambda: 1e-3}
	squared := wrong(p)
	huber := wrong(RobustParams{Params: p, Loss: learners.HuberLoss, Delta: 0.3})
	median := wrong(RobustParams{Params: p, Loss: learners.QuantileLoss})
	if !(huber < squared/4 && median < squared/4) {
		t.Errorf("errors of squared loss %.3f, Huber %.3f, median %.3f", squared, huber, median)
	}
}

func TestRobustConformance(t *testing.T) {
	good := Params{Kernel: kerneltest.Gaussian(1.5), Lambda: 1e-4, Centers: 40, Tolerance: 1e-6, Iterations: 60}
	for name, p := range map[string]RobustParams{
		"huber":    {Params: good, Loss: learners.HuberLoss, Delta: 0.5},
		"quantile": {Params: good, Loss: learners.QuantileLoss, Smoothing: 0.1, Steps: 100},
	} {
		t.Run(name, func(t *testing.T) {
			bad := func(change func(*RobustParams)) learners.Estimator {
				q := p
				change(&q)
				return q
			}
			learnerstest.Run(t, learnerstest.Case{
				New: func() learners.Estimator { return p }, AloneTolerance: 1e-4, Robust: true,
				Invalid: []learners.Estimator{
					bad(func(p *RobustParams) { p.Kernel = nil }),
					bad(func(p *RobustParams) { p.Loss = "" }),
					bad(func(p *RobustParams) { p.Quantile = 1 }),
					bad(func(p *RobustParams) { p.Delta = -1 }),
					bad(func(p *RobustParams) { p.Smoothing = math.NaN() }),
					bad(func(p *RobustParams) { p.Decay = 1 }),
					bad(func(p *RobustParams) { p.Steps = -1 }),
					bad(func(p *RobustParams) { p.Solver = Gradient }),
				},
			})
		})
	}
	huber := RobustParams{Params: good, Loss: learners.HuberLoss, Delta: 0.5}
	huber.Centers, huber.Lambda, huber.Tolerance, huber.Iterations, huber.Steps = 10_000, 1e-3, 1e-9, 100, 200
	learnerstest.Weights(t, huber, false, 1e-6)
}
