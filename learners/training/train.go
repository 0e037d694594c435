package training

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/nystrom"
)

// StepsRegularise reports whether the steps of a fit are models of growing complexity, of which
// a validation error chooses one. Otherwise they approximate one model that λ regularises, and
// the last one is the best.
func (a *Algorithm) StepsRegularise(v Values) bool {
	switch a.Name {
	case ridgeRegression.Name, falkonAlgorithm.Name, logFalkon.Name:
		return false
	case nystromAlgorithm.Name:
		solver := nystrom.Solver(reader{a, v}.text("solver"))
		return solver == nystrom.Gradient || solver == nystrom.SGD
	}
	return true
}

// Run says how to train.
type Run struct {
	Values Values
	// Measure is the validation error by name, and Classes the weights of classes, see
	// [MeasureNamed] and [ClassWeights].
	Measure, Classes string
	// Regularity is r of theory, whose settings are then those of all Values that are not given,
	// with all steps. 0 takes the defaults.
	Regularity float64
	// Options are those of fits. Only Seed, Workers, Patience and Progress have an effect.
	Options learners.Options
}

// Trained is the result of a training.
type Trained struct {
	Model   learners.Model
	Problem Problem
	// Values are those of the fit, after the comparison of length scales.
	Values Values
	// Rows and Iterations are those of the last fit.
	Rows, Iterations int
	// Measure names the error of Judged, which was fitted without the validation rows. Step is
	// the step of that fit at which the error was least, where steps regularise. Judged is nil
	// and Error NaN without validation rows.
	Judged  learners.Model
	Measure string
	Error   float64
	Step    int
	// Notes are those of the last fit and of the comparison of length scales.
	Notes []string
}

// Train fits to the training rows of d, to measure the error on validation rows, and then to all
// of these rows. Where steps regularise, the last fit ends at the step with the least error.
// Where length scales are learned, fits with them and with the median distance are compared, and
// for learners with centres λ is chosen for these centres. Without validation rows a tenth of the
// rows judges. If ctx ends, Train returns its error with the last model that is whole, or else
// that of the work done so far.
func (a *Algorithm) Train(ctx context.Context, d *Data, r Run) (*Trained, error) {
	t := &trainer{Algorithm: a, data: d, run: r, out: &Trained{Error: math.NaN()}}
	p, err := NewProblem(ctx, d, r.Options.Seed)
	if err != nil {
		return nil, err
	}
	if t.train.weights, err = ClassWeights(ctx, r.Classes, d.Encoding, d.Train, d.Weights); err != nil {
		return nil, &ClassError{err}
	}
	t.train.rows, t.judge = d.Train, part{d.Validation, d.ValidationWeights}
	if t.all.rows, err = d.Known(); err != nil {
		return nil, err
	}
	if t.all.weights, err = ClassWeights(ctx, r.Classes, d.Encoding, t.all.rows, d.KnownWeights()); err != nil {
		return nil, &ClassError{err}
	}
	if err := a.Learn(ctx, r.Values, d.Train, t.train.weights, &p, r.Options.Seed, r.Options.Workers); err != nil {
		return nil, err
	}
	n := data.NewCopies(d.KnownWeights(), t.all.rows.Len()).Len()
	if r.Regularity != 0 {
		if r.Values, t.notes, err = a.theoretical(ctx, r.Values, d.Train, p, n, r.Regularity, r.Options.Seed); err != nil {
			return nil, err
		}
		t.run.Values = r.Values
	}
	p.Rows = n
	scoring := a.Scoring(r.Values, p)
	scoring.Weights = t.judge.weights
	if t.out.Measure, t.measure, err = MeasureNamed(r.Measure, d.Encoding, scoring); err != nil {
		return nil, err
	}
	t.problem, t.out.Problem, t.out.Values = p, p, r.Values
	if p.Learned != nil || p.Metric != nil {
		err = t.compare(ctx)
	} else if d.Validation != nil {
		_, err = t.try(ctx, r.Values)
	}
	if err != nil {
		return t.result(err)
	}
	t.out.Rows = t.all.rows.Len()
	model, err := t.fit(ctx, t.out.Values, t.all, learners.Options{Progress: func(p learners.Progress) error {
		if p.Iteration == t.out.Step {
			return learners.ErrStop
		}
		return nil
	}})
	if model != nil && (err == nil || t.out.Model == nil) {
		t.out.Model = model
	}
	return t.result(err)
}

