package dataset

import (
	"context"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Table is raw data as it was read. It has columns of numbers or of categories, with
// missing cells. A [data.Encoding] turns it into a [data.Source]. A Table is immutable
// and safe for concurrent reading.
type Table struct {
	rows    int
	columns []Column    // dense ones, targets included
	targets []int       // indices into columns, in the order asked for
	named   bool        // the names come from the file
	cells   data.Source // without targets
	sparse  kernel.Rows // inputs of sparse tables, *kernel.CSR[float32 or float64]
	single  bool        // inputs are float32
	weights []float64   // of the rows, or nil
	weigher string      // the column of the weights, or empty
	numbers []int       // of the rows in the files, from 0, or nil for all of them
	dropped []string    // names of columns that were not read
	kept    []Kept
	parts   parts // nil for a file of chunks
	report  Report
	close   func() error
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.rows }

// Columns returns the dense columns in the order of the file, targets included. The
// caller must not change them.
func (t *Table) Columns() []Column { return t.columns }

// Targets returns the indices of the target columns.
func (t *Table) Targets() []int { return slices.Clone(t.targets) }

// Sparse returns the inputs as sparse rows, *kernel.CSR, and whether the table has
// them. All dense columns are targets then.
func (t *Table) Sparse() (kernel.Rows, bool) { return t.sparse, t.sparse != nil }

// Cells returns all dense cells, targets included, as rows of numbers. NaN means
// missing, and a category is the index of its level.
func (t *Table) Cells() kernel.Source { return t.cells }

// Weights returns the weights of the rows, or nil if no column has them. The caller must
// not change them.
func (t *Table) Weights() []float64 { return t.weights }

// Kept is a column of Options.Keep.
type Kept struct {
	Name   string
	Cells  []string // of the rows, as the file has them, empty for a missing value
	column int      // of the file
}

// Kept returns the columns of Options.Keep. The caller must not change them.
func (t *Table) Kept() []Kept { return t.kept }

// Report returns the findings of Open.
func (t *Table) Report() *Report { return &t.report }

// Close releases the file behind the table, if there is one. Sources made from the
// table cannot be used afterwards.
func (t *Table) Close() error {
	if t.close == nil {
		return nil
	}
	return t.close()
}

// names returns the names of the dense columns.
func (t *Table) names() []string {
	names := make([]string, len(t.columns))
	for c := range names {
		names[c] = t.columns[c].Name
	}
	return names
}

// inputs returns the indices of the dense columns that are not targets.
func (t *Table) inputs() []int {
	in := make([]int, 0, len(t.columns))
	for c := range t.columns {
		if !slices.Contains(t.targets, c) {
			in = append(in, c)
		}
	}
	return in
}

// scanBlock is the number of rows that scans read at once.
const scanBlock = 1024

// scan calls visit for every row of the dense cells. If rows is not nil, it calls visit
// only for those rows, which must increase. The cells are valid during the call.
func (t *Table) scan(ctx context.Context, rows []int, visit func(row int, cells []float64) error) error {
	cursor, err := t.cells.OpenPairs(ctx)
	if err != nil {
		return err
	}
	defer cursor.Close()
	var block *data.Block
	buf := make([]float64, len(t.columns))
	for at := 0; at < t.rows; {
		if err := ctx.Err(); err != nil {
			return err
		}
		block, err = cursor.Next(ctx, scanBlock, block)
		if err == io.EOF {
			return &kernel.SourceError{Row: at, Err: kernel.ErrSource}
		} else if err != nil {
			return err
		}
		for i := range block.X.Len() {
			if rows != nil {
				if len(rows) == 0 {
					return nil
				}
				if rows[0] != at+i {
					continue
				}
				rows = rows[1:]
			}
			kernel.CopyRow(buf, block.X, i)
			if err := visit(at+i, buf); err != nil {
				return err
			}
		}
		at += block.X.Len()
	}
	return nil
}
