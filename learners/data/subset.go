package data

import (
	"context"
	"io"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Subset returns the given rows of src, such as a part of a split. Their indices do not
// decrease, and a row may repeat. It is a copy if src is in memory. Otherwise each pass
// reads src up to the last of the rows.
func Subset(src Source, rows []int) (Source, error) {
	if rows == nil {
		rows = []int{}
	}
	if err := checkRows(rows, src.Len(), true); err != nil {
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
	buf *Block // rows of s.src before pos
	at  int    // rows given
	pos int    // rows of s.src read
}

func (c *subsetCursor) Next(ctx context.Context, max int, _ *Block) (*Block, error) {
	rows := c.s.rows[c.at:min(c.at+max, len(c.s.rows))]
	if len(rows) == 0 {
		return nil, io.EOF
	}
	outputs, last := c.s.Outputs(), rows[len(rows)-1]
	var parts []kernel.Rows
	y := make([]float64, 0, len(rows)*outputs)
	for at := 0; at < len(rows); {
		if rows[at] >= c.pos {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			// It stops at the last row of this block, because the next may need others.
			b, err := c.all.Next(ctx, min(blockRows, last+1-c.pos), c.buf)
			if err == io.EOF {
				return nil, &kernel.SourceError{Row: c.pos, Err: kernel.ErrSource}
			} else if err != nil {
				return nil, err
			}
			c.buf, c.pos = b, c.pos+b.X.Len()
		}
		var local []int
		for first := c.pos - c.buf.X.Len(); at < len(rows) && rows[at] < c.pos; at++ {
			k := rows[at] - first
			local = append(local, k)
			y = append(y, c.buf.Y[k*outputs:(k+1)*outputs]...)
		}
		if len(local) > 0 {
			parts = append(parts, c.buf.X.Select(local))
		}
	}
	c.at += len(rows)
	x, err := parts[0].Concat(parts[1:]...)
	return &Block{x, y}, err
}

func (c *subsetCursor) Close() error { return c.all.Close() }
