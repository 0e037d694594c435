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
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Averaged is an average of the models of several trials.
type Averaged struct {
	Members []Member `json:"members"` // by the errors of the trials
	// Validation is the error of the average of the outputs for rows that the fits left out. It
	// may exceed that of the best trial, of which a part is luck.
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

// averagedRows is the largest number of rows for an average.
const averagedRows = 10_000

// kind is the kernel, the relevance and the metric of a trial.
type kind [3]string

func kindOf(c space.Config) kind {
	v := Values(c)
	return kind{v["kernel"], v["relevance"], v["metric"]}
}

// kept has the outputs of a trial for rows that its fit left out.
type kept struct {
	config  space.Config
	err     float64
	outputs []float64
}

// keep keeps the outputs of the best trial of each kind that ran here, where an average or calibration
// reads them.
func (t *Tuning) keep(c space.Config, err float64, outputs []float64) {
	if !t.averages() && !t.options.Calibrate {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.kept[kindOf(c)]; !ok || err < old.err {
		t.kept[kindOf(c)] = kept{c, err, outputs}
	}
}

// outputs returns the outputs of a configuration for rows that its fit leaves out, those of [Tuning.judges].
// It fits, up to a step, unless a trial here has just done so.
func (t *Tuning) outputs(ctx context.Context, c space.Config, step int) ([]float64, error) {
	t.mu.Lock()
	k, ok := t.kept[kindOf(c)]
	t.mu.Unlock()
	if ok && k.config.Equal(c) {
		return k.outputs, nil
	}
	e, err := t.algorithm.Estimator(Values(c), t.problem)
	if err != nil {
		return nil, err
	}
	if t.alone {
		return t.leftOut(ctx, e, t.options.goroutines())
	}
	m, err := e.Fit(ctx, t.single.train, learners.Options{
		Seed: t.options.Seed, Workers: t.options.goroutines(), Weights: t.single.weights,
		Progress: func(p learners.Progress) error { return endAt(step, p) },
	})
	if err != nil {
		return nil, err
	}
	f := make([]float64, t.single.validation.Len()*t.known.Outputs())
	return f, m.Predict(ctx, f, t.single.validation)
}

// judges returns the rows that judge trials without folds, with their weights.
func (t *Tuning) judges() (data.Source, []float64) {
	if t.alone {
		return t.known, t.data.KnownWeights()
	}
	return t.single.validation, t.single.judged
}

// averages reports whether [Tuning.Average] has an average.
func (t *Tuning) averages() bool {
	single := t.folds == nil && !t.stepsRegularise() && t.known.Len() <= averagedRows
	return (t.alone || single) && t.data.Encoding.Task == data.Regression && slices.Contains(squares, t.name)
}

// Average averages the best trials of each kind, by [learners.AverageWeights], where a measure of squares
// judges numbers and trials leave out rows in closed form, or are fits of up to 10,000 rows that end by
// themselves, judged on the validation rows. It returns nil elsewhere. best is the [Tuning.Refit] of the
// best trial. fitting returns the progress function of a fit, and may be nil.
func (t *Tuning) Average(ctx context.Context, svc tuner.Service, name string, best *Fitted, fitting func(model, of int) func(learners.Progress) error) (*Averaged, error) {
	if !t.averages() {
		return nil, nil
	}
	judge, weights := t.judges()
	trials, err := t.candidates(ctx, svc, name)
	if err != nil || len(trials) < 2 {
		return nil, err
	}
	y, err := learners.Targets(ctx, judge)
	if err != nil {
		return nil, err
	}
	outputs := make([][]float64, len(trials))
	for i, trial := range trials {
		if outputs[i], err = t.outputs(ctx, trial.Config, 0); err != nil {
			return nil, err
		}
	}
	a := &Averaged{}
	mean := make([]float64, len(y))
	var models []learners.Model
	var shares []float64
	for i, w := range t.stack(outputs, y, weights) {
		if w == 0 {
			continue
		}
		for j, f := range outputs[i] {
			mean[j] += w * f
		}
		shares = append(shares, w)
		a.Members = append(a.Members, Member{Trial: trials[i].Number, Weight: w})
	}
	if len(a.Members) < 2 {
		return nil, nil
	}
	report := learners.Report{Rows: t.known.Len(), Measure: t.name}
	a.Validation = t.measure(t.name, weights)(mean, y, t.known.Outputs())
	var used []share
	for i := range a.Members {
		m, f := &a.Members[i], best
		if m.Trial != best.Trial {
			at := slices.IndexFunc(trials, func(s study.Trial) bool { return s.Number == m.Trial })
			var progress func(learners.Progress) error
			if fitting != nil {
				progress = fitting(i+1, len(a.Members))
			}
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
	model, err := learners.NewAverage(models, shares)
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

// stack returns the weights of models with these outputs for rows that they have not seen, of which judged
// has the weights.
func (t *Tuning) stack(outputs [][]float64, y, judged []float64) []float64 {
	c, residuals := t.known.Outputs(), make([][]float64, len(outputs))
	for i, f := range outputs {
		residuals[i] = make([]float64, len(y))
		for j := range y {
			residuals[i][j] = y[j] - f[j]
		}
	}
	var s []float64 // of the outputs
	if judged != nil {
		for j := range y {
			s = append(s, judged[j/c])
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
	best := map[kind]candidate{}
	err := t.completed(ctx, svc, name, func(trial study.Trial, x float64) {
		k := kindOf(trial.Config)
		if other, ok := best[k]; !ok || x < other.err {
			best[k] = candidate{trial, x}
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
