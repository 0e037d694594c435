package training

import (
	"context"
	"encoding/json"
	"fmt"
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

// MarshalJSON writes null for a value that is not defined, because numbers in JSON are finite.
func (s Score) MarshalJSON() ([]byte, error) {
	j := struct {
		Name  string   `json:"name"`
		Value *float64 `json:"value"`
	}{Name: s.Name}
	if s.Defined() {
		j.Value = &s.Value
	}
	return json.Marshal(j)
}

// MeasureNamed returns the measure with this name, of outputs in the units of the targets and
// rows with the weights of s. The empty name means "log-loss" where outputs give probabilities,
// and otherwise the measure of the loss of s. The Huber loss is in units of encoded targets.
func MeasureNamed(name string, e *data.Encoding, s learners.Scoring) (string, learners.Measure, error) {
	classes := e.Task == data.Classification
	switch {
	case name == "" && classes && s.Link != learners.Expected:
		name = "log-loss"
	case name == "":
		name = map[learners.Loss]string{learners.SquaredLoss: "rmse", learners.HuberLoss: huberMeasure, learners.QuantileLoss: "pinball"}[s.Loss]
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

// CheckMeasure refuses measures of probabilities for an algorithm whose outputs are not
// probabilities.
func (a *Algorithm) CheckMeasure(name string) error {
	if learners.NeedsProbabilities(name) && a.Name != logFalkon.Name {
		return fmt.Errorf("measure %q needs probabilities, which %s does not give; %s does", name, a.Name, logFalkon.Name)
	}
	return nil
}

// Evaluate measures a model on data of its encoding. Regression has rmse and mae in the units
// of the targets, R², the measure of a robust loss, for quantiles the share of rows below the
// function, and the scores of each of several targets, such as "rmse(u)". Classification has
// the class error, the balanced accuracy and the area under the ROC curve, and with
// probabilities the logarithmic loss, the Brier score and the expected calibration error.
//
// s has the weights of the rows, of which those with the weight 0 are not read. It returns a
// *learners.DataError for data without targets.
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
	var scores []Score
	add := func(suffix string, f, y []float64, c int, names ...string) {
		for _, name := range names {
			if m := s.Measure(name); m != nil {
				scores = append(scores, Score{name + suffix, m(f, y, c)})
			} else {
				scores = append(scores, Score{name + suffix, 1 - s.Measure("1-"+name)(f, y, c)})
			}
		}
	}
	if e.Task == data.Classification {
		add("", f, y, c, "class-error", "balanced-accuracy", "auc")
		if s.Link != learners.Expected {
			add("", f, y, c, "log-loss", "brier", "calibration-error")
		}
		return scores, nil
	}
	add("", f, y, c, "r2", huberMeasure) // without units, so that several targets count alike
	r2, huber := scores[0], scores[1]
	y, scores = slices.Clone(y), nil
	e.Decode(f)
	e.Decode(y)
	add("", f, y, c, "rmse", "mae")
	scores = append(scores, r2)
	switch s.Loss {
	case learners.HuberLoss:
		scores = append(scores, huber)
	case learners.QuantileLoss:
		add("", f, y, c, "pinball")
		scores = append(scores, Score{"below", s.Below(f, y, c)})
	}
	if c == 1 {
		return scores, nil
	}
	for j, name := range e.OutputNames() {
		add("("+name+")", column(f, j, c), column(y, j, c), 1, "rmse", "mae", "r2")
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