// ClassError reports weights of classes that do not suit the data.
type ClassError struct{ Err error }

func (e *ClassError) Error() string { return e.Err.Error() }

func (e *ClassError) Unwrap() error { return e.Err }

// part is rows with their weights.
type part struct {
	rows    data.Source
	weights []float64
}

// trainer is the state of Train.
type trainer struct {
	*Algorithm
	data              *Data
	run               Run
	problem           Problem
	train, judge, all part
	measure           learners.Measure
	notes             []string // beside those of the last fit
	out               *Trained
}

func (t *trainer) result(err error) (*Trained, error) {
	if t.out.Model == nil {
		return nil, err
	}
	return t.out, err
}

// fit fits, with the options of the run beside o. Each Progress of o ends the fit first.
func (t *trainer) fit(ctx context.Context, v Values, p part, o learners.Options) (learners.Model, error) {
	e, err := t.Estimator(v, t.problem)
	if err != nil {
		return nil, err
	}
	o.Seed, o.Workers, o.Weights = t.run.Options.Seed, t.run.Options.Workers, p.weights
	watch := o.Progress
	t.out.Notes = slices.Clone(t.notes)
	o.Progress = func(at learners.Progress) error {
		t.out.Iterations = at.Iteration
		t.out.Notes = append(t.out.Notes, at.Notes...)
		if t.run.Options.Progress != nil {
			if err := t.run.Options.Progress(at); err != nil {
				return err
			}
		}
		return watch(at)
	}
	return e.Fit(ctx, p.rows, o)
}

// attempt is a fit to the training rows with its error on the judging ones.
type attempt struct {
	values Values
	model  learners.Model
	err    float64
	step   int
}

// try fits v to the training rows. An interrupted fit is the result if there is no other.
func (t *trainer) try(ctx context.Context, v Values) (attempt, error) {
	a := attempt{values: v, err: math.NaN()}
	o := learners.Options{Progress: func(p learners.Progress) error {
		if p.Best {
			a.step, a.err = p.Iteration, p.ValidationError
		}
		return nil
	}}
	regularise := t.StepsRegularise(v) && t.run.Regularity == 0
	if regularise {
		o.Validation, o.Measure, o.Patience = t.judge.rows, t.measure, t.run.Options.Patience
	}
	var err error
	if a.model, err = t.fit(ctx, v, t.train, o); err == nil && !regularise {
		a.err, err = t.error(ctx, a.model)
	}
	if a.model != nil && t.out.Model == nil {
		t.keep(a)
	}
	return a, err
}

// keep makes an attempt the result for now.
func (t *trainer) keep(a attempt) {
	t.out.Model, t.out.Judged, t.out.Values, t.out.Error, t.out.Step, t.out.Rows = a.model, a.model, a.values, a.err, a.step, t.train.rows.Len()
}

// error returns the error of a model on the judging rows.
func (t *trainer) error(ctx context.Context, m learners.Model) (float64, error) {
	y, err := learners.Targets(ctx, t.judge.rows)
	if err != nil {
		return 0, err
	}
	f := make([]float64, len(y))
	if err := m.Predict(ctx, f, t.judge.rows); err != nil {
		return 0, err
	}
	if v := t.measure(f, y, t.judge.rows.Outputs()); v == v {
		return v, nil
	}
	return math.Inf(1), nil
}

