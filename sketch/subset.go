package sketch

import (
	"context"
	"io"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// subset is the rows idx[0], idx[1], … of resident rows as a source, copied
// block by block as they are read.
type subset struct {
	rows kernel.Rows
	idx  []int
}

// subsetOf returns the chosen rows of src as a source. It does not copy them at once if
// src is resident, and otherwise gathers them in one pass.
func subsetOf(ctx context.Context, k kernel.Kernel, src kernel.Source, idx []int) (kernel.Source, error) {
	if r, ok := src.(kernel.Resident); ok {
		return subset{r.Rows(), idx}, nil
	}
	rows, err := selectRows(ctx, k, src, idx)
	if err != nil {
		return nil, err
	}
	return kernel.FromRows(rows), nil
}

func (s subset) Len() int { return len(s.idx) }
func (s subset) Dim() int { return s.rows.Dim() }

func (s subset) Open(context.Context) (kernel.Cursor, error) {
	return &subsetCursor{s}, nil
}

type subsetCursor struct{ left subset }

func (c *subsetCursor) Next(_ context.Context, max int, _ kernel.Rows) (kernel.Rows, error) {
	n := min(max, len(c.left.idx))
	if n == 0 {
		return nil, io.EOF
	}
	x := c.left.rows.Select(c.left.idx[:n])
	c.left.idx = c.left.idx[n:]
	return x, nil
}

func (c *subsetCursor) Close() error { return nil }
