package sgdrf

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

// ending is a source that ends a context when row at is asked for.
type ending struct {
	dataset.Source
	at  int
	end func()
}

func (e ending) OpenPairs(ctx context.Context) (dataset.PairCursor, error) {
	c, err := e.Source.OpenPairs(ctx)
	return &endingCursor{PairCursor: c, ending: e}, err
}

type endingCursor struct {
	dataset.PairCursor
	ending
	read int
}

func (c *endingCursor) Next(ctx context.Context, most int, reuse *dataset.Block) (*dataset.Block, error) {
	if c.read += most; c.read > c.at {
		c.end()
	}
	return c.PairCursor.Next(ctx, most, reuse)
}

// A fit that is cancelled in its first pass returns the model of the last step:
// that of the rows so far.
func TestCancelInFirstPass(t *testing.T) {
	rng := seeded(t, 22)
	train := sines(rng, 400, 2, 1, 0.1)
	for _, averaging := range []Averaging{None, Tail, All} {
		p := Params{Kernel: gaussian(1), Features: 20, BatchSize: 10, StepSize: 0.5, Passes: 3, Sampling: minibatch.Cycle, Chunk: 50, Averaging: averaging}
		ctx, cancel := context.WithCancel(background)
		got, err := p.Fit(ctx, ending{train, 100, cancel}, learners.Options{Seed: 3})
		if !errors.Is(err, context.Canceled) || got == nil {
			t.Fatalf("%s: %v, %v", averaging, got, err)
		}
		p.Passes = 1
		want := fit(t, p, must(dataset.Subset(train, first(100))), learners.Options{Seed: 3})
		if !slices.Equal(got.(*learners.Linear).Weights(), want.Weights()) {
			t.Errorf("%s: not the model of the first 100 rows", averaging)
		}
	}
	ctx, cancel := context.WithCancel(background)
	p := Params{Kernel: gaussian(1), Features: 20, StepSize: 0.5}
	if got, err := p.Fit(ctx, ending{train, 0, cancel}, learners.Options{}); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before the first step: %v, %v", got, err)
	}
}
