package data

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Kind says whether the cells of a column are numbers, categories or texts.
type Kind string

// The kinds of columns.
const (
	Numeric     Kind = "numeric"
	Categorical Kind = "categorical"
	// Time is a column of dates or times, as seconds since 1970-01-01 in UTC.
	Time Kind = "time"
	// Boolean is a column of truth values, as 0 and 1.
	Boolean Kind = "boolean"
	// Text is a column with more than MaxLevels different texts, such as an identifier
	// or prose. No encoding accepts it.
	Text Kind = "text"
)

// IsNumber reports whether the cells of a column are numbers.
func (k Kind) IsNumber() bool { return k == Numeric || k == Time || k == Boolean }

// Task says what the targets are.
type Task string

// The tasks.
const (
	Regression     Task = "regression"
	Classification Task = "classification"
	// Unlabelled data have no targets.
	Unlabelled Task = "unlabelled"
)

// Missing says how to treat missing inputs.
type Missing string

// These are the ways to treat missing inputs. The value to fill in comes from the
// training rows. Categories always get their most frequent level, the first in
// alphabetical order if several are. Missing targets are always an error.
const (
	MissingError     Missing = "" // a CellError that names row and column
	FillMean         Missing = "mean"
	FillMedian       Missing = "median" // the lower one if there are two
	FillMostFrequent Missing = "most frequent"
)

// Unknown says how to treat a category that the training rows lack.
type Unknown string

// These are the ways to treat unknown categories.
const (
	UnknownError Unknown = ""     // a CellError that names row, column and text
	UnknownZero  Unknown = "zero" // no level is set
)

// EncodingOptions say how a table becomes numbers. The zero EncodingOptions scale
// inputs and targets and refuse missing and unknown values.
type EncodingOptions struct {
	// Task is, if empty, classification when the target is a category, has two whole values
	// or is called a label by the format. Otherwise it is regression.
	Task Task
	// Missing and Unknown say how to treat such inputs.
	Missing Missing
	Unknown Unknown
	// KeepInputs leaves numeric inputs in their own units.
	KeepInputs bool
	// KeepTargets leaves regression targets in their own units.
	KeepTargets bool
	// IgnoreExtra allows named columns that the model lacks.
	IgnoreExtra bool
}

// Check returns an error for an option with an undefined value.
func (o *EncodingOptions) Check() error {
	switch {
	case !slices.Contains([]Missing{MissingError, FillMean, FillMedian, FillMostFrequent}, o.Missing):
		return fmt.Errorf("dataset: unknown way %q to treat missing values; use mean, median, most frequent, or empty for an error", o.Missing)
	case o.Unknown != UnknownError && o.Unknown != UnknownZero:
		return fmt.Errorf("dataset: unknown way %q to treat unknown categories; use zero, or empty for an error", o.Unknown)
	case !slices.Contains([]Task{"", Regression, Classification, Unlabelled}, o.Task):
		return fmt.Errorf("dataset: unknown task %q; use regression, classification or unlabelled", o.Task)
	}
	return nil
}

// Encoding says how the columns of a table become inputs and targets. It is fitted on
// training rows, stored in a model and later applied to any data.
//
//   - A number, a time or a truth value becomes its z-score (x − Center)/Scale, with the
//     mean and the standard deviation (divisor n) of the training rows.
//   - A categorical input becomes one coordinate per level, 1 for that of the row, else 0.
//   - An input that is constant over the training rows is dropped.
//   - Sparse inputs are divided by their standard deviations, not centred and not dropped.
//     A constant one has scale 1.
//   - A regression target becomes (y − Center)/Scale.
//   - Two classes become one output, −1 for the first and +1 for the second. C > 2 classes
//     become C outputs, +1 for the class of the row and −1 for the others. Classes are sorted,
//     numbers by value.
//
// An Encoding keeps its numbers to the bit in JSON. It is immutable and safe for concurrent use.
type Encoding struct {
	Version int    `json:"version"`
	Task    Task   `json:"task"`
	TaskWhy string `json:"task_why,omitempty"`
	// Named says that columns are recognised by name, in any order. Otherwise they are
	// recognised by position, and the data have Columns of them, or only the inputs.
	Named   bool    `json:"named"`
	Columns int     `json:"columns,omitempty"`
	Inputs  []Input `json:"inputs,omitempty"` // dense, in the order of the file
	// Sparse is the encoding of sparse inputs, nil for dense ones.
	Sparse  *SparseInputs `json:"sparse,omitempty"`
	Targets []Target      `json:"targets,omitempty"`
	// Classes are sorted. ClassNumbers are their values if they are numbers.
	Classes      []string  `json:"classes,omitempty"`
	ClassNumbers []float64 `json:"class_numbers,omitempty"`
	Unknown      Unknown   `json:"unknown,omitempty"`
	IgnoreExtra  bool      `json:"ignore_extra,omitempty"`
	// Weights is the column that had the weights of rows, or empty. It is no input and may
	// be absent.
	Weights string `json:"weights,omitempty"`
	// Dropped are the columns that training left out. They are no inputs and may be absent.
	Dropped []string `json:"dropped,omitempty"`
	// Missing is the rule by which missing cells of inputs are filled in.
	Missing Missing `json:"missing,omitempty"`
	// Notes advise on inputs that may not be what they seem.
	Notes []string `json:"notes,omitempty"`
}

