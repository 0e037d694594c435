package training

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Kind says what values a hyper-parameter has.
type Kind string

// These are the kinds of hyper-parameters.
const (
	Real   Kind = "real"
	Count  Kind = "count" // a non-negative integer
	Choice Kind = "choice"
	// Lengths are a positive number, or one for each encoded input with commas between.
	Lengths Kind = "lengths"
)

// Auto is the value of a hyper-parameter that depends on the data.
const Auto = "auto"

// Median is the length scale that is the median distance of training rows.
const Median = "median"

// Parameter is a hyper-parameter of an algorithm.
type Parameter struct {
	// Name is the name in the field's terms, with hyphens, such as "length-scale".
	Name string
	Kind Kind
	// Doc describes the parameter in a phrase. Auto describes the meaning of the value
	// Auto, and is empty if Auto is not allowed.
	Doc, Auto string
	Choices   []string
	// Positive refuses numbers of 0 and below, which estimators take for Auto.
	Positive bool
	// Default is the value where none is given.
	Default string
}

// Values are hyper-parameters by name, as text. A name that is absent has its
// default.
type Values map[string]string

// ValueError reports a value that a hyper-parameter cannot have, or a name that is not
// a hyper-parameter.
type ValueError = kernel.ValueError

func (a *Algorithm) refused(name, text, want string) error {
	return &ValueError{In: a.Name, What: name, Index: -1, Value: text, Want: want}
}

// Problem describes the data, on which defaults depend.
type Problem struct {
	// Rows, Dim and Outputs are n, d and c of the training data, where n counts copies of rows,
	// see [data.Copies].
	Rows, Dim, Outputs int
	Task               data.Task
	// MedianDistance is the median distance between training rows, see the function of
	// this name.
	MedianDistance float64
	// Spread is the median distance of encoded training targets from their median, times
	// 1.4826. For normal targets that is their standard deviation. It is 0 for classes.
	Spread float64
	// Learned is nil unless Learn was called.
	Learned *Learned
}

// NewProblem describes training data.
func NewProblem(ctx context.Context, d *Data, seed uint64) (Problem, error) {
	copies := data.NewCopies(d.Weights, d.Train.Len())
	p := Problem{Rows: copies.Len(), Dim: d.Train.Dim(), Outputs: d.Train.Outputs(), Task: d.Encoding.Task}
	var err error
	if p.MedianDistance, err = medianDistance(ctx, d.Train, copies, seed); err != nil {
		return p, err
	}
	if p.Task == data.Regression {
		p.Spread, err = spread(ctx, d.Train, d.Weights)
	}
	return p, err
}

// Check returns a *ValueError for unknown names and for texts that cannot be read.
// Estimator checks ranges.
func (a *Algorithm) Check(v Values) error {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		i := slices.IndexFunc(a.Parameters, func(p Parameter) bool { return p.Name == name })
		if i < 0 {
			return a.refused(name, v[name], "a name that "+a.Name+" has: "+strings.Join(a.names(), ", "))
		}
		if want := a.Parameters[i].refuse(v[name]); want != "" {
			return a.refused(name, v[name], want)
		}
	}
	return nil
}

func (a *Algorithm) names() []string {
	names := make([]string, len(a.Parameters))
	for i, p := range a.Parameters {
		names[i] = p.Name
	}
	return names
}

// refuse says what a value of p must be, or returns "" if text is one. The estimator
// checks ranges.
func (p *Parameter) refuse(text string) string {
	if text == Auto && p.Auto != "" {
		return ""
	}
	or := ""
	if p.Auto != "" {
		or = " or " + Auto
	}
	switch p.Kind {
	case Real:
		switch x, err := strconv.ParseFloat(text, 64); {
		case err != nil || math.IsInf(x, 0) || math.IsNaN(x):
			return "a number" + or
		case p.Positive && x <= 0:
			return "> 0" + or
		}
	case Lengths:
		if text == Median {
			return ""
		}
		if _, err := parseLengths(text); err != nil {
			return "a number > 0, one for each encoded input with commas between, " + Median + or
		}
	case Count:
		least := int64(0)
		if p.Positive {
			least = 1
		}
		if x, err := strconv.ParseInt(text, 10, 64); err != nil || x < least || x > math.MaxInt32 {
			return fmt.Sprintf("a whole number from %d to %d", least, math.MaxInt32) + or
		}
	case Choice:
		if !slices.Contains(p.Choices, text) {
			return "one of " + strings.Join(p.Choices, ", ") + or
		}
	}
	return ""
}

// reader reads checked values of an algorithm.
type reader struct {
	a *Algorithm
	v Values
}

// text returns a value or its default.
func (r reader) text(name string) string {
	if text, ok := r.v[name]; ok {
		return text
	}
	i := slices.IndexFunc(r.a.Parameters, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		panic("training: " + r.a.Name + " has no hyper-parameter " + name)
	}
	return r.a.Parameters[i].Default
}

// real returns a number, or auto for Auto.
func (r reader) real(name string, auto float64) float64 {
	text := r.text(name)
	if text == Auto {
		return auto
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("training: unchecked " + name)
	}
	return x
}

// count returns a whole number, or auto for Auto.
func (r reader) count(name string, auto int) int {
	text := r.text(name)
	if text == Auto {
		return auto
	}
	x, err := strconv.Atoi(text)
	if err != nil {
		panic("training: unchecked " + name)
	}
	return x
}
