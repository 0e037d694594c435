package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Encode encodes the rows of the training data or of other data. If the table is in
// memory, the result is a *Memory with inputs of the table's precision. Otherwise its
// rows are read and encoded at every pass.
//
// The columns must be those that the encoding was fitted to. If the training data had
// names, columns are matched by name in any order. Otherwise they are matched by
// position. Target columns may be absent, and the result then has no targets. The
// target named in Options is not used here. It returns a [*ColumnsError], or a
// [*data.CellError] for missing cells and unknown categories. A source that is not in
// memory returns the latter while it is read.
func (t *Table) Encode(ctx context.Context, e *data.Encoding) (data.Source, error) {
	p, err := newPlan(e, t, true)
	if err != nil {
		return nil, err
	}
	return p.apply(ctx)
}

// EncodeInputs is Encode without targets, which may be missing.
func (t *Table) EncodeInputs(ctx context.Context, e *data.Encoding) (data.Source, error) {
	p, err := newPlan(e, t, false)
	if err != nil {
		return nil, err
	}
	return p.apply(ctx)
}

func (p *plan) apply(ctx context.Context) (data.Source, error) {
	if p.t.sparse != nil {
		return p.applySparse(ctx)
	}
	src := &encoded{p}
	if _, resident := p.t.cells.(kernel.Resident); !resident {
		return src, nil
	}
	return p.materialise(ctx)
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
	if (e.Sparse != nil) != (t.sparse != nil) {
		return nil, &ColumnsError{Reason: map[bool]string{
			true:  "the model takes sparse rows, these are dense",
			false: "the model takes dense columns, these rows are sparse",
		}[e.Sparse != nil]}
	}
	if t.sparse != nil && t.sparse.Dim() > e.Sparse.Dim {
		return nil, &ColumnsError{Reason: fmt.Sprintf("feature %d is beyond the %d of the model", t.sparse.Dim(), e.Sparse.Dim)}
	}
	inputs, targets, err := t.locate(e)
	if err != nil {
		return nil, err
	}
	p := &plan{e: e, t: t, d: e.Dim()}
	at := 0
	for i := range e.Inputs {
		in := planInput{Input: &e.Inputs[i], column: inputs[i], at: at}
		at += in.Width()
		if err := in.bind(&t.columns[in.column]); err != nil {
			return nil, err
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
	if e.Sparse != nil {
		if len(t.targets) > 0 && len(e.Targets) > 0 {
			targets = []int{0}
		}
		return nil, targets, nil
	}
	return locate(e, t.names(), t.named)
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
	if n != e.Columns && n != len(e.Inputs) {
		want := fmt.Sprint(e.Columns)
		if len(e.Inputs) < e.Columns {
			want += fmt.Sprintf(", or %d without targets", len(e.Inputs))
		}
		return nil, nil, &ColumnsError{Reason: fmt.Sprintf("there are %d columns, the model takes %s", n, want)}
	}
	for i := range e.Inputs {
		if inputs = append(inputs, i); n == e.Columns {
			inputs[i] = e.Inputs[i].Position
		}
	}
	if n == e.Columns {
		for i := range e.Targets {
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
	for _, name := range e.Dropped {
		known[name] = true
	}
	var bad ColumnsError
	for i := range e.Inputs {
		name := e.Inputs[i].Name
		known[name] = true
		c, ok := at[name]
		if !ok {
			bad.Missing = append(bad.Missing, name)
		}
		inputs = append(inputs, c)
	}
	for i := range e.Targets {
		name := e.Targets[i].Name
		known[name] = true
		if c, ok := at[name]; ok {
			targets = append(targets, c)
		}
	}
	if len(targets) < len(e.Targets) {
		targets = nil
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

// bind relates the levels of a table's column to those of the input.
func (in *planInput) bind(col *Column) error {
	if col.Kind != in.Kind && col.Values > 0 && !(truthful(col.Kind) && truthful(in.Kind)) {
		return kindError(col, in.Kind)
	}
	if in.Kind == data.Categorical {
		in.level = codes(col.Levels, in.Levels)
	}
	return nil
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
	if e.Task != data.Classification {
		if !col.Kind.IsNumber() {
			return kindError(col, data.Numeric)
		}
		return nil
	}
	class, number := map[string]int{}, map[float64]int{}
	for k, text := range e.Classes {
		class[text] = k
		v, err := parseNumber([]byte(text))
		if e.ClassNumbers != nil {
			v, err = e.ClassNumbers[k], nil
		}
		if _, twice := number[v]; err == nil && !twice {
			number[v] = k
		} else if err == nil {
			number[v] = -1 // two labels such as 7 and 07
		}
	}
	switch {
	case col.Kind.IsNumber() && len(number) == 0 && col.Values > 0:
		return kindError(col, data.Categorical)
	case col.Kind.IsNumber():
		g.number = number
	case e.ClassNumbers != nil:
		return kindError(col, data.Numeric)
	}
	for _, text := range col.Levels {
		k, ok := class[text]
		if !ok {
			k = -1
		}
		g.class = append(g.class, k)
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
	if in.Dropped {
		return nil
	}
	v := cells[in.column]
	if in.Kind.IsNumber() {
		if v != v {
			if in.Fill == nil {
				return p.t.missingError(row, in.column, untrained)
			}
			v = *in.Fill
		}
		v = (v - in.Center) / in.Scale
		if v-v != 0 || p.t.single && math.Abs(v) > math.MaxFloat32 {
			return p.t.cellError(row, in.column, "the value is too far from those of the training rows")
		}
		x[in.at] = v
		return nil
	}
	level := -1
	switch {
	case v == v:
		level = in.level[int(v)]
	case in.Fill != nil:
		level = int(*in.Fill)
	default:
		return p.t.missingError(row, in.column, untrained)
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

// Unseen returns a note for each input with categories that the training rows of a model
// lacked, with the number of rows, and for each with ambiguous dates, unless the model has
// their order. It reads the cells once if there are such categories.
func (t *Table) Unseen(ctx context.Context, e *data.Encoding) ([]string, error) {
	p, err := newPlan(e, t, false)
	if err != nil {
		return nil, err
	}
	var inputs []*planInput
	var notes []string
	for i := range p.inputs {
		if col := &t.columns[p.inputs[i].column]; !p.inputs[i].Dropped && col.DatesWhy == ambiguous {
			notes = append(notes, datesNote(col))
		}
		if in := &p.inputs[i]; !in.Dropped && slices.Contains(in.level, -1) {
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
	k, known := 0, true
	if g.number != nil {
		k, known = g.number[v]
	} else {
		k = g.class[int(v)]
	}
	if !known || k < 0 {
		text := formatNumber(v)
		if g.number == nil {
			text = p.t.columns[g.column].Levels[int(v)]
		}
		return p.t.cellError(row, g.column, fmt.Sprintf("%q is not among the classes of the model, %s", text, quoted(p.e.Classes, 8, ", ")))
	}
	writeClass(y, k)
	return nil
}

// writeClass codes class k as ±1.
func writeClass(y []float64, k int) {
	if len(y) == 1 {
		y[0] = float64(2*k - 1)
		return
	}
	for j := range y {
		y[j] = -1
	}
	y[k] = 1
}
