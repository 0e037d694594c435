package falkon

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
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
		changed(func(p *Params) { p.RowWeights = []float64{1, -1} }),
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
