package doublyonline

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

// A fit that is cancelled before its first iteration ends returns the function of
// the steps so far.
func TestCancelInFirstIteration(t *testing.T) {
	rng := kerneltest.Seeded(t, 22)
	train := waves(rng, 4000, 2, 1) // an iteration is 200 steps
	p := Params{Kernel: kerneltest.Gaussian(1), Features: 4, StepSize: 0.1, Sampling: minibatch.Cycle, Chunk: 100}
	ctx, cancel := context.WithCancel(context.Background())
	got, err := p.Fit(ctx, learnerstest.Ending(train, 100, cancel), learners.Options{Seed: 3})
	if !errors.Is(err, context.Canceled) || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	want := must(p.Fit(context.Background(), must(data.Subset(train, learnerstest.First(100))), learners.Options{Seed: 3}))
	a, b := got.(*learners.Linear), want.(*learners.Linear)
	if a.Spec().Features != b.Spec().Features || !slices.Equal(a.Weights(), b.Weights()) {
		t.Errorf("%d features, not the function of the first 100 rows, which has %d", a.Spec().Features, b.Spec().Features)
	}
	ctx, cancel = context.WithCancel(context.Background())
	if got, err := p.Fit(ctx, learnerstest.Ending(train, 0, cancel), learners.Options{}); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before the first step: %v, %v", got, err)
	}
}
