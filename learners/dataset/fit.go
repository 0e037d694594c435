package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// FitEncoding returns the encoding of the table fitted to the training rows. rows are
// indices that increase, and nil means all rows. All statistics use the weights of the
// rows. It reads the cells once, and up to four times
// more for medians. It returns a [*data.CellError] for a missing cell. It
// also returns errors for targets of one class or one value, and for inputs without
// variation.
func (t *Table) FitEncoding(ctx context.Context, rows []int, o data.EncodingOptions) (*data.Encoding, error) {
	if err := data.CheckRows(rows, t.rows); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	f := &fitter{t: t, rows: rows, o: o}
	if err := f.decideTask(); err != nil {
		return nil, err
	}
	if err := f.scan(ctx); err != nil {
		return nil, err
	}
	e := &data.Encoding{
		Version: data.EncodingVersion, Task: f.task, TaskWhy: f.why, Named: t.named,
		Columns: len(t.columns), Unknown: o.Unknown, IgnoreExtra: o.IgnoreExtra, Weights: t.weigher, Dropped: t.dropped, Missing: o.Missing,
	}
	if t.sparse != nil {
		e.Columns = 0
		e.Sparse = f.sparseInputs()
	} else if err := f.inputs(ctx, e); err != nil {
		return nil, err
	}
	if err := f.targets(e); err != nil {
		return nil, err
	}
	return e, e.Check()
}

// fitter collects the statistics that an encoding needs.
type fitter struct {
	t    *Table
	rows []int
	o    data.EncodingOptions
	task data.Task
	why  string

	moments []moments             // of numeric columns
	counts  [][]float64           // of the levels of categorical columns
	numbers []map[float64]float64 // of columns whose values are counted
	missing []int
}

func (f *fitter) decideTask() error {
	t := f.t
	f.task, f.why = f.o.Task, "as asked"
	if f.o.Task == "" {
		f.task, f.why = t.guessTask()
	}
	switch {
	case f.task != data.Unlabelled && len(t.targets) == 0:
		return fmt.Errorf("dataset: %s needs a target, the table has none", f.task)
	case f.task == data.Classification && len(t.targets) > 1:
		return fmt.Errorf("dataset: classification of %d targets at once; name one", len(t.targets))
	case f.task == data.Regression:
		for _, c := range t.targets {
			if col := &t.columns[c]; !col.Kind.IsNumber() {
				return fmt.Errorf("dataset: the target %q is %s, %s, and cannot be regressed on", col.Name, col.Kind, quoted(col.Levels, 3, ", "))
			}
		}
	}
	for c := range t.columns {
		if t.columns[c].Kind == data.Text {
			return fmt.Errorf("dataset: the column %q has more than %d different texts; drop it if it identifies rows", t.columns[c].Name, MaxLevels)
		}
	}
	return nil
}

func (t *Table) guessTask() (data.Task, string) {
	if len(t.targets) == 0 {
		return data.Unlabelled, "there is no target"
	}
	col := &t.columns[t.targets[0]]
	switch {
	case len(t.targets) > 1:
		return data.Regression, "there are several targets"
	case col.Kind == data.Categorical:
		return data.Classification, "the target is a category"
	case col.Label:
		return data.Classification, "the format says that the target is a label"
	case two(col):
		return data.Classification, "the target has two whole values"
	}
	return data.Regression, "the target is a number with more than two values"
}

// scan reads the training rows once.
func (f *fitter) scan(ctx context.Context) error {
	t := f.t
	n := len(t.columns)
	f.moments, f.counts = make([]moments, n), make([][]float64, n)
	f.numbers, f.missing = make([]map[float64]float64, n), make([]int, n)
	isTarget := make([]bool, n)
	for _, c := range t.targets {
		isTarget[c] = true
	}
	for c := range t.columns {
		col := &t.columns[c]
		switch {
		case col.Kind == data.Categorical:
			f.counts[c] = make([]float64, len(col.Levels))
		case isTarget[c] && f.task == data.Classification, !isTarget[c] && f.o.Missing == data.FillMostFrequent:
			f.numbers[c] = map[float64]float64{}
		}
	}
	return t.scan(ctx, f.rows, func(row int, cells []float64) error {
		for c, v := range cells {
			if err := f.add(row, c, v, isTarget[c]); err != nil {
				return err
			}
		}
		return nil
	})
}

// weight returns the weight of a row.
func (f *fitter) weight(row int) float64 {
	if f.t.weights == nil {
		return 1
	}
	return f.t.weights[row]
}

func (f *fitter) add(row, c int, v float64, isTarget bool) error {
	switch {
	case v != v:
		f.missing[c]++
		if isTarget && f.task != data.Unlabelled || !isTarget && f.o.Missing == data.MissingError {
			if isTarget {
				return f.t.missingError(row, c, untargeted)
			}
			return f.t.missingError(row, c, unfilled)
		}
	case f.counts[c] != nil:
		f.counts[c][int(v)] += f.weight(row)
	default:
		f.moments[c].add(v, f.weight(row))
		if f.numbers[c] != nil {
			return f.addCounted(c, v, f.weight(row), isTarget)
		}
	}
	return nil
}

