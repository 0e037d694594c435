package training

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// Score is a measure of a model on data.
type Score struct {
	Name  string  `json:"name"` // "rmse", "auc"
	Value float64 `json:"value"`
}

// MeasureNamed returns the measure of a name, of outputs in the units of the
// targets. The empty name stands for "rmse", and for "class-error" where the
// targets are classes.
func MeasureNamed(name string, e *dataset.Encoding) (string, learners.Measure, error) {
	classes := e.Task == dataset.Classification
	switch {
	case name == "" && classes:
		name = "class-error"
	case name == "":
		name = "rmse"
	}
	m := learners.MeasureNamed(name)
	if m == nil {
		return "", nil, fmt.Errorf("measure %q is not one of %s", name, strings.Join(learners.MeasureNames(), ", "))
	}
	if classes {
		return name, m, nil
	}
	if slices.Contains([]string{"class-error", "1-auc", "log-loss", "brier"}, name) {
		return "", nil, fmt.Errorf("measure %q is for classes, and the target is a number", name)
	}
	return name, func(outputs, targets []float64, c int) float64 {
		outputs, targets = slices.Clone(outputs), slices.Clone(targets)
		e.Decode(outputs)
		e.Decode(targets)
		return m(outputs, targets, c)
	}, nil
}

// Evaluate measures a model on data of its encoding: root mean square error,
// mean absolute error, in the units of the targets, and R² for regression; class
// error, area under the ROC curve and, where the loss gives probabilities, the
// logarithmic loss for classification.
func Evaluate(ctx context.Context, m learners.Model, e *dataset.Encoding, src dataset.Source) ([]Score, error) {
	y, err := learners.Targets(ctx, src)
	if err != nil {
		return nil, err
	}
	c := src.Outputs()
	if c == 0 {
		return nil, fmt.Errorf("the data have no target column to compare with")
	}
	f := make([]float64, len(y))
	if err := m.Predict(ctx, f, src); err != nil {
		return nil, err
	}
	if e.Task == dataset.Classification {
		scores := []Score{{"class-error", learners.ClassError(f, y, c)}, {"auc", learners.AUC(f, y, c)}}
		if l := learners.LinkOf(m); l == learners.Logistic {
			scores = append(scores, Score{"log-loss", learners.LogLossOf(l)(f, y, c)})
		}
		return scores, nil
	}
	r2 := learners.R2(f, y, c) // without units, so that several targets count alike
	y = slices.Clone(y)
	e.Decode(f)
	e.Decode(y)
	return []Score{{"rmse", learners.RMSE(f, y, c)}, {"mae", learners.MAE(f, y, c)}, {"r2", r2}}, nil
}
