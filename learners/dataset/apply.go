package dataset

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Encode encodes the rows of the training data or of other data. If the table is in
// memory, the result is a *Memory with inputs of the table's precision. Otherwise its
// rows are read and encoded at every pass.
//
// The columns must be those that the encoding was fitted to, in any order if they have names.
// Targets may be absent, and the result then has none. It returns a [*ColumnsError], or a
// [*data.CellError] for missing cells and unknown categories. A source that is not in
// memory returns the latter while it is read.
func (t *Table) Encode(ctx context.Context, e *data.Encoding) (data.Source, error) {
	return t.encode(ctx, e, true)
}

// EncodeInputs is Encode without targets, which may be missing.
func (t *Table) EncodeInputs(ctx context.Context, e *data.Encoding) (data.Source, error) {
	return t.encode(ctx, e, false)
}

func (t *Table) encode(ctx context.Context, e *data.Encoding, labelled bool) (data.Source, error) {
	p, err := newPlan(e, t, labelled)
	if err != nil {
		return nil, err
	}
	_, resident := t.cells.(kernel.Resident)
	switch m := t.sparse.(type) {
	case *kernel.CSR[float32]:
		return scaled(ctx, p, m)
	case *kernel.CSR[float64]:
		return scaled(ctx, p, m)
	}
	switch {
	case !resident:
		return &encoded{p}, nil
	case t.single:
		return materialise[float32](ctx, p)
	}
	return materialise[float64](ctx, p)
}

// plan is an encoding bound to the columns of a table.
type plan struct {
	e       *data.Encoding
	t       *Table
	inputs  []planInput
	targets []planTarget
	d, c    int
}

type planInput struct {
	*data.Input
	column int   // in the table
	at     int   // first coordinate
	level  []int // of a code of the table, −1 if unknown
}

type planTarget struct {
	*data.Target
	column int
	class  []int           // of a code of the table, −1 if unknown
	number map[float64]int // class of a number
}

// newPlan finds the columns of the encoding in t, and those of targets only if wanted.
func newPlan(e *data.Encoding, t *Table, labelled bool) (*plan, error) {
	switch {
	case e.Sparse != nil && t.sparse == nil:
		return nil, &ColumnsError{Reason: "the model takes sparse rows, these are dense"}
	case e.Sparse == nil && t.sparse != nil:
		return nil, &ColumnsError{Reason: "the model takes dense columns, these rows are sparse"}
	case t.sparse != nil && t.sparse.Dim() > e.Sparse.Dim:
		return nil, &ColumnsError{Reason: fmt.Sprintf("feature %d is beyond the %d of the model", t.sparse.Dim(), e.Sparse.Dim)}
	}
	inputs, targets, err := t.locate(e)
	if err != nil {
		return nil, err
	}
	p := &plan{e: e, t: t, d: e.Dim()}
	at := 0
	for i := range e.Inputs {
		in, col := planInput{Input: &e.Inputs[i], column: inputs[i], at: at}, &t.columns[inputs[i]]
		at += in.Width()
		if col.Kind != in.Kind && col.Values > 0 && !(truthful(col.Kind) && truthful(in.Kind)) {
			return nil, kindError(col, in.Kind)
		}
		if in.Kind == data.Categorical {
			in.level = codes(col.Levels, in.Levels)
		}
		p.inputs = append(p.inputs, in)
	}
	if targets == nil || !labelled {
		return p, nil
	}
	p.c = e.Outputs()
	for i := range e.Targets {
		target := planTarget{Target: &e.Targets[i], column: targets[i]}
		if err := target.bind(e, &t.columns[target.column]); err != nil {
			return nil, err
		}
		p.targets = append(p.targets, target)
	}
	return p, nil
}

// locate returns the columns of t that are the inputs and the targets. targets is nil
// if t lacks some of them.
func (t *Table) locate(e *data.Encoding) (inputs, targets []int, err error) {
	if e.Sparse == nil {
		return locate(e, t.names(), t.named)
	}
	if len(t.targets) > 0 && len(e.Targets) > 0 {
		targets = []int{0}
	}
	return nil, targets, nil
}

