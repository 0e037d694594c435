package autotune

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Fitted is a configuration that was fitted to training and validation rows.
type Fitted struct {
	Trial  int             `json:"trial"`
	Values training.Values `json:"values"`
	// Step is the step at which the fit ended, which is the best step of the trial. It is 0
	// if the fit went to the end.
	Step int `json:"step,omitempty"`
	// Validation is the error of the trial, which was fitted to training rows only.
	Validation float64 `json:"validation"`
	// Test has the errors on the test rows. It is empty if there are no test rows.
	Test []training.Score `json:"test,omitempty"`

	// File is the model with all that is needed to use it.
	File *learners.File `json:"-"`
}

// Refit fits the configuration of a completed trial to training and validation rows
// together and measures it on the test rows. Where steps regularise, it fits up to the best
// step of the trial. The encoding stays that of the training rows. Refit returns the error
// of ctx if ctx ends.
func (t *Tuning) Refit(ctx context.Context, trial study.Trial, progress func(learners.Progress) error) (*Fitted, error) {
	f := &Fitted{Trial: trial.Number, Values: Values(trial.Config)}
	m, _ := trial.Outcome.Metric(t.Objective())
	f.Validation = m.Mean()
	m, ok := trial.Outcome.Metric(bestStep)
	if ok {
		f.Step = int(m.Mean())
	}
	known, err := t.data.Known()
	if err != nil {
		return nil, err
	}
	e, err := t.algorithm.Estimator(f.Values, t.problem)
	if err != nil {
		return nil, err
	}
	began, last := time.Now(), 0
	model, err := e.Fit(ctx, known, learners.Options{
		Seed: t.options.Seed, Workers: t.options.Workers,
		Progress: func(p learners.Progress) error {
			last = p.Iteration
			if progress != nil {
				if err := progress(p); err != nil {
					return err
				}
			}
			if p.Iteration == f.Step {
				return learners.ErrStop
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(t.algorithm.Used(f.Values, t.problem, model))
	if err != nil {
		return nil, err
	}
	f.File = &learners.File{
		Algorithm: t.algorithm.Name, Params: params, Seed: t.options.Seed, Encoding: t.data.Encoding, Model: model,
		Report: &learners.Report{
			Rows: known.Len(), Iterations: last, Best: last, Seconds: time.Since(began).Seconds(),
			Measure: t.name, ValidationError: &f.Validation,
		},
	}
	if t.data.Test != nil {
		f.Test, err = training.Evaluate(ctx, model, t.data.Encoding, t.data.Test, t.algorithm.Scoring(f.Values, t.problem))
	}
	return f, err
}
