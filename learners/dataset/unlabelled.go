package dataset

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// Labelled returns the table without the rows that lack a target, and the number of
// these rows. The targets are those of the encoding, or of the table if e is nil. It returns a
// [*FileError] if no row is left. The new table shares the cells with t. Close only one of them.
func (t *Table) Labelled(ctx context.Context, e *data.Encoding) (*Table, int, error) {
	targets := t.targets
	if e != nil {
		var err error
		if _, targets, err = t.locate(e); err != nil {
			return nil, 0, err
		}
	}
	if !slices.ContainsFunc(targets, func(c int) bool { return t.columns[c].Missing > 0 }) || t.sparse != nil { // which always have targets
		return t, 0, nil
	}
	out, err := t.keep(ctx, "without a target", "no row has a target; name another column as target", func(_ int, cells []float64) bool {
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
	out.kept = slices.Clone(t.kept)
	for i := range out.kept {
		out.kept[i].Cells = data.Pick(t.kept[i].Cells, kept)
	}
	if out.cells, err = data.Subset(t.cells, kept); err != nil {
		return nil, err
	}
	out.columns = slices.Clone(t.columns)
	for c := range out.columns {
		col, f := &out.columns[c], &found[c]
		if col.Missing = f.missing; col.Kind != data.Text {
			col.Values = f.different
		}
		if col.Kind.IsNumber() {
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
