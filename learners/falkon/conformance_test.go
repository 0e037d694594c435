package falkon

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/sketch"
)

func TestConformance(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	good := Params{Kernel: k, Lambda: 1e-4, Centers: 30}
	changed := func(change func(*Params)) Params {
		p := good
		change(&p)
		return p
	}
	invalid := []learners.Estimator{
		changed(func(p *Params) { p.Kernel = nil }),
		changed(func(p *Params) { p.Lambda = -1 }),
		changed(func(p *Params) { p.Lambda = math.NaN() }),
		changed(func(p *Params) { p.Lambda = math.Inf(1) }),
		changed(func(p *Params) { p.Centers = -1 }),
		changed(func(p *Params) { p.SamplerLambda = -1 }),
		changed(func(p *Params) { p.Iterations = -1 }),
		changed(func(p *Params) { p.Tolerance = -1 }),
		changed(func(p *Params) { p.Epsilon = -1 }),
		changed(func(p *Params) { p.Epsilon = 1 }),
		changed(func(p *Params) { p.Solver = "newton" }),
		changed(func(p *Params) { p.Factorization = "lu" }),
		changed(func(p *Params) { p.Distances = 3 }),
		changed(func(p *Params) { p.Distances = -1 }),
	}
	for name, p := range map[string]Params{
		"defaults": {Kernel: k},
		"uniform":  good,
		"bless":    {Kernel: k, Lambda: 1e-4, Sampler: sketch.BLESS{}},
		"cholesky": {Kernel: k, Lambda: 1e-4, Centers: 30, Factorization: FactorCholesky},
		"eigen":    {Kernel: k, Lambda: 1e-4, Centers: 30, Factorization: FactorEigen},
		"qr":       {Kernel: k, Lambda: 1e-4, Centers: 30, Factorization: FactorQR},
		"gradient": {Kernel: k, Lambda: 1e-3, Centers: 30, Solver: Gradient},
	} {
		t.Run(name, func(t *testing.T) {
			// Each output ends by its own residual, and one output alone is summed in
			// another order. That may cost one iteration more or less.
			tolerance := 1e-4
			learnerstest.Run(t, learnerstest.Case{New: func() learners.Estimator { return p }, Invalid: invalid, AloneTolerance: tolerance})
		})
	}
}

func TestWeightsAreRepeatedRows(t *testing.T) {
	k := kerneltest.Gaussian(1.5)
	const all = 10_000
	for name, p := range map[string]Params{
		"pivoted":  {Kernel: k, Lambda: 1e-3, Centers: all, Iterations: 200, Tolerance: 1e-12},
		"qr":       {Kernel: k, Lambda: 1e-3, Centers: all, Iterations: 200, Tolerance: 1e-12, Factorization: FactorQR},
		"gradient": {Kernel: k, Lambda: 1e-2, Centers: all, Iterations: 400, Tolerance: 1e-12, Solver: Gradient},
	} {
		t.Run(name, func(t *testing.T) { learnerstest.Weights(t, p, false, 1e-7) })
	}
	t.Run("logistic", func(t *testing.T) {
		learnerstest.Weights(t, LogisticParams{Params: Params{Kernel: k, Lambda: 1e-3, Centers: all, Iterations: 60, Tolerance: 1e-9}, Steps: 200}, true, 1e-6)
	})
	t.Run("softmax", func(t *testing.T) {
		train := oneHot(kerneltest.Seeded(t, 31), 60, 2, 3)
		weights := make([]float64, 60)
		var often []int
		var y []float64
		for i := range weights {
			weights[i] = float64(i % 3)
			for range i % 3 {
				often, y = append(often, i), append(y, train.Targets()[3*i:][:3]...)
			}
		}
		repeated := must(data.NewMemory(train.Rows().Select(often), y, 3))
		p := LogisticParams{Params: Params{Kernel: k, Lambda: 1e-3, Centers: all, Iterations: 60, Tolerance: 1e-9}, Multiclass: SoftmaxLoss, Steps: 200}
		test := kerneltest.Points(kerneltest.Seeded(t, 32), 40, 2)
		got := predict(t, must(p.Fit(background, train, learners.Options{Weights: weights})), test)
		requireNear(t, "softmax", got, predict(t, must(p.Fit(background, repeated, learners.Options{})), test), 1e-6)
	})
}
