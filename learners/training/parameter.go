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

// Values are hyper-parameters by name, as text. Absent ones have their defaults.
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
	// Learned and Metric are nil unless Learn was called for them. Laplace replaces Learned where the
	// kernel is Laplace's, unless it is nil.
	Learned, Laplace *Learned
	Metric           *Metric
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

// Check returns a *ValueError for unknown names and unreadable texts. Estimator checks ranges.
func (a *Algorithm) Check(v Values) error {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p := a.parameter(name)
		if p.Name == "" {
			return a.refused(name, v[name], "a name that "+a.Name+" has: "+strings.Join(a.names(), ", "))
		}
		if want := p.refuse(v[name]); want != "" {
			return a.refused(name, v[name], want)
		}
	}
	return nil
}

// parameter returns the one with this name, or one without a name.
func (a *Algorithm) parameter(name string) Parameter {
	for _, p := range a.Parameters {
		if p.Name == name {
			return p
		}
	}
	return Parameter{}
}

func (a *Algorithm) names() []string {
	names := make([]string, len(a.Parameters))
	for i, p := range a.Parameters {
		names[i] = p.Name
	}
	return names
}

// refuse says what a value of p must be, or returns "" if text is one.
func (p *Parameter) refuse(text string) string {
	ok, want := true, ""
	switch p.Kind {
	case Real:
		x, err := strconv.ParseFloat(text, 64)
		ok, want = err == nil && x-x == 0, "a number"
		if ok && p.Positive {
			ok, want = x > 0, "> 0"
		}
	case Lengths:
		_, err := parseLengths(text)
		ok, want = err == nil || text == Median, "a number > 0, one for each encoded input with commas between, "+Median
	case Count:
		least := int64(0)
		if p.Positive {
			least = 1
		}
		x, err := strconv.ParseInt(text, 10, 64)
		ok, want = err == nil && x >= least && x <= math.MaxInt32, fmt.Sprintf("a whole number from %d to %d", least, math.MaxInt32)
	case Choice:
		ok, want = slices.Contains(p.Choices, text), "one of "+strings.Join(p.Choices, ", ")
	}
	switch {
	case ok || text == Auto && p.Auto != "":
		return ""
	case p.Auto != "":
		return want + " or " + Auto
	}
	return want
}

// reader reads checked values of an algorithm.
type reader struct {
	a *Algorithm
	v Values
}

// text returns a value or its default. It is empty if the algorithm has no such parameter.
func (r reader) text(name string) string {
	if text, ok := r.v[name]; ok {
		return text
	}
	return r.a.parameter(name).Default
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
func (r reader) count(name string, auto int) int { return int(r.real(name, float64(auto))) }