// locate returns the columns that are the dense inputs and the targets of e.
func locate(e *data.Encoding, names []string, named bool) (inputs, targets []int, err error) {
	switch {
	case e.Named && !named:
		return nil, nil, &ColumnsError{Reason: "the model knows its columns by name, the data have no names; say so if their first row is a header"}
	case !e.Named && named:
		return nil, nil, &ColumnsError{Reason: "the model knows its columns by position, the data have names; say so if their first row is not a header"}
	case e.Named:
		return locateByName(e, names)
	}
	return locateByPosition(e, len(names))
}

func locateByPosition(e *data.Encoding, n int) (inputs, targets []int, err error) {
	whole := n == e.Columns
	if !whole && n != len(e.Inputs) {
		want := fmt.Sprint(e.Columns)
		if len(e.Inputs) < e.Columns {
			want += fmt.Sprintf(", or %d without targets", len(e.Inputs))
		}
		return nil, nil, &ColumnsError{Reason: fmt.Sprintf("there are %d columns, the model takes %s", n, want)}
	}
	for i := range e.Inputs {
		if inputs = append(inputs, i); whole {
			inputs[i] = e.Inputs[i].Position
		}
	}
	for i := range e.Targets {
		if whole {
			targets = append(targets, e.Targets[i].Position)
		}
	}
	for _, c := range slices.Concat(inputs, targets) {
		if c >= n {
			return nil, nil, &ColumnsError{Reason: "the encoding names positions beyond its columns"}
		}
	}
	return inputs, targets, nil
}

func locateByName(e *data.Encoding, names []string) (inputs, targets []int, err error) {
	at, known := map[string]int{}, map[string]bool{}
	for c, name := range names {
		at[name] = c
	}
	var bad ColumnsError
	for i := range e.Inputs {
		c, ok := at[e.Inputs[i].Name]
		if !ok {
			bad.Missing = append(bad.Missing, e.Inputs[i].Name)
		}
		inputs = append(inputs, c)
	}
	for i := range e.Targets {
		if c, ok := at[e.Targets[i].Name]; ok {
			targets = append(targets, c)
		}
	}
	if len(targets) < len(e.Targets) {
		targets = nil
	}
	for _, name := range slices.Concat(e.Dropped, e.ColumnNames()) {
		known[name] = true
	}
	for _, name := range names {
		if !known[name] && !e.IgnoreExtra {
			bad.Extra = append(bad.Extra, name)
		}
	}
	if bad.Missing != nil || bad.Extra != nil {
		return nil, nil, &bad
	}
	return inputs, targets, nil
}

// truthful reports whether columns of a kind can hold truth values as 0 and 1.
func truthful(k data.Kind) bool { return k == data.Boolean || k == data.Numeric }

func kindError(col *Column, want data.Kind) error {
	reason := fmt.Sprintf("the column %q is %s, in the model it is %s", col.Name, col.Kind, want)
	if col.Kind == data.Categorical {
		reason += fmt.Sprintf("; it has the text %s", quoted(col.Levels, 1, ""))
	}
	if want == data.Categorical && col.Kind == data.Numeric {
		reason += "; name it in Options.Categorical"
	}
	return &ColumnsError{Reason: reason}
}

// codes returns for each text of have its index in the sorted want, or −1.
func codes(have, want []string) []int {
	out := make([]int, len(have))
	for code, text := range have {
		i, ok := slices.BinarySearch(want, text)
		if !ok {
			i = -1
		}
		out[code] = i
	}
	return out
}

