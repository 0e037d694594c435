package nystrom

import (
	"context"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// counting is a source that counts the rows in use, which were returned by Next and
// neither handed back nor closed.
type counting struct {
	data.Source
	out, most, passes int
}

func (s *counting) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	c, err := s.Source.OpenPairs(ctx)
	s.passes++
	return &countingCursor{PairCursor: c, s: s, blocks: map[kernel.Rows]int{}}, err
}

func (s *counting) Open(ctx context.Context) (kernel.Cursor, error) {
	c, err := s.Source.Open(ctx)
	s.passes++
	return &countingInputs{Cursor: c, s: s}, err
}

func (s *counting) give(rows int) {
	s.out += rows
	s.most = max(s.most, s.out)
}

type countingCursor struct {
	data.PairCursor
	s      *counting
	blocks map[kernel.Rows]int
}

func (c *countingCursor) Next(ctx context.Context, most int, reuse *data.Block) (*data.Block, error) {
	if reuse != nil {
		c.s.out -= c.blocks[reuse.X]
		delete(c.blocks, reuse.X)
	}
	b, err := c.PairCursor.Next(ctx, most, reuse)
	if err == nil {
		c.blocks[b.X] = b.X.Len()
		c.s.give(b.X.Len())
	}
	return b, err
}

func (c *countingCursor) Close() error {
	for _, rows := range c.blocks {
		c.s.out -= rows
	}
	return c.PairCursor.Close()
}

// countingInputs counts as if each block were handed back when the next is read. In
// fact each goroutine of an Operator holds one.
type countingInputs struct {
	kernel.Cursor
	s    *counting
	last int
}

func (c *countingInputs) Next(ctx context.Context, most int, reuse kernel.Rows) (kernel.Rows, error) {
	c.s.out -= c.last
	c.last = 0
	x, err := c.Cursor.Next(ctx, most, reuse)
	if err == nil {
		c.last = x.Len()
		c.s.give(c.last)
	}
	return x, err
}

func (c *countingInputs) Close() error {
	c.s.out -= c.last
	return c.Cursor.Close()
}

// TestMemory checks that the solvers hold at most a few thousand rows of data outside
// memory, for any n. SGD is excepted, as its chunks are larger.
func TestMemory(t *testing.T) {
	racetest.Alone(t)
	for _, n := range []int{2500, 6000} {
		src, err := data.Generate[float32](data.SUSYLike{Seed: 1}, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Params{
			{Lambda: 1e-3, Centers: 20},
			{Lambda: 1e-3, Centers: 20, Solver: CG, Iterations: 2},
			{Centers: 20, Solver: Gradient, Iterations: 12, StepSize: 1},
			{Lambda: 1e-3, Centers: 20, Sampler: sketch.BLESS{}, SamplerLambda: 0.02},
		} {
			p.Kernel = kerneltest.Gaussian(4)
			count := &counting{Source: src}
			m, err := p.Fit(context.Background(), count, learners.Options{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			y, err := data.Targets(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			if e := learners.ClassError(predict(t, m, src), y, 1); e > 0.35 {
				t.Errorf("n = %d, solver %q: class error %v", n, p.Solver, e)
			}
			if count.most > 2048 || count.out != 0 {
				t.Errorf("n = %d, solver %q: %d rows out at once, %d for ever, in %d passes", n, p.Solver, count.most, count.out, count.passes)
			}
		}
	}
}
