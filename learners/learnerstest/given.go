package learnerstest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// Fixed is a sampler of given rows, which may repeat. Their weights are those of uniform rows.
type Fixed []int

func (f Fixed) Sample(ctx context.Context, _ kernel.Kernel, src kernel.Source, lambda float64, _ *rand.Rand) (*sketch.Dictionary, error) {
	points, err := kernel.Select(ctx, src, f)
	if err != nil {
		return nil, err
	}
	weights := slices.Repeat([]float64{float64(len(f)) / float64(src.Len())}, len(f))
	return &sketch.Dictionary{N: src.Len(), Level: sketch.Level{Lambda: lambda, Indices: f, Weights: weights, Points: points}}, nil
}

// Ending returns src as a source that calls end when rows from at on are read. end ends
// a context.
func Ending(src data.Source, at int, end func()) data.Source {
	return ending{src, at, end}
}

type ending struct {
	data.Source
	at  int
	end func()
}

func (e ending) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	c, err := e.Source.OpenPairs(ctx)
	return &endingCursor{PairCursor: c, ending: e}, err
}

type endingCursor struct {
	data.PairCursor
	ending
	read int
}

func (c *endingCursor) Next(ctx context.Context, most int, reuse *data.Block) (*data.Block, error) {
	if c.read += most; c.read > c.at {
		c.end()
	}
	return c.PairCursor.Next(ctx, most, reuse)
}

// RequireClose ends the test unless |got − want| ≤ tolerance·max|want| everywhere.
func RequireClose(tb testing.TB, what string, got, want []float64, tolerance float64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance*scale) {
			tb.Fatalf("%s: element %d is %g, want %g (±%g·%g)", what, i, got[i], want[i], tolerance, scale)
		}
	}
}

// First returns the numbers of the first n rows.
func First(n int) []int {
	idx := make([]int, n)
	for i := range idx {
		idx[i] = i
	}
	return idx
}
