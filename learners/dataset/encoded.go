package dataset

import (
	"context"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// materialise encodes all rows into memory.
func (p *plan) materialise(ctx context.Context) (data.Source, error) {
	if p.t.single {
		return materialise[float32](ctx, p)
	}
	return materialise[float64](ctx, p)
}

func materialise[T kernel.Float](ctx context.Context, p *plan) (*data.Memory, error) {
	n := p.t.rows
	x := kernel.NewPoints[T](n, p.d, nil)
	y := make([]float64, n*p.c)
	buf := make([]float64, p.d)
	err := p.t.scan(ctx, nil, func(i int, cells []float64) error {
		if err := p.row(i, cells, buf, y[i*p.c:(i+1)*p.c]); err != nil {
			return err
		}
		for k, v := range buf {
			x.Row(i)[k] = T(v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data.NewMemory(x, y, p.c)
}

// applySparse scales sparse rows.
func (p *plan) applySparse(ctx context.Context) (data.Source, error) {
	var x kernel.Rows
	var err error
	switch m := p.t.sparse.(type) {
	case *kernel.CSR[float32]:
		x, err = scaleSparse(m, p.e.Sparse)
	case *kernel.CSR[float64]:
		x, err = scaleSparse(m, p.e.Sparse)
	}
	if err != nil {
		return nil, err
	}
	y := make([]float64, p.t.rows*p.c)
	if p.c > 0 {
		err = p.t.scan(ctx, nil, func(i int, cells []float64) error {
			return p.row(i, cells, nil, y[i*p.c:(i+1)*p.c])
		})
	}
	if err != nil {
		return nil, err
	}
	return data.NewMemory(x, y, p.c)
}

// scaleSparse divides columns by their scales. The result has as many columns as
// the model.
func scaleSparse[T kernel.Float](m *kernel.CSR[T], in *data.SparseInputs) (kernel.Rows, error) {
	scales := make(map[int32]float64, len(in.Columns))
	for k, c := range in.Columns {
		scales[c] = in.Scales[k]
	}
	n := m.Len()
	ptr := make([]int, n+1)
	for i := range n {
		col, _ := m.Row(i)
		ptr[i+1] = ptr[i] + len(col)
	}
	cols, vals := make([]int32, 0, ptr[n]), make([]T, 0, ptr[n])
	for i := range n {
		col, val := m.Row(i)
		for k, c := range col {
			v := val[k]
			if s, scaled := scales[c]; scaled {
				v = T(float64(v) / s)
			}
			if v-v != 0 {
				return nil, &data.CellError{Row: i + 1, Column: positional(int(c)), Reason: "the value is too large beside those of the training rows"}
			}
			cols, vals = append(cols, c), append(vals, v)
		}
	}
	return kernel.NewCSR(n, in.Dim, ptr, cols, vals)
}

// encoded is a Source that encodes the rows of a table as they are read.
type encoded struct{ p *plan }

var _ data.Source = (*encoded)(nil)

// Len returns n.
func (s *encoded) Len() int { return s.p.t.rows }

// Dim returns d.
func (s *encoded) Dim() int { return s.p.d }

// Outputs returns c.
func (s *encoded) Outputs() int { return s.p.c }

// Open starts a pass over the inputs.
func (s *encoded) Open(ctx context.Context) (kernel.Cursor, error) { return data.OpenInputs(ctx, s) }

// OpenPairs starts a pass.
func (s *encoded) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	cells, err := s.p.t.cells.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &encodedCursor{
		p: s.p, cells: cells,
		row: make([]float64, len(s.p.t.columns)), x: make([]float64, s.p.d),
	}, nil
}

type encodedCursor struct {
	p      *plan
	cells  kernel.Cursor
	raw    kernel.Rows // the last block of cells, for reuse
	row, x []float64
	at     int
}

func (c *encodedCursor) Next(ctx context.Context, max int, reuse *data.Block) (*data.Block, error) {
	raw, err := c.cells.Next(ctx, max, c.raw)
	if err == io.EOF {
		return nil, err
	} else if err != nil {
		return nil, &kernel.SourceError{Row: c.at, Err: err}
	}
	c.raw = raw
	if c.p.t.single {
		return encodeBlock[float32](c, raw, reuse)
	}
	return encodeBlock[float64](c, raw, reuse)
}

func encodeBlock[T kernel.Float](c *encodedCursor, raw kernel.Rows, reuse *data.Block) (*data.Block, error) {
	n, outputs := raw.Len(), c.p.c
	if reuse == nil {
		reuse = &data.Block{}
	}
	x := data.ReusePoints[T](n, c.p.d, reuse.X)
	y := slices.Grow(reuse.Y[:0], n*outputs)[:n*outputs]
	for i := range n {
		kernel.CopyRow(c.row, raw, i)
		if err := c.p.row(c.at+i, c.row, c.x, y[i*outputs:(i+1)*outputs]); err != nil {
			return nil, &kernel.SourceError{Row: c.at + i, Err: err}
		}
		for k, v := range c.x {
			x.Row(i)[k] = T(v)
		}
	}
	c.at += n
	reuse.X, reuse.Y = x, y
	return reuse, nil
}

func (c *encodedCursor) Close() error { return c.cells.Close() }