// maxCountedValues is the largest number of different values among which the most
// frequent is searched.
const maxCountedValues = 100_000

func (f *fitter) addCounted(c int, v, w float64, isTarget bool) error {
	f.numbers[c][v+0] += w
	name, n := f.t.columns[c].Name, len(f.numbers[c])
	switch {
	case isTarget && n > MaxClasses:
		return fmt.Errorf("dataset: the target %q has more than %d different values; is this a regression?", name, MaxClasses)
	case n > maxCountedValues && f.t.columns[c].Missing == 0:
		f.numbers[c] = nil // and the model has no rule for the column
	case n > maxCountedValues:
		return fmt.Errorf("dataset: the column %q has more than %d different values; fill missing ones with the mean or the median", name, maxCountedValues)
	}
	return nil
}

// These are the remedies for missing cells.
const (
	unfilled   = "the value is missing; fill it in by EncodingOptions.Missing, or drop the column"
	untargeted = "the target is missing; remove the row"
	untrained  = "the value is missing, and the model was trained without a rule for that; fill it in, or train the model with EncodingOptions.Missing"
)

// missingError names a missing cell, with its line if known.
func (t *Table) missingError(row, c int, reason string) error {
	col := &t.columns[c]
	file, within := t.place(row)
	e := &data.CellError{File: file, Row: within, Column: col.Name, Reason: reason}
	if t.number(row) == col.FirstMissing {
		e.Line = col.MissingLine
	}
	if col.Missing > 1 {
		e.Reason += fmt.Sprintf(" (the column has %d missing values)", col.Missing)
	}
	return e
}

// singleSteps is the least spread of a kept input, relative to its centre. It has 256 steps of
// single precision.
const singleSteps = 0x1p-16

// inputs fits the dense inputs.
func (f *fitter) inputs(ctx context.Context, e *data.Encoding) error {
	inputs := f.t.inputs()
	e.Inputs = make([]data.Input, 0, len(inputs))
	for _, c := range inputs {
		col := &f.t.columns[c]
		in := data.Input{Name: col.Name, Position: c, Kind: col.Kind, Dates: col.Dates}
		if col.Kind == data.Categorical {
			f.categorical(c, e, &in)
		} else {
			f.numeric(c, &in)
			if first := dateNumber(col.Min); first != "" && in.Kind == data.Numeric && dateNumber(col.Max) != "" {
				e.Notes = append(e.Notes, fmt.Sprintf("input %q has numbers such as %.f, which count as numbers; for dates write %s", in.Name, col.Min, first))
			}
			if m := &f.moments[c]; f.o.KeepInputs && f.t.single && !in.Dropped && m.scale() < singleSteps*math.Abs(m.center()) {
				return fmt.Errorf("dataset: input %q varies by about %.3g around %.9g, which single precision cannot tell apart: leave Float32 and the chunk file out, or let inputs be scaled", in.Name, m.scale(), m.center())
			}
		}
		if in.Kind == data.Time && in.Dates != "" {
			e.Notes = append(e.Notes, datesNote(col))
		}
		e.Inputs = append(e.Inputs, in)
	}
	if err := f.fill(ctx, e); err != nil {
		return err
	}
	if e.Dim() == 0 {
		return fmt.Errorf("dataset: all inputs are constant over the %s", f.trainingRows())
	}
	return nil
}

// trainingRows counts the training rows for error messages, because a small number
// often explains the error.
func (f *fitter) trainingRows() string {
	n := f.t.rows
	if f.rows != nil {
		n = len(f.rows)
	}
	return count(n, "training row")
}

// suspectLevels is the number of levels from which a category is suspect.
const suspectLevels = 20

func (f *fitter) numeric(c int, in *data.Input) {
	m := &f.moments[c]
	in.Dropped = m.constant()
	in.Scale = 1
	if !in.Dropped && !f.o.KeepInputs {
		in.Center, in.Scale = m.center(), m.scale()
	}
}

func (f *fitter) categorical(c int, e *data.Encoding, in *data.Input) {
	for code, n := range f.counts[c] {
		if n > 0 {
			in.Levels = append(in.Levels, f.t.columns[c].Levels[code])
		}
	}
	slices.Sort(in.Levels)
	in.Dropped = len(in.Levels) < 2
	remedy, dates := "drop the column if it identifies rows", !slices.ContainsFunc(in.Levels, func(s string) bool { return !dateText.MatchString(s) })
	if dates {
		remedy = "write dates as 2024-01-31 12:30, and " + remedy
	}
	if rows := f.t.rows; len(in.Levels) >= suspectLevels && (dates || 2*len(in.Levels) > rows) {
		e.Notes = append(e.Notes, fmt.Sprintf("input %q has %d different texts in %s, each an input of its own, such as %q: %s", in.Name, len(in.Levels), count(rows, "row"), in.Levels[0], remedy))
	}
}

