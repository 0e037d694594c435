package data

import (
	"context"
	"io"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Subset returns the given rows of src, such as a part of a split. Their indices
// increase. It is a copy if src is in memory. Otherwise each pass reads src up to the
// last of the rows.
func Subset(src Source, rows []int) (Source, error) {
	if rows == nil {
		rows = []int{}
	}
	if err := CheckRows(rows, src.Len()); err != nil {
		return nil, err
	}
	m, ok := src.(*Memory)
	if !ok {
		return &subset{src, rows}, nil
	}
	y := make([]float64, 0, len(rows)*m.c)
	for _, i := range rows {
		y = append(y, m.y[i*m.c:(i+1)*m.c]...)
	}
	return NewMemory(m.x.Select(rows), y, m.c)
}

type subset struct {
	src  Source
	rows []int
}

func (s *subset) Len() int     { return len(s.rows) }
func (s *subset) Dim() int     { return s.src.Dim() }
func (s *subset) Outputs() int { return s.src.Outputs() }

func (s *subset) Open(ctx context.Context) (kernel.Cursor, error) { return OpenInputs(ctx, s) }

func (s *subset) OpenPairs(ctx context.Context) (PairCursor, error) {
	all, err := s.src.OpenPairs(ctx)
	if err != nil {
		return nil, err
	}
	return &subsetCursor{s: s, all: all}, nil
}

type subsetCursor struct {
	s   *subset
	all PairCursor
	buf *Block // of all rows, for reuse
	at  int    // rows given
	pos int    // rows of s.src read
}

func (c *subsetCursor) Next(ctx context.Context, max int, _ *Block) (*Block, error) {
	want := min(max, len(c.s.rows)-c.at)
	if want == 0 {
		return nil, io.EOF
	}
	outputs := c.s.Outputs()
	var parts []kernel.Rows
	y := make([]float64, 0, want*outputs)
	for got := 0; got < want; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// It stops at the last row of this block, because the rows after it belong to
		// the next.
		last := c.s.rows[c.at+want-1-got]
		b, err := c.all.Next(ctx, min(blockRows, last+1-c.pos), c.buf)
		if err == io.EOF {
			return nil, &kernel.SourceError{Row: c.pos, Err: kernel.ErrSource}
		} else if err != nil {
			return nil, err
		}
		c.buf = b
		var local []int
		for c.at < len(c.s.rows) && c.s.rows[c.at] < c.pos+b.X.Len() {
			k := c.s.rows[c.at] - c.pos
			local = append(local, k)
			y = append(y, b.Y[k*outputs:(k+1)*outputs]...)
			c.at++
		}
		c.pos += b.X.Len()
		got += len(local)
		if len(local) > 0 {
			parts = append(parts, b.X.Select(local))
		}
	}
	x, err := parts[0].Concat(parts[1:]...)
	return &Block{x, y}, err
}

func (c *subsetCursor) Close() error { return c.all.Close() }