// compare tries the median distance, and learned length scales or a learned metric with several λ.
// A fit of these that fails is left out.
func (t *trainer) compare(ctx context.Context) error {
	if t.data.Validation == nil {
		if err := t.hold(ctx); err != nil {
			return err
		}
	}
	median := maps.Clone(t.run.Values)
	median[relevanceName] = equalRelevance
	if median[lengthScaleName] == Auto {
		delete(median, lengthScaleName)
	}
	if t.problem.Metric != nil {
		median[metricName] = diagonal
	}
	best, err := t.try(ctx, median)
	if err != nil {
		return err
	}
	without, with := best.err, math.Inf(1)
	// learned tries v and reports whether it is the best with learned length scales so far.
	learned := func(v Values) (better bool, err error) {
		a, err := t.try(ctx, v)
		if diverged := (*learners.DivergenceError)(nil); err != nil && !errors.As(err, &diverged) {
			return false, err
		}
		if better = err == nil && a.err < leastGain*with; better {
			with = a.err
		}
		if better && a.err < best.err {
			best = a
		}
		return better, nil
	}
	// Learned length scales are better as they are, with their λ, than at the median distance.
	values := maps.Clone(t.run.Values)
	if _, given := values[lengthScaleName]; !given && t.problem.Learned != nil {
		values[lengthScaleName] = Auto
	}
	if _, err := learned(values); err != nil {
		return err
	}
	if lambda, ok := t.ridge(values); ok {
		for _, factor := range []float64{10, 0.1} {
			for at := lambda * factor; at > leastWalked && at < 1; at *= factor {
				v := maps.Clone(values)
				v["lambda"] = strconv.FormatFloat(at, 'g', 4, 64)
				if better, err := learned(v); err != nil {
					return err
				} else if !better {
					break
				}
			}
		}
	}
	t.keep(best)
	if t.problem.Metric != nil {
		verdict := "the diagonal one is used"
		if with < without {
			verdict = "it is used"
		}
		t.notes = append(t.notes, fmt.Sprintf("the full metric, learned from %d rows, has a validation %s of %.4g, and the diagonal one %.4g, so %s", t.problem.Metric.Rows, t.out.Measure, with, without, verdict))
		return nil
	}
	t.out.Problem.Learned = nil
	verdict := "the median distance is used"
	if with < without {
		t.out.Problem.Learned, verdict = t.problem.Learned, "they are used"
		t.notes = append(t.notes, t.problem.Learned.Notes(t.data.Encoding.InputNames())...)
	}
	t.notes = append(t.notes, fmt.Sprintf("learned length scales have a validation %s of %.4g, and the median distance %.4g, so %s", t.out.Measure, with, without, verdict))
	return nil
}

// leastWalked is the least λ that compare tries, in units of κ².
const leastWalked = 1e-13

// leastGain is the ratio of errors that makes another λ better, because few rows judge.
const leastGain = 0.99

// ridge returns λ of learned length scales, if it is to be chosen for centres.
func (t *trainer) ridge(v Values) (float64, bool) {
	r := reader{t.Algorithm, v}
	_, given := t.run.Values["lambda"]
	if given || t.StepsRegularise(t.run.Values) || t.Name == ridgeRegression.Name && t.problem.Metric == nil {
		return 0, false
	}
	k, err := r.kernel(t.problem)
	if err != nil {
		return 0, false
	}
	return r.ridge(k, t.problem), true
}

// hold takes a tenth of the training rows to judge.
func (t *trainer) hold(ctx context.Context) error {
	whole := t.train
	parts, err := data.Split(whole.rows.Len(), nil, t.run.Options.Seed, 0.9, 0.1)
	if err != nil {
		return err
	}
	for i, p := range []*part{&t.train, &t.judge} {
		if p.rows, err = data.Subset(whole.rows, parts[i]); err != nil {
			return err
		}
		p.weights = data.Pick(whole.weights, parts[i])
	}
	scoring := t.Scoring(t.run.Values, t.problem)
	scoring.Weights = t.judge.weights
	_, t.measure, err = MeasureNamed(t.run.Measure, t.data.Encoding, scoring)
	return cmp.Or(err, ctx.Err())
}
