package autotune

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Fitted is a configuration that was fitted to training and validation rows.
type Fitted struct {
	Trial int `json:"trial"`
	// Values are those of the fit. Where all rows of a trial were centres, and there are more
	// rows now, the trial had fewer centres.
	Values training.Values `json:"values"`
	// Step is the step at which the fit ended, which is the best step of the trial. It is 0
	// if the fit went to the end.
	Step int `json:"step,omitempty"`
	// Validation is the error of the trial. Its fits left out the rows that it was judged on.
	Validation float64 `json:"validation"`
	// ValidationClasses is the class error there, nil if that is Validation or there are none.
	ValidationClasses *float64 `json:"validation_class_error,omitempty"`
	// Test has the errors on the test rows. It is empty if there are no test rows.
	Test []training.Score `json:"test,omitempty"`

	// File is the model with all that is needed to use it.
	File *learners.File `json:"-"`
}

// Refit fits the configuration of a completed trial to training and validation rows
// together and measures it on the test rows. Where steps regularise, it fits up to the best
// step of the trial. Where all rows of a trial are centres, all rows of this fit are. The
// encoding stays that of the training rows.
func (t *Tuning) Refit(ctx context.Context, trial study.Trial, progress func(learners.Progress) error) (*Fitted, error) {
	f, err := t.refit(ctx, trial, progress)
	if err != nil {
		return nil, err
	}
	f.Test, err = t.test(ctx, f.File.Model, f.Values)
	return f, err
}

// Compare is Refit without a model if there are no test rows, of which alone it has the errors.
func (t *Tuning) Compare(ctx context.Context, trial study.Trial, progress func(learners.Progress) error) (*Fitted, error) {
	if t.data.Test == nil {
		return t.unfitted(trial), nil
	}
	return t.Refit(ctx, trial, progress)
}

// test returns the errors of a model on the test rows, if there are any.
func (t *Tuning) test(ctx context.Context, m learners.Model, v training.Values) ([]training.Score, error) {
	if t.data.Test == nil {
		return nil, nil
	}
	s := t.algorithm.Scoring(v, t.problem)
	s.Weights = t.data.TestWeights
	return training.Evaluate(ctx, m, t.data.Encoding, t.data.Test, s)
}

// unfitted has the values for a fit, and the errors of the trial.
func (t *Tuning) unfitted(trial study.Trial) *Fitted {
	f := &Fitted{Trial: trial.Number, Values: Values(trial.Config)}
	m, _ := trial.Outcome.Metric(t.Objective())
	f.Validation = m.Mean()
	if m, ok := trial.Outcome.Metric(classError); ok {
		e := m.Mean()
		f.ValidationClasses = &e
	}
	if m, ok := trial.Outcome.Metric(bestStep); ok {
		f.Step = int(m.Mean())
	}
	if _, fixed := t.options.Fixed["centers"]; !fixed && f.Values["centers"] == strconv.Itoa(t.problem.Rows) {
		f.Values["centers"] = strconv.Itoa(t.known.Len())
	}
	return f
}

// refit is Refit without the errors on the test rows.
func (t *Tuning) refit(ctx context.Context, trial study.Trial, progress func(learners.Progress) error) (*Fitted, error) {
	f := t.unfitted(trial)
	e, err := t.algorithm.Estimator(f.Values, t.problem)
	if err != nil {
		return nil, err
	}
	began, last := time.Now(), 0
	model, err := e.Fit(ctx, t.known, learners.Options{
		Seed: t.options.Seed, Workers: t.options.goroutines(), Weights: t.weights,
		Progress: func(p learners.Progress) error {
			last = p.Iteration
			if progress != nil {
				if err := progress(p); err != nil {
					return err
				}
			}
			return endAt(f.Step, p)
		},
	})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(t.algorithm.Used(f.Values, t.problem, model))
	if err != nil {
		return nil, err
	}
	if t.options.Calibrate {
		if model, err = t.calibrate(ctx, trial, model, f.Step); err != nil {
			return nil, err
		}
	}
	f.File = &learners.File{
		Algorithm: t.algorithm.Name, Params: params, Seed: t.options.Seed, Encoding: t.data.Encoding, Model: model,
		Report: &learners.Report{
			Rows: t.known.Len(), Iterations: last, Best: last, Seconds: time.Since(began).Seconds(),
			Measure: t.name, ValidationError: &f.Validation,
		},
	}
	return f, nil
}

// endAt ends a fit at a step, or never if it is 0.
func endAt(step int, p learners.Progress) error {
	if p.Iteration == step {
		return learners.ErrStop
	}
	return nil
}

// calibrate adds probabilities to a model by the outputs of its trial for rows that the fit left out.
func (t *Tuning) calibrate(ctx context.Context, trial study.Trial, m learners.Model, step int) (learners.Model, error) {
	f, err := t.outputs(ctx, trial.Config, step)
	if err != nil {
		return nil, err
	}
	judge, weights := t.judges()
	y, err := learners.Targets(ctx, judge)
	if err != nil {
		return nil, err
	}
	return learners.CalibrateOn(m, f, y, weights)
}