// Input is the encoding of one dense column.
type Input struct {
	Name     string `json:"name"`
	Position int    `json:"position"` // in the file, from 0
	Kind     Kind   `json:"kind"`
	// Dates is the order in which texts have the parts of dates, such as "day/month/year".
	Dates string `json:"dates,omitempty"`
	// Dropped inputs, constant over the training rows, have no coordinate.
	Dropped bool     `json:"dropped,omitempty"`
	Center  float64  `json:"center"`
	Scale   float64  `json:"scale"`
	Levels  []string `json:"levels,omitempty"` // sorted
	// Fill replaces missing cells by a number, or by an index into Levels. If nil, a
	// missing cell is an error.
	Fill *float64 `json:"fill,omitempty"`
}

// MaxSparseInputs is the largest number of sparse inputs.
const MaxSparseInputs = 1 << 28

// SparseInputs is the encoding of sparse rows.
type SparseInputs struct {
	Dim int `json:"dim"` // d
	// Columns, increasing, are those with a scale other than 1, and Scales are their
	// standard deviations.
	Columns []int32   `json:"columns"`
	Scales  []float64 `json:"scales"`
}

func (s *SparseInputs) check() error {
	if s.Dim < 1 || s.Dim > MaxSparseInputs || len(s.Columns) != len(s.Scales) {
		return fmt.Errorf("%d sparse inputs with %d scales for %d columns", s.Dim, len(s.Scales), len(s.Columns))
	}
	for k, c := range s.Columns {
		if c < 0 || int(c) >= s.Dim || k > 0 && c <= s.Columns[k-1] || !usable(0, s.Scales[k]) {
			return fmt.Errorf("sparse input %d has scale %v", c+1, s.Scales[k])
		}
	}
	return nil
}

// usable reports whether z-scores can be taken.
func usable(center, scale float64) bool {
	return center-center == 0 && scale > 0 && scale <= math.MaxFloat64
}

// Target is the encoding of one target of a regression, or the name of the
// target of a classification.
type Target struct {
	Name     string  `json:"name"`
	Position int     `json:"position"`
	Center   float64 `json:"center"`
	Scale    float64 `json:"scale"`
}

// EncodingVersion is the Version of the encodings that this package makes and reads.
const EncodingVersion = 1

// Width returns the number of coordinates of an input.
func (in *Input) Width() int {
	switch {
	case in.Dropped:
		return 0
	case in.Kind == Categorical:
		return len(in.Levels)
	}
	return 1
}

// Dim returns d, the number of coordinates of encoded inputs.
func (e *Encoding) Dim() int {
	if e.Sparse != nil {
		return e.Sparse.Dim
	}
	d := 0
	for i := range e.Inputs {
		d += e.Inputs[i].Width()
	}
	return d
}

// Outputs returns c, the number of outputs of a model.
func (e *Encoding) Outputs() int {
	switch {
	case e.Task != Classification:
		return len(e.Targets)
	case len(e.Classes) == 2:
		return 1
	}
	return len(e.Classes)
}

