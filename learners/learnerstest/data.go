package learnerstest

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Dim is d of the data.
const Dim = 3

// Data returns n rows of a smooth function of 3 coordinates in about [−2, 2] with c ≥ 1 outputs
// and a little noise. The outputs are classes ±1 if signs is set. Output j does not depend on c.
func Data(tb testing.TB, n, c int, seed uint64, signs bool) *data.Memory {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	x := kernel.NewPoints[float64](n, Dim, nil)
	y := make([]float64, n*c)
	for i := range n {
		row := x.Row(i)
		for k := range row {
			row[k] = rng.NormFloat64()
		}
		noise := rand.New(rand.NewPCG(seed, uint64(i)+2))
		for j := range c {
			v := math.Sin(2*row[0]+float64(j)) + row[1]*math.Cos(float64(j)) - 0.5*row[2]*row[0] + 0.1*noise.NormFloat64()
			if signs {
				v = math.Copysign(1, v)
			}
			y[i*c+j] = v
		}
	}
	return Memory(tb, x, y, c)
}

// Memory is data.NewMemory for tests.
func Memory(tb testing.TB, x kernel.Rows, y []float64, c int) *data.Memory {
	tb.Helper()
	m, err := data.NewMemory(x, y, c)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Streamed returns src as a sequential source. It overwrites returned blocks with NaN
// to prove that no estimator relies on more.
func Streamed(src *data.Memory) data.Source { return streamed{src} }

type streamed struct{ data.Source }

func (s streamed) Open(ctx context.Context) (kernel.Cursor, error) { return data.OpenInputs(ctx, s) }

func (s streamed) OpenPairs(context.Context) (data.PairCursor, error) {
	return &cursor{src: s.Source.(*data.Memory), given: map[*data.Block]bool{}}, nil
}

type cursor struct {
	src   *data.Memory
	at    int
	given map[*data.Block]bool
}

func (c *cursor) Next(ctx context.Context, max int, reuse *data.Block) (*data.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if reuse != nil {
		if !c.given[reuse] {
			panic("learnerstest: a block handed back that this cursor did not give, or twice")
		}
		delete(c.given, reuse)
		spoil(reuse)
	}
	if c.at == c.src.Len() {
		return nil, io.EOF
	}
	end, outputs := min(c.at+max, c.src.Len()), c.src.Outputs()
	idx := make([]int, 0, end-c.at)
	for i := c.at; i < end; i++ {
		idx = append(idx, i)
	}
	b := &data.Block{
		X: c.src.Rows().Select(idx),
		Y: append([]float64(nil), c.src.Targets()[c.at*outputs:end*outputs]...),
	}
	c.at = end
	c.given[b] = true
	return b, nil
}

func spoil(b *data.Block) {
	switch x := b.X.(type) {
	case *kernel.Points[float64]:
		for i := range x.Data() {
			x.Data()[i] = math.NaN()
		}
	case *kernel.Points[float32]:
		for i := range x.Data() {
			x.Data()[i] = float32(math.NaN())
		}
	}
	for i := range b.Y {
		b.Y[i] = math.NaN()
	}
}

func (c *cursor) Close() error {
	for b := range c.given {
		spoil(b)
	}
	return nil
}

// untouchable is a source that fails the test when it is read.
type untouchable struct {
	data.Source
	tb testing.TB
}

func (u untouchable) Open(context.Context) (kernel.Cursor, error) {
	u.tb.Error("the data were read before the hyper-parameters were checked")
	return nil, io.ErrUnexpectedEOF
}

func (u untouchable) OpenPairs(context.Context) (data.PairCursor, error) {
	u.tb.Error("the data were read before the hyper-parameters were checked")
	return nil, io.ErrUnexpectedEOF
}

// Counting is a context that ends after Left calls of Err.
type Counting struct {
	context.Context
	Left int
}

// Err is context.Canceled from the end on.
func (c *Counting) Err() error {
	if c.Left--; c.Left < 0 {
		return context.Canceled
	}
	return nil
}
