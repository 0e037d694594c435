package kerneltest

import (
	"context"
	"io"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Source yields rows strictly in order, in its own memory, and reuses every returned
// block. Its faults are off when zero.
type Source struct {
	rows kernel.Rows
	// Err is returned instead of the block that contains row ErrAt.
	Err   error
	ErrAt int
	// Announce is added to the true Len.
	Announce int
	// Short makes every block one row short.
	Short bool
	// Opened and Closed count the passes.
	Opened, Closed int
}

// Sequential returns a source of the given rows.
func Sequential(rows kernel.Rows) *Source { return &Source{rows: rows} }

// Len returns the number of rows that the source claims to have.
func (s *Source) Len() int { return s.rows.Len() + s.Announce }

// Dim returns the rows' dimension.
func (s *Source) Dim() int { return s.rows.Dim() }

// Open starts a pass.
func (s *Source) Open(context.Context) (kernel.Cursor, error) {
	s.Opened++
	return &cursor{src: s}, nil
}

type cursor struct {
	src *Source
	at  int
}

func (c *cursor) Next(_ context.Context, limit int, reuse kernel.Rows) (kernel.Rows, error) {
	rows := c.src.rows
	i, j := c.at, min(c.at+limit, rows.Len())
	if c.src.Err != nil && i <= c.src.ErrAt && c.src.ErrAt < i+limit {
		return nil, c.src.Err
	}
	if i == j {
		return nil, io.EOF
	}
	if c.src.Short && j-i > 1 {
		j--
	}
	c.at = j
	return copyInto(reuse, rows.Slice(i, j)), nil
}

func (c *cursor) Close() error {
	c.src.Closed++
	return nil
}

// copyInto copies block into the memory of reuse if it fits.
func copyInto(reuse, block kernel.Rows) kernel.Rows {
	switch to := reuse.(type) {
	case *kernel.Points[float64]:
		return copyPoints(to, block)
	case *kernel.Points[float32]:
		return copyPoints(to, block)
	}
	idx := make([]int, block.Len())
	for i := range idx {
		idx[i] = i
	}
	return block.Select(idx)
}

func copyPoints[T kernel.Float](to *kernel.Points[T], block kernel.Rows) kernel.Rows {
	from := block.(*kernel.Points[T])
	n, d := from.Len(), from.Dim()
	if len(to.Data()) < n*d {
		return copyInto(nil, block)
	}
	out := kernel.NewPoints(n, d, to.Data())
	for i := range n {
		copy(out.Row(i), from.Row(i))
	}
	return out
}