// InputNames returns the names of the d coordinates, such as "age" or "city=Oslo". It
// is nil for sparse inputs.
func (e *Encoding) InputNames() []string {
	var names []string
	for _, in := range e.Inputs {
		if !in.Dropped && in.Kind != Categorical {
			names = append(names, in.Name)
		} else if !in.Dropped {
			for _, l := range in.Levels {
				names = append(names, in.Name+"="+l)
			}
		}
	}
	return names
}

// ColumnNames returns the names of the inputs and the targets.
func (e *Encoding) ColumnNames() (names []string) {
	for i := range e.Inputs {
		names = append(names, e.Inputs[i].Name)
	}
	for _, t := range e.Targets {
		names = append(names, t.Name)
	}
	return names
}

// OutputNames returns the names of the c outputs, which are targets or classes.
func (e *Encoding) OutputNames() []string {
	switch {
	case e.Task != Classification:
		var names []string
		for _, t := range e.Targets {
			names = append(names, t.Name)
		}
		return names
	case len(e.Classes) == 2:
		return e.Classes[1:]
	}
	return slices.Clone(e.Classes)
}

// Decode turns outputs of a model, n×c, into the units of the targets, in
// place. It changes nothing for classes.
func (e *Encoding) Decode(out []float64) {
	if e.Task != Regression {
		return
	}
	c := len(e.Targets)
	for i := range out {
		t := &e.Targets[i%c]
		out[i] = out[i]*t.Scale + t.Center
	}
}

// Class returns the index into Classes for the outputs of a model for one row, of length c. It is
// the first of the largest outputs. With two classes it is the second if the output is positive.
func (e *Encoding) Class(out []float64) int { return Classes(out, len(out))[0] }

// Classes returns the class of each row of y, n×c with c ≥ 1, coded as an [Encoding] does.
func Classes(y []float64, c int) []int {
	out := make([]int, 0, len(y)/c)
	for row := range slices.Chunk(y, c) {
		best := 0
		for k, v := range row {
			if v > row[best] {
				best = k
			}
		}
		if c == 1 && row[0] > 0 {
			best = 1
		}
		out = append(out, best)
	}
	return out
}

// UnmarshalJSON reads the output of json.Marshal and checks that it is complete.
func (e *Encoding) UnmarshalJSON(text []byte) error {
	type plain Encoding
	var p plain
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	*e = Encoding(p)
	return e.Check()
}

// Check returns an error for an encoding whose parts contradict each other.
func (e *Encoding) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("dataset: this encoding is broken: "+format, args...)
	}
	if e.Version != EncodingVersion {
		return fmt.Errorf("dataset: the encoding has version %d, this program reads %d", e.Version, EncodingVersion)
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		if in.Kind.IsNumber() && !in.Dropped && !usable(in.Center, in.Scale) {
			return bad("input %q has center %v and scale %v", in.Name, in.Center, in.Scale)
		}
		if !in.Kind.IsNumber() && in.Kind != Categorical || in.Position < 0 {
			return bad("input %q is of kind %q at position %d", in.Name, in.Kind, in.Position)
		}
		if in.Kind == Categorical && in.Fill != nil && !(*in.Fill >= 0 && int(*in.Fill) < len(in.Levels)) {
			return bad("input %q fills in level %v of %d", in.Name, *in.Fill, len(in.Levels))
		}
	}
	if e.Sparse != nil {
		if err := e.Sparse.check(); err != nil {
			return bad("%w", err)
		}
		if len(e.Targets) > 1 || len(e.Inputs) > 0 {
			return bad("it has sparse inputs, %d dense ones and %d targets", len(e.Inputs), len(e.Targets))
		}
	}
	switch e.Task {
	case Regression:
		for _, t := range e.Targets {
			if !usable(t.Center, t.Scale) {
				return bad("target %q has center %v and scale %v", t.Name, t.Center, t.Scale)
			}
		}
		if len(e.Targets) == 0 {
			return bad("it has no targets")
		}
	case Classification:
		if len(e.Targets) != 1 || len(e.Classes) < 2 || e.ClassNumbers != nil && len(e.ClassNumbers) != len(e.Classes) {
			return bad("it has %d targets and %d classes", len(e.Targets), len(e.Classes))
		}
	case Unlabelled:
		if len(e.Targets) > 0 {
			return bad("it has targets and is %s", e.Task)
		}
	default:
		return bad("its task is %q", e.Task)
	}
	if e.Dim() == 0 {
		return bad("it has no inputs")
	}
	return nil
}
