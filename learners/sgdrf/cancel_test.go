package sgdrf

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

// A fit that is cancelled in its first pass returns the model of the last step, from
// the rows so far.
func TestCancelInFirstPass(t *testing.T) {
	rng := kerneltest.Seeded(t, 22)
	train := sines(rng, 400, 2, 1, 0.1)
	for _, averaging := range []Averaging{None, Tail, All} {
		p := Params{Kernel: kerneltest.Gaussian(1), Features: 20, BatchSize: 10, StepSize: 0.5, Passes: 3, Sampling: minibatch.Cycle, Chunk: 50, Averaging: averaging}
		ctx, cancel := context.WithCancel(background)
		got, err := p.Fit(ctx, learnerstest.Ending(train, 100, cancel), learners.Options{Seed: 3})
		if !errors.Is(err, context.Canceled) || got == nil {
			t.Fatalf("%s: %v, %v", averaging, got, err)
		}
		p.Passes = 1
		want := fit(t, p, must(data.Subset(train, learnerstest.First(100))), learners.Options{Seed: 3})
		if !slices.Equal(got.(*learners.Linear).Weights(), want.Weights()) {
			t.Errorf("%s: not the model of the first 100 rows", averaging)
		}
	}
	ctx, cancel := context.WithCancel(background)
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 20, StepSize: 0.5}
	if got, err := p.Fit(ctx, learnerstest.Ending(train, 0, cancel), learners.Options{}); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before the first step: %v, %v", got, err)
	}
}