func (g *planTarget) bind(e *data.Encoding, col *Column) error {
	switch {
	case col.Kind.IsNumber() && e.Task != data.Classification:
		return nil
	case !col.Kind.IsNumber() && (e.Task != data.Classification || e.ClassNumbers != nil):
		return kindError(col, data.Numeric)
	case !col.Kind.IsNumber():
		g.class = codes(col.Levels, e.Classes)
		return nil
	}
	g.number = map[float64]int{}
	for k, text := range e.Classes {
		v, err := parseNumber([]byte(text))
		if e.ClassNumbers != nil {
			v, err = e.ClassNumbers[k], nil
		}
		if _, twice := g.number[v]; twice {
			k = -1 // two labels such as 7 and 07
		}
		if err == nil {
			g.number[v] = k
		}
	}
	if len(g.number) == 0 && col.Values > 0 {
		return kindError(col, data.Categorical)
	}
	return nil
}

// row encodes the cells of one row into x, of length d, and y, of length c.
func (p *plan) row(row int, cells, x, y []float64) error {
	for i := range p.inputs {
		if err := p.input(row, &p.inputs[i], cells, x); err != nil {
			return err
		}
	}
	for i := range p.targets {
		if err := p.target(row, i, cells, y); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) input(row int, in *planInput, cells, x []float64) error {
	v := cells[in.column]
	missing := v != v
	if in.Dropped {
		return nil
	} else if missing && in.Fill == nil {
		return p.t.missingError(row, in.column, untrained)
	} else if missing {
		v = *in.Fill
	}
	if in.Kind.IsNumber() {
		v = (v - in.Center) / in.Scale
		if v-v != 0 || p.t.single && math.Abs(v) > math.MaxFloat32 {
			return p.t.cellError(row, in.column, "the value is too far from those of the training rows")
		}
		x[in.at] = v
		return nil
	}
	level := int(v)
	if !missing {
		level = in.level[level]
	}
	if level < 0 && p.e.Unknown == data.UnknownError {
		return p.t.cellError(row, in.column, fmt.Sprintf("%q is not among the levels that the model knows, %s",
			p.t.columns[in.column].Levels[int(v)], quoted(in.Levels, 8, ", ")))
	}
	clear(x[in.at : in.at+len(in.Levels)])
	if level >= 0 {
		x[in.at+level] = 1
	}
	return nil
}

func (p *plan) target(row, i int, cells, y []float64) error {
	g := &p.targets[i]
	v := cells[g.column]
	if v != v {
		return p.t.missingError(row, g.column, untargeted)
	}
	if p.e.Task != data.Classification {
		y[i] = (v - g.Center) / g.Scale
		if y[i]-y[i] != 0 {
			return p.t.cellError(row, g.column, "the target is too far from those of the training rows")
		}
		return nil
	}
	k, known := g.number[v]
	text := formatNumber(v)
	if g.number == nil {
		k, known = g.class[int(v)], true
		text = p.t.columns[g.column].Levels[int(v)]
	}
	if !known || k < 0 {
		return p.t.cellError(row, g.column, fmt.Sprintf("%q is not among the classes of the model, %s", text, quoted(p.e.Classes, 8, ", ")))
	}
	if len(y) == 1 {
		y[0] = float64(2*k - 1)
		return nil
	}
	for j := range y {
		y[j] = -1
	}
	y[k] = 1
	return nil
}

// Unseen returns a note for each input with categories that the training rows of a model
// lacked, with the number of rows, and for each with ambiguous dates, unless the model has
// their order. It reads the cells once if there are such categories.
func (t *Table) Unseen(ctx context.Context, e *data.Encoding) ([]string, error) {
	p, err := newPlan(e, t, false)
	if err != nil {
		return nil, err
	}
	var notes []string
	var inputs []planInput
	for _, in := range p.inputs {
		if col := &t.columns[in.column]; !in.Dropped && col.DatesWhy == ambiguous {
			notes = append(notes, datesNote(col))
		}
		if !in.Dropped && slices.Contains(in.level, -1) {
			inputs = append(inputs, in)
		}
	}
	if len(inputs) == 0 {
		return notes, nil
	}
	rows, first := make([]int, len(inputs)), make([]string, len(inputs))
	err = t.scan(ctx, nil, func(_ int, cells []float64) error {
		for i, in := range inputs {
			if v := cells[in.column]; v == v && in.level[int(v)] < 0 {
				rows[i]++
				first[i] = cmp.Or(first[i], t.columns[in.column].Levels[int(v)])
			}
		}
		return nil
	})
	for i, in := range inputs {
		if rows[i] > 0 {
			notes = append(notes, fmt.Sprintf("input %q: %s with a category that training lacked, such as %q", in.Name, count(rows[i], "row"), first[i]))
		}
	}
	return notes, err
}

func (t *Table) cellError(row, c int, reason string) error {
	file, within := t.place(row)
	return &data.CellError{File: file, Row: within, Column: t.columns[c].Name, Reason: reason}
}

// materialise encodes all rows into memory.
func materialise[T kernel.Float](ctx context.Context, p *plan) (*data.Memory, error) {
	x := kernel.NewPoints[T](p.t.rows, p.d, nil)
	y := make([]float64, p.t.rows*p.c)
	buf := make([]float64, p.d)
	err := p.t.scan(ctx, nil, func(i int, cells []float64) error {
		err := p.row(i, cells, buf, y[i*p.c:(i+1)*p.c])
		for k, v := range buf {
			x.Row(i)[k] = T(v)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data.NewMemory(x, y, p.c)
}

// scaled divides the columns of sparse rows by their scales. The result has as many columns
// as the model.
func scaled[T kernel.Float](ctx context.Context, p *plan, m *kernel.CSR[T]) (data.Source, error) {
	in := p.e.Sparse
	scales := make(map[int32]float64, len(in.Columns))
	for k, c := range in.Columns {
		scales[c] = in.Scales[k]
	}
	ptr := []int{0}
	cols, vals := make([]int32, 0, p.t.report.Stored), make([]T, 0, p.t.report.Stored)
	for i := range m.Len() {
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
		ptr = append(ptr, len(cols))
	}
	x, err := kernel.NewCSR(m.Len(), in.Dim, ptr, cols, vals)
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

// encoded is a Source that encodes the rows of a table as they are read.
type encoded struct{ p *plan }

func (s *encoded) Len() int     { return s.p.t.rows }
func (s *encoded) Dim() int     { return s.p.d }
func (s *encoded) Outputs() int { return s.p.c }

func (s *encoded) Open(ctx context.Context) (kernel.Cursor, error) { return data.OpenInputs(ctx, s) }

func (s *encoded) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	cells, err := s.p.t.cells.OpenPairs(ctx)
	if err != nil {
		return nil, err
	}
	return &encodedCursor{PairCursor: cells, p: s.p, row: make([]float64, len(s.p.t.columns)), x: make([]float64, s.p.d)}, nil
}

type encodedCursor struct {
	data.PairCursor // of the cells
	p               *plan
	raw             *data.Block // the last block of cells, for reuse
	row, x          []float64
	at              int
}

// Next returns the next rows. A table that is not in memory has single precision.
func (c *encodedCursor) Next(ctx context.Context, max int, reuse *data.Block) (*data.Block, error) {
	raw, err := c.PairCursor.Next(ctx, max, c.raw)
	if err == io.EOF {
		return nil, err
	} else if err != nil {
		return nil, &kernel.SourceError{Row: c.at, Err: err}
	}
	c.raw = raw
	n, outputs := raw.X.Len(), c.p.c
	reuse = cmp.Or(reuse, &data.Block{})
	x := data.ReusePoints[float32](n, c.p.d, reuse.X)
	y := slices.Grow(reuse.Y[:0], n*outputs)[:n*outputs]
	for i := range n {
		kernel.CopyRow(c.row, raw.X, i)
		if err := c.p.row(c.at+i, c.row, c.x, y[i*outputs:(i+1)*outputs]); err != nil {
			return nil, &kernel.SourceError{Row: c.at + i, Err: err}
		}
		for k, v := range c.x {
			x.Row(i)[k] = float32(v)
		}
	}
	c.at += n
	reuse.X, reuse.Y = x, y
	return reuse, nil
}
