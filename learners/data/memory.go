package data

import (
	"context"
	"fmt"
	"io"

	"github.com/bkbtuner/bkb/gp/kernel"
)

var (
	_ Source          = (*Memory)(nil)
	_ kernel.Resident = (*Memory)(nil)
)

// Memory is a Source in memory.
type Memory struct {
	x kernel.Rows
	y []float64
	c int
}

// NewMemory returns the n inputs x with the targets y, n×c row-major, without copying.
// A target that is not finite is a [*CellError].
func NewMemory(x kernel.Rows, y []float64, c int) (*Memory, error) {
	if c < 0 || len(y) != x.Len()*c {
		return nil, &kernel.ShapeError{In: "data", What: "y (n×c)", Got: len(y), Want: fmt.Sprintf("n·c = %d·%d", x.Len(), c)}
	}
	for i, v := range y {
		if v-v != 0 {
			return nil, &CellError{Row: i/c + 1, Column: TargetNames(c)[i%c], Reason: fmt.Sprintf("the target is %v", v)}
		}
	}
	return &Memory{x, y, c}, nil
}

// FromSlices returns inputs x, n rows of d numbers, with one target each, in memory. If y is nil
// there are no targets, which is enough to predict. It copies x and keeps y. It returns a
// [*kernel.ShapeError] for wrong lengths, and a [*CellError] for a target that is not finite.
func FromSlices[T kernel.Float](x [][]T, y []float64) (*Memory, error) {
	if len(x) == 0 {
		return nil, &kernel.ShapeError{In: "data", What: "x (rows)", Got: 0, Want: "≥ 1"}
	}
	d := len(x[0])
	cells := make([]T, 0, len(x)*d)
	for i, row := range x {
		if len(row) != d || d == 0 {
			return nil, &kernel.ShapeError{In: "data", What: fmt.Sprintf("row %d of x", i+1), Got: len(row), Want: fmt.Sprintf("d = %d ≥ 1", d)}
		}
		cells = append(cells, row...)
	}
	c := 1
	if y == nil {
		c = 0
	}
	return NewMemory(kernel.NewPoints(len(x), d, cells), y, c)
}

// Len returns n.
func (m *Memory) Len() int { return m.x.Len() }

// Dim returns d.
func (m *Memory) Dim() int { return m.x.Dim() }

// Outputs returns c.
func (m *Memory) Outputs() int { return m.c }

// Rows returns X.
func (m *Memory) Rows() kernel.Rows { return m.x }

// Targets returns Y, n×c row-major, which the caller must not change.
func (m *Memory) Targets() []float64 { return m.y }

// Open starts a pass over X.
func (m *Memory) Open(ctx context.Context) (kernel.Cursor, error) {
	return kernel.FromRows(m.x).Open(ctx)
}

// OpenPairs starts a pass over X and Y.
func (m *Memory) OpenPairs(context.Context) (PairCursor, error) { return &memoryCursor{m: m}, nil }

type memoryCursor struct {
	m  *Memory
	at int
}

func (c *memoryCursor) Next(_ context.Context, max int, _ *Block) (*Block, error) {
	i, m := c.at, c.m
	if i == m.Len() {
		return nil, io.EOF
	}
	c.at += min(max, m.Len()-i)
	return &Block{m.x.Slice(i, c.at), m.y[i*m.c : c.at*m.c]}, nil
}

func (c *memoryCursor) Close() error { return nil }

// Load reads src into memory, unless it is there already.
func Load(ctx context.Context, src Source) (*Memory, error) {
	if m, ok := src.(*Memory); ok {
		return m, nil
	}
	var parts []kernel.Rows
	var x kernel.Rows
	var y []float64
	rows := 0
	err := each(ctx, src, false, func(b *Block) (err error) {
		parts = append(parts, b.X)
		y = append(y, b.Y...)
		if rows += b.X.Len(); rows == src.Len() { // before Close, because the blocks end with it
			x, err = parts[0].Concat(parts[1:]...)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return NewMemory(x, y, src.Outputs())
}

// Targets returns Y, n×c row-major. It reads src once unless src is in memory. The
// caller must not change the result.
func Targets(ctx context.Context, src Source) (y []float64, err error) {
	if m, ok := src.(*Memory); ok {
		return m.y, nil
	}
	y = make([]float64, 0, src.Len()*src.Outputs())
	err = each(ctx, src, true, func(b *Block) error {
		y = append(y, b.Y...)
		return nil
	})
	return y, err
}

// blockRows is the number of rows that a pass of this package reads at once.
const blockRows = 1024

// each calls visit for every block of a pass. With reuse a block is valid during
// the call only, otherwise to the end of the pass.
func each(ctx context.Context, src Source, reuse bool, visit func(*Block) error) error {
	cursor, err := src.OpenPairs(ctx)
	if err != nil {
		return err
	}
	defer cursor.Close()
	rows := 0
	var old *Block
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := cursor.Next(ctx, blockRows, old)
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		rows += b.X.Len()
		if err := visit(b); err != nil {
			return err
		}
		if reuse {
			old = b
		}
	}
	if rows != src.Len() || rows == 0 {
		return &kernel.SourceError{Row: rows, Err: kernel.ErrSource}
	}
	return nil
}

// TargetNames returns names for c unnamed targets. They are "target", or "target 1",
// "target 2" and so on.
func TargetNames(c int) []string {
	if c == 1 {
		return []string{"target"}
	}
	var names []string
	for i := range c {
		names = append(names, fmt.Sprintf("target %d", i+1))
	}
	return names
}
