package training

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// Score is a measure of a model on data.
type Score struct {
	Name  string // "rmse", "auc", or "rmse(u)" of the target u among several
	Value float64
}

// Defined reports whether the measure has a value on the data. R² of a constant target
// has none, and the area under the ROC curve of one class has none.
func (s Score) Defined() bool { return s.Value-s.Value == 0 }

// Why says in a phrase why a score is not defined.
func (s Score) Why() string {
	name, _, _ := strings.Cut(s.Name, "(")
	switch {
	case name == "auc":
		return "the rows are of one class"
	case name == "r2":
		return "all rows have the same target"
	}
	return "the outputs are too large"
}

// scoreJSON is the form of a score in JSON, whose numbers are finite.
type scoreJSON struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"` // null if not defined
}

// MarshalJSON writes null for a value that is not defined.
func (s Score) MarshalJSON() ([]byte, error) {
	j := scoreJSON{Name: s.Name}
	if s.Defined() {
		j.Value = &s.Value
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads the output of MarshalJSON, where null is NaN.
func (s *Score) UnmarshalJSON(text []byte) error {
	var j scoreJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*s = Score{j.Name, math.NaN()}
	if j.Value != nil {
		s.Value = *j.Value
	}
	return nil
}

// MeasureNamed returns the measure with this name, of outputs in the units of the
// targets and rows with the weights of s. The empty name means a proper score, which
// the true probabilities minimise. That is "log-loss" where outputs give probabilities, and
// "rmse" for other classes and for numbers, or the measure of the loss of s. The Huber loss is in units of encoded targets, as its δ.
func MeasureNamed(name string, e *data.Encoding, s learners.Scoring) (string, learners.Measure, error) {
	classes := e.Task == data.Classification
	switch {
	case name == "" && classes && s.Link != learners.Expected:
		name = "log-loss"
	case name == "":
		name = lossMeasure(s.Loss)
	}
	m := s.Measure(name)
	if m == nil {
		return "", nil, fmt.Errorf("measure %q is not one of %s", name, strings.Join(learners.MeasureNames(), ", "))
	}
	if classes || name == huberMeasure {
		return name, m, nil
	}
	if learners.NeedsProbabilities(name) || slices.Contains([]string{"class-error", "1-auc", "1-balanced-accuracy"}, name) {
		return "", nil, fmt.Errorf("measure %q is for classes, and the target is a number", name)
	}
	return name, func(outputs, targets []float64, c int) float64 {
		outputs, targets = slices.Clone(outputs), slices.Clone(targets)
		e.Decode(outputs)
		e.Decode(targets)
		return m(outputs, targets, c)
	}, nil
}

const huberMeasure = "huber"

// lossMeasure returns the name of the measure that minimising a loss minimises.
func lossMeasure(l learners.Loss) string {
	switch l {
	case learners.HuberLoss:
		return huberMeasure
	case learners.QuantileLoss:
		return "pinball"
	}
	return "rmse"
}

// CheckMeasure refuses measures of probabilities for an algorithm whose outputs are not
// probabilities.
func (a *Algorithm) CheckMeasure(name string) error {
	if learners.NeedsProbabilities(name) && a.Name != logFalkon.Name {
		return fmt.Errorf("measure %q needs probabilities, which %s does not give; %s does", name, a.Name, logFalkon.Name)
	}
	return nil
}

// Evaluate measures a model on data of its encoding. For regression it gives R², and
// the root mean square error and mean absolute error in the units of the targets. For
// classification it gives the class error, the balanced accuracy and the area under the
// ROC curve. If the loss gives probabilities, it also gives the logarithmic loss, the
// Brier score and the expected calibration error. Each of several targets also has
// its own scores, such as "rmse(u)". Robust losses add their own measure, and quantiles
// the share of rows below the function. s has the weights of the rows, of which those with the
// weight 0 are not read, and its link is that of the model. It returns a *learners.DataError for data without
// targets.
func Evaluate(ctx context.Context, m learners.Model, e *data.Encoding, src data.Source, s learners.Scoring) ([]Score, error) {
	if rows := data.Counted(s.Weights); len(rows) > 0 {
		var err error
		if src, err = data.Subset(src, rows); err != nil {
			return nil, err
		}
		s.Weights = data.Pick(s.Weights, rows)
	}
	y, err := learners.Targets(ctx, src)
	if err != nil {
		return nil, err
	}
	c := src.Outputs()
	if c == 0 {
		return nil, &learners.DataError{Data: "the data to evaluate", Reason: "there is no target column to compare with"}
	}
	f := make([]float64, len(y))
	if err := m.Predict(ctx, f, src); err != nil {
		return nil, err
	}
	s.Link = learners.LinkOf(m)
	of := func(name string, f, y []float64, c int) float64 { return s.Measure(name)(f, y, c) }
	if e.Task == data.Classification {
		scores := []Score{
			{"class-error", of("class-error", f, y, c)}, {"balanced-accuracy", 1 - of("1-balanced-accuracy", f, y, c)}, {"auc", 1 - of("1-auc", f, y, c)},
		}
		if s.Link != learners.Expected {
			for _, name := range []string{"log-loss", "brier", "calibration-error"} {
				scores = append(scores, Score{name, of(name, f, y, c)})
			}
		}
		return scores, nil
	}
	r2 := 1 - of("1-r2", f, y, c) // without units, so that several targets count alike
	huber := of(huberMeasure, f, y, c)
	y = slices.Clone(y)
	e.Decode(f)
	e.Decode(y)
	scores := []Score{{"rmse", of("rmse", f, y, c)}, {"mae", of("mae", f, y, c)}, {"r2", r2}}
	switch s.Loss {
	case learners.HuberLoss:
		scores = append(scores, Score{huberMeasure, huber})
	case learners.QuantileLoss:
		scores = append(scores, Score{"pinball", of("pinball", f, y, c)}, Score{"below", s.Below(f, y, c)})
	}
	if c == 1 {
		return scores, nil
	}
	for j, name := range e.OutputNames() {
		f, y := column(f, j, c), column(y, j, c)
		scores = append(scores, Score{"rmse(" + name + ")", of("rmse", f, y, 1)}, Score{"mae(" + name + ")", of("mae", f, y, 1)}, Score{"r2(" + name + ")", 1 - of("1-r2", f, y, 1)})
	}
	return scores, nil
}

// column is column j of a, n×c row-major.
func column(a []float64, j, c int) []float64 {
	out := make([]float64, 0, len(a)/c)
	for i := j; i < len(a); i += c {
		out = append(out, a[i])
	}
	return out
}
