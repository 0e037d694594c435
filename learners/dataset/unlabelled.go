package dataset

import (
	"context"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Labelled returns the table without the rows that lack a target, and the number of
// these rows. The targets are those of the encoding, or of the table if e is nil.
// Errors name rows by their number in the files as before. It reads the cells once if a
// target is missing anywhere. It returns a [*FileError] if no row is left.
//
// The new table shares the cells with t. Close only one of the two.
func (t *Table) Labelled(ctx context.Context, e *data.Encoding) (*Table, int, error) {
	targets := t.targets
	if e != nil {
		var err error
		if _, targets, err = t.locate(e); err != nil {
			return nil, 0, err
		}
	}
	missing := func(c int) bool { return t.columns[c].Missing > 0 }
	if !slices.ContainsFunc(targets, missing) || t.sparse != nil { // sparse files always have targets
		return t, 0, nil
	}
	out, err := t.keep(ctx, "without a target", "no row has a target", func(_ int, cells []float64) bool {
		return !slices.ContainsFunc(targets, func(c int) bool { return cells[c] != cells[c] })
	})
	if err != nil {
		return nil, 0, err
	}
	return out, t.rows - out.rows, nil
}

// keep returns the table with the rows that are wanted, and notes how many others there are. The
// error for no row has the reason none.
func (t *Table) keep(ctx context.Context, others, none string, wanted func(row int, cells []float64) bool) (*Table, error) {
	var kept []int
	found := make([]columnBuilder, len(t.columns))
	err := t.scan(ctx, nil, func(row int, cells []float64) error {
		if !wanted(row, cells) {
			return nil
		}
		kept = append(kept, row)
		for c, v := range cells {
			if v != v {
				found[c].missing++
			} else {
				found[c].addNumber(v, 0, 0)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(kept) == 0:
		return nil, &FileError{File: t.report.Files[0], Reason: none}
	}
	out := *t
	out.rows, out.numbers, out.weights = len(kept), kept, data.Pick(t.weights, kept)
	if t.numbers != nil {
		out.numbers = data.Pick(t.numbers, kept)
	}
	if in, ok := t.cells.(kernel.Resident); ok {
		out.cells = kernel.FromRows(in.Rows().Select(kept))
	} else {
		out.cells = &keptRows{t.cells, kept}
	}
	out.columns = slices.Clone(t.columns)
	for c := range out.columns {
		col, f := &out.columns[c], &found[c]
		if col.Missing = f.missing; col.Kind != data.Text {
			col.Values = f.different
		}
		if col.Kind == data.Numeric {
			col.Min, col.Max, col.Whole = f.min, f.max, f.numbers > 0 && !f.fraction
		}
	}
	out.report.Rows, out.report.Columns = out.rows, out.columns
	out.report.Notes = append(slices.Clone(t.report.Notes), count(t.rows-len(kept), "row")+" "+others+" skipped")
	return &out, nil
}

// number returns the number of a row in the files, from 1.
func (t *Table) number(row int) int {
	if t.numbers != nil {
		row = t.numbers[row]
	}
	return row + 1
}

// place returns where a row was read. The file is empty if there is only one.
func (t *Table) place(row int) (file string, within int) {
	if len(t.parts) < 2 {
		return "", t.number(row)
	}
	return t.parts.at(t.number(row))
}

// keptRows is some rows of a source, in order.
type keptRows struct {
	src  kernel.Source
	rows []int
}

// Len returns the number of rows.
func (s *keptRows) Len() int { return len(s.rows) }

// Dim returns the number of columns.
func (s *keptRows) Dim() int { return s.src.Dim() }

// Open starts a pass.
func (s *keptRows) Open(ctx context.Context) (kernel.Cursor, error) {
	all, err := s.src.Open(ctx)
	return &keptCursor{rows: s.rows, all: all}, err
}

type keptCursor struct {
	rows []int // still to come
	all  kernel.Cursor
	buf  kernel.Rows
	pos  int // rows read
}

// Next returns the next rows that are kept.
func (c *keptCursor) Next(ctx context.Context, max int, _ kernel.Rows) (kernel.Rows, error) {
	want := min(max, len(c.rows))
	if want == 0 {
		return nil, io.EOF
	}
	var parts []kernel.Rows
	for want > 0 {
		// It stops at the last row of this block, because the next block begins after
		// it.
		block, err := c.all.Next(ctx, min(scanBlock, c.rows[want-1]+1-c.pos), c.buf)
		if err == io.EOF {
			return nil, &kernel.SourceError{Row: c.pos, Err: kernel.ErrSource}
		} else if err != nil {
			return nil, err
		}
		c.buf = block
		var local []int
		for want > 0 && c.rows[0] < c.pos+block.Len() {
			local = append(local, c.rows[0]-c.pos)
			c.rows = c.rows[1:]
			want--
		}
		c.pos += block.Len()
		if len(local) > 0 {
			parts = append(parts, block.Select(local))
		}
	}
	return parts[0].Concat(parts[1:]...)
}

// Close ends the pass.
func (c *keptCursor) Close() error { return c.all.Close() }