// fill decides the replacement of missing inputs, also for inputs without a missing
// cell among the training rows.
func (f *fitter) fill(ctx context.Context, e *data.Encoding) error {
	if f.o.Missing == data.MissingError {
		return nil
	}
	var medians []int // inputs
	for i := range e.Inputs {
		in := &e.Inputs[i]
		c := in.Position
		switch {
		case in.Dropped:
			continue
		case in.Kind == data.Categorical:
			in.Fill = f.frequentLevel(c, in.Levels)
		case f.o.Missing == data.FillMean:
			v := f.moments[c].center()
			in.Fill = &v
		case f.o.Missing == data.FillMostFrequent && f.numbers[c] != nil:
			v := frequentNumber(f.numbers[c])
			in.Fill = &v
		case f.o.Missing == data.FillMedian:
			medians = append(medians, i)
		}
	}
	return f.medians(ctx, e, medians)
}

func (f *fitter) frequentLevel(c int, levels []string) *float64 {
	best, most := "", 0.0
	for code, n := range f.counts[c] {
		level := f.t.columns[c].Levels[code]
		if n > most || n == most && level < best {
			best, most = level, n
		}
	}
	i, _ := slices.BinarySearch(levels, best)
	v := float64(i)
	return &v
}

// frequentNumber returns the most frequent number, the smallest if several are.
func frequentNumber(counts map[float64]float64) float64 {
	best, most := math.Inf(1), 0.0
	for v, n := range counts {
		if n > most || n == most && v < best {
			best, most = v, n
		}
	}
	return best
}

// targets fits the targets.
func (f *fitter) targets(e *data.Encoding) error {
	if f.task == data.Unlabelled {
		return nil
	}
	for _, c := range f.t.targets {
		target := data.Target{Name: f.t.columns[c].Name, Position: c, Scale: 1}
		if f.task == data.Classification {
			e.Targets = append(e.Targets, target)
			return f.classes(e, c)
		}
		m := &f.moments[c]
		if m.constant() {
			return fmt.Errorf("dataset: the target %q has the one value %v over the training rows: there is nothing to learn", target.Name, m.min)
		}
		if !f.o.KeepTargets {
			target.Center, target.Scale = m.center(), m.scale()
		}
		e.Targets = append(e.Targets, target)
	}
	return nil
}

func (f *fitter) classes(e *data.Encoding, c int) error {
	col := &f.t.columns[c]
	if col.Kind == data.Categorical {
		for code, n := range f.counts[c] {
			if n > 0 {
				e.Classes = append(e.Classes, col.Levels[code])
			}
		}
		slices.Sort(e.Classes)
	} else {
		for v := range f.numbers[c] {
			e.ClassNumbers = append(e.ClassNumbers, v)
		}
		slices.SortFunc(e.ClassNumbers, cmp.Compare[float64])
		for _, v := range e.ClassNumbers {
			name := formatNumber(v)
			if col.Kind == data.Boolean {
				name = strconv.FormatBool(v != 0)
			}
			e.Classes = append(e.Classes, name)
		}
	}
	switch {
	case len(e.Classes) < 2:
		return fmt.Errorf("dataset: the target %q has the one class %s over the training rows: there is nothing to learn", col.Name, quoted(e.Classes, 1, ""))
	case len(e.Classes) > MaxClasses:
		return fmt.Errorf("dataset: the target %q has %d classes, the limit is %d", col.Name, len(e.Classes), MaxClasses)
	}
	return nil
}

// sparseInputs fits sparse inputs. Its memory grows with the features that occur, not
// with d.
func (f *fitter) sparseInputs() *data.SparseInputs {
	out := &data.SparseInputs{Dim: f.t.sparse.Dim(), Columns: []int32{}, Scales: []float64{}}
	if f.o.KeepInputs {
		return out
	}
	ms := map[int32]*moments{}
	n, w := 0.0, 0.0 // the sum of the weights, and that of the row
	visit := func(col []int32, at func(k int) float64) {
		for k, c := range col {
			m := ms[c]
			if m == nil {
				m = &moments{}
				ms[c] = m
			}
			m.add(at(k), w)
		}
	}
	each := func(i int) {
		w = f.weight(i)
		n += w
		sparseRow(f.t.sparse, i, visit)
	}
	if f.rows == nil {
		for i := range f.t.rows {
			each(i)
		}
	}
	for _, i := range f.rows {
		each(i)
	}
	for c, m := range ms {
		m.addZeros(n - m.n)
		if !m.constant() {
			out.Columns = append(out.Columns, c)
		}
	}
	slices.Sort(out.Columns)
	for _, c := range out.Columns {
		out.Scales = append(out.Scales, ms[c].scale())
	}
	return out
}

// sparseRow calls visit with the columns and values of row i.
func sparseRow(rows kernel.Rows, i int, visit func(col []int32, at func(k int) float64)) {
	switch m := rows.(type) {
	case *kernel.CSR[float64]:
		col, val := m.Row(i)
		visit(col, func(k int) float64 { return val[k] })
	case *kernel.CSR[float32]:
		col, val := m.Row(i)
		visit(col, func(k int) float64 { return float64(val[k]) })
	}
}
