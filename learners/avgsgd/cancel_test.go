package avgsgd

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

// A fit that is cancelled in its first pass returns the model of the rows so far.
func TestCancelInFirstPass(t *testing.T) {
	rng := kerneltest.Seeded(t, 22)
	x, y := make([]float64, 4096*2), make([]float64, 4096)
	for i := range y {
		x[2*i], x[2*i+1] = rng.NormFloat64(), rng.NormFloat64()
		y[i] = x[2*i] + 0.1*rng.NormFloat64()
	}
	train := must(data.NewMemory(kernel.NewPoints(4096, 2, x), y, 1))
	for _, averaging := range []Averaging{None, All} {
		p := Params{StepSize: 0.1, Sampling: minibatch.Cycle, Chunk: 1024, Averaging: averaging, Passes: 3}
		ctx, cancel := context.WithCancel(background)
		got, err := p.Fit(ctx, learnerstest.Ending(train, 2048, cancel), learners.Options{Seed: 3})
		if !errors.Is(err, context.Canceled) || got == nil {
			t.Fatalf("%s: %v, %v", averaging, got, err)
		}
		p.Passes = 1
		want := must(p.Fit(background, must(data.Subset(train, learnerstest.First(2048))), learners.Options{Seed: 3}))
		if !slices.Equal(got.(*learners.Linear).Weights(), want.(*learners.Linear).Weights()) {
			t.Errorf("%s: not the model of the first 2048 rows", averaging)
		}
	}
}

// The kernelised form also gives a model from its first step on.
func TestCancelKernelised(t *testing.T) {
	rng := kerneltest.Seeded(t, 23)
	x, y := make([]float64, 300), make([]float64, 300)
	for i := range y {
		x[i] = rng.NormFloat64()
		y[i] = x[i]
	}
	train := must(data.NewMemory(kernel.NewPoints(300, 1, x), y, 1))
	p := Params{Kernel: must(kernel.NewGaussian(1)), Passes: 1}
	models := 0
	for calls := range 100 {
		m, err := p.Fit(&learnerstest.Counting{Context: background, Left: calls}, train, learners.Options{})
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d calls: %v", calls, err)
		}
		if m != nil {
			models++
		} else if models > 0 {
			t.Errorf("after %d calls: no model, but one after fewer", calls)
		}
	}
	if models < 2 {
		t.Errorf("%d of the fits that were cancelled had a model", models)
	}
}
