package data

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Generate returns rows first … first+n−1 of p with element type T. The Source stores
// no rows. It makes them at every pass, at about 1 µs each. Other rows of the same
// problem are new data for tests. It returns an error for n < 1.
func Generate[T kernel.Float](p Problem, first uint64, n int) (Source, error) {
	if n < 1 {
		return nil, fmt.Errorf("dataset: cannot generate %d rows, want 1 or more", n)
	}
	return &generated[T]{p, first, n}, nil
}

type generated[T kernel.Float] struct {
	p     Problem
	first uint64
	n     int
}

func (g *generated[T]) Len() int     { return g.n }
func (g *generated[T]) Dim() int     { return g.p.Dim() }
func (g *generated[T]) Outputs() int { return 1 }

func (g *generated[T]) Open(ctx context.Context) (kernel.Cursor, error) { return OpenInputs(ctx, g) }

func (g *generated[T]) OpenPairs(context.Context) (PairCursor, error) {
	return &generatedCursor[T]{g: g, sampler: g.p.Sampler(), x: make([]float64, g.p.Dim())}, nil
}

type generatedCursor[T kernel.Float] struct {
	g       *generated[T]
	sampler Sampler
	x       []float64
	at      int
}

func (c *generatedCursor[T]) Next(ctx context.Context, max int, reuse *Block) (*Block, error) {
	n := min(max, c.g.n-c.at)
	if n == 0 {
		return nil, io.EOF
	}
	if reuse == nil {
		reuse = &Block{}
	}
	x := ReusePoints[T](n, len(c.x), reuse.X)
	y := slices.Grow(reuse.Y[:0], n)[:n]
	for i := range n {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		y[i] = c.sampler.At(c.g.first+uint64(c.at+i), c.x)
		for k, v := range c.x {
			x.Row(i)[k] = T(v)
		}
	}
	c.at += n
	reuse.X, reuse.Y = x, y
	return reuse, nil
}

func (c *generatedCursor[T]) Close() error { return nil }
