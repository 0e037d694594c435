package autotune

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Averaged is an average of the models of several trials.
type Averaged struct {
	Members []Member `json:"members"` // by the errors of the trials
	// Validation is the error of the average of the outputs of leaving out each row. It may
	// exceed that of the best trial, of which a part is luck.
	Validation float64 `json:"validation"`
	// Test has the errors on the test rows. It is empty if there are no test rows.
	Test []training.Score `json:"test,omitempty"`

	// File is the model with all that is needed to use it.
	File *learners.File `json:"-"`
}

// Member is the trial of a model in an average.
type Member struct {
	Trial  int             `json:"trial"`
	Weight float64         `json:"weight"`
	Values training.Values `json:"values"`
}

// averagePenalty draws the weights of an average to each other, because models with the same
// errors on few rows differ elsewhere.
const (
	averagePenalty = 0.03
	leastWeight    = 0.02
)

// squares are the measures that are functions of the squared error.
var squares = []string{"rmse", "mse", "1-r2", "normalised-error"}

// Average averages the best trials of each kind, by [learners.AverageWeights], where trials leave out
// rows in closed form and a measure of squares judges numbers. It returns nil elsewhere. best is the
// [Tuning.Refit] of the best trial.
func (t *Tuning) Average(ctx context.Context, svc tuner.Service, name string, best *Fitted, progress func(learners.Progress) error) (*Averaged, error) {
	if !t.alone || t.data.Encoding.Task != data.Regression || !slices.Contains(squares, t.name) {
		return nil, nil
	}
	trials, err := t.candidates(ctx, svc, name)
	if err != nil || len(trials) < 2 {
		return nil, err
	}
	y, err := learners.Targets(ctx, t.known)
	if err != nil {
		return nil, err
	}
	outputs := make([][]float64, len(trials))
	for i, trial := range trials {
		e, err := t.algorithm.Estimator(Values(trial.Config), t.problem)
		if err != nil {
			return nil, err
		}
		if outputs[i], err = t.leftOut(ctx, e, t.options.goroutines()); err != nil {
			return nil, err
		}
	}
	a := &Averaged{}
	mean := make([]float64, len(y))
	var models []learners.Model
	var weights []float64
	for i, w := range t.stack(outputs, y) {
		if w == 0 {
			continue
		}
		for j, f := range outputs[i] {
			mean[j] += w * f
		}
		weights = append(weights, w)
		a.Members = append(a.Members, Member{Trial: trials[i].Number, Weight: w})
	}
	if len(a.Members) < 2 {
		return nil, nil
	}
	report := learners.Report{Rows: t.known.Len(), Measure: t.name}
	a.Validation = t.measure(t.name, t.data.KnownWeights())(mean, y, t.known.Outputs())
	var used []share
	for i := range a.Members {
		m, f := &a.Members[i], best
		if m.Trial != best.Trial {
			at := slices.IndexFunc(trials, func(s study.Trial) bool { return s.Number == m.Trial })
			if f, err = t.refit(ctx, trials[at], progress); err != nil {
				return nil, err
			}
		}
		m.Values = f.Values
		models = append(models, f.File.Model)
		used = append(used, share{m.Trial, m.Weight, f.File.Params})
		report.Seconds += f.File.Report.Seconds
	}
	report.ValidationError = &a.Validation
	model, err := learners.NewAverage(models, weights)
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(used)
	if err != nil {
		return nil, err
	}
	a.File = &learners.File{
		Algorithm: t.algorithm.Name, Params: params, Seed: t.options.Seed, Encoding: t.data.Encoding, Model: model, Report: &report,
	}
	a.Test, err = t.test(ctx, model, best.Values)
	return a, err
}

// share is a member in a model file, with the hyper-parameters of its fit.
type share struct {
	Trial  int             `json:"trial"`
	Weight float64         `json:"weight"`
	Params json.RawMessage `json:"params"`
}

// stack returns the weights of models with these outputs of leaving out each row.
func (t *Tuning) stack(outputs [][]float64, y []float64) []float64 {
	c, residuals := t.known.Outputs(), make([][]float64, len(outputs))
	for i, f := range outputs {
		residuals[i] = make([]float64, len(y))
		for j := range y {
			residuals[i][j] = y[j] - f[j]
		}
	}
	var s []float64 // of the outputs
	if known := t.data.KnownWeights(); known != nil {
		for j := range y {
			s = append(s, known[j/c])
		}
	}
	return learners.AverageWeights(residuals, s, averagePenalty, leastWeight)
}

// candidates returns the best completed trial of each kernel with each relevance and metric, the
// best of them first.
func (t *Tuning) candidates(ctx context.Context, svc tuner.Service, name string) ([]study.Trial, error) {
	type candidate struct {
		trial study.Trial
		err   float64
	}
	best := map[[3]string]candidate{}
	err := t.completed(ctx, svc, name, func(trial study.Trial, x float64) {
		v := Values(trial.Config)
		kind := [3]string{v["kernel"], v["relevance"], v["metric"]}
		if other, ok := best[kind]; !ok || x < other.err {
			best[kind] = candidate{trial, x}
		}
	})
	var trials []study.Trial
	for _, c := range slices.SortedFunc(maps.Values(best), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.err, b.err), cmp.Compare(a.trial.Number, b.trial.Number))
	}) {
		trials = append(trials, c.trial)
	}
	return trials, err
}
