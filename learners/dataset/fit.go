package dataset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// FitEncoding returns the encoding of the table fitted to the training rows. rows are indices
// that increase, and nil means all rows. All statistics use the weights of the rows. It reads the
// cells once, and up to four times more for medians. It returns a [*data.CellError] for a missing
// cell, and errors for targets of one class or one value and for inputs without variation.
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
	var err error
	switch m := t.sparse.(type) {
	case *kernel.CSR[float64]:
		e.Columns, e.Sparse = 0, sparseInputs(f, m)
	case *kernel.CSR[float32]:
		e.Columns, e.Sparse = 0, sparseInputs(f, m)
	default:
		err = f.inputs(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	if err := f.targets(e); err != nil {
		return nil, err
	}
	return e, e.Check()
}

// fitter collects the statistics that an encoding needs.
type fitter struct {
	t     *Table
	rows  []int
	o     data.EncodingOptions
	task  data.Task
	why   string
	found []found // of the columns
}

// found are the statistics of a column.
type found struct {
	target  bool
	moments moments             // of numbers
	levels  []float64           // weights by code of a categorical column
	numbers map[float64]float64 // weights of values where they are counted
}

// texts returns the levels that occur in the training rows, sorted.
func (f *fitter) texts(c int) (out []string) {
	for code, n := range f.found[c].levels {
		if n > 0 {
			out = append(out, f.t.columns[c].Levels[code])
		}
	}
	slices.Sort(out)
	return out
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
	f.found = make([]found, len(f.t.columns))
	for c := range f.found {
		s, col := &f.found[c], &f.t.columns[c]
		s.target = slices.Contains(f.t.targets, c)
		switch {
		case col.Kind == data.Categorical:
			s.levels = make([]float64, len(col.Levels))
		case s.target && f.task == data.Classification, !s.target && f.o.Missing == data.FillMostFrequent:
			s.numbers = map[float64]float64{}
		}
	}
	return f.t.scan(ctx, f.rows, func(row int, cells []float64) error {
		for c, v := range cells {
			if err := f.add(row, c, v); err != nil {
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

func (f *fitter) add(row, c int, v float64) error {
	s := &f.found[c]
	switch {
	case v != v && s.target && f.task != data.Unlabelled:
		return f.t.missingError(row, c, untargeted)
	case v != v && !s.target && f.o.Missing == data.MissingError:
		return f.t.missingError(row, c, unfilled)
	case v != v:
	case s.levels != nil:
		s.levels[int(v)] += f.weight(row)
	default:
		s.moments.add(v, f.weight(row))
		if s.numbers != nil {
			return f.count(c, v, f.weight(row))
		}
	}
	return nil
}

// maxCountedValues is the largest number of different values among which the most
// frequent is searched.
const maxCountedValues = 100_000

func (f *fitter) count(c int, v, w float64) error {
	s, col := &f.found[c], &f.t.columns[c]
	s.numbers[v+0] += w
	switch n := len(s.numbers); {
	case s.target && n > MaxClasses:
		return fmt.Errorf("dataset: the target %q has more than %d different values; is this a regression?", col.Name, MaxClasses)
	case n > maxCountedValues && col.Missing == 0:
		s.numbers = nil // and the model has no rule for the column
	case n > maxCountedValues:
		return fmt.Errorf("dataset: the column %q has more than %d different values; fill missing ones with the mean or the median", col.Name, maxCountedValues)
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
			if m := &f.found[c].moments; f.o.KeepInputs && f.t.single && !in.Dropped && m.scale() < singleSteps*math.Abs(m.center()) {
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
	m := &f.found[c].moments
	in.Dropped = m.constant()
	in.Scale = 1
	if !in.Dropped && !f.o.KeepInputs {
		in.Center, in.Scale = m.center(), m.scale()
	}
}

func (f *fitter) categorical(c int, e *data.Encoding, in *data.Input) {
	in.Levels = f.texts(c)
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
	var medians []*data.Input
	for i := range e.Inputs {
		in := &e.Inputs[i]
		s := &f.found[in.Position]
		switch {
		case in.Dropped:
		case in.Kind == data.Categorical:
			weights := map[string]float64{}
			for code, n := range s.levels {
				weights[f.t.columns[in.Position].Levels[code]] = n
			}
			level, _ := slices.BinarySearch(in.Levels, frequent(weights))
			in.Fill = new(float64(level))
		case f.o.Missing == data.FillMean:
			in.Fill = new(s.moments.center())
		case f.o.Missing == data.FillMostFrequent && s.numbers != nil:
			in.Fill = new(frequent(s.numbers))
		case f.o.Missing == data.FillMedian:
			medians = append(medians, in)
		}
	}
	return f.medians(ctx, medians)
}

// frequent returns the value with the most weight, the smallest if several have it.
func frequent[T cmp.Ordered](weights map[T]float64) (best T) {
	most := 0.0
	for v, n := range weights {
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
		m := &f.found[c].moments
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
		e.Classes = f.texts(c)
	} else {
		e.ClassNumbers = slices.Sorted(maps.Keys(f.found[c].numbers))
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

// sparseInputs fits sparse inputs. Its memory grows with the features that occur, not with d.
func sparseInputs[T kernel.Float](f *fitter, m *kernel.CSR[T]) *data.SparseInputs {
	out := &data.SparseInputs{Dim: m.Dim(), Columns: []int32{}, Scales: []float64{}}
	if f.o.KeepInputs {
		return out
	}
	found, sum := map[int32]*moments{}, 0.0
	add := func(row int) {
		w := f.weight(row)
		sum += w
		columns, values := m.Row(row)
		for k, c := range columns {
			if found[c] == nil {
				found[c] = &moments{}
			}
			found[c].add(float64(values[k]), w)
		}
	}
	if f.rows == nil {
		for row := range f.t.rows {
			add(row)
		}
	}
	for _, row := range f.rows {
		add(row)
	}
	for _, c := range slices.Sorted(maps.Keys(found)) {
		s := found[c]
		s.addZeros(sum - s.n)
		if !s.constant() {
			out.Columns, out.Scales = append(out.Columns, c), append(out.Scales, s.scale())
		}
	}
	return out
}
