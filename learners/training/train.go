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
	"strings"

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
// of these rows. Where steps regularise, the last fit ends at the step with the least error. Elsewhere
// λ is that of several with the least error, for up to 100,000 rows. Where length scales or a metric
// are learned, fits with them and with the median distance are compared, and without validation rows a
// tenth of the rows judges. If ctx ends, Train returns its error with the last model that is whole, or else
// that of the work done so far.
func (a *Algorithm) Train(ctx context.Context, d *Data, r Run) (*Trained, error) {
	if in := (reader{a, r.Values}); d.Validation == nil && (in.learns() || in.text(metricName) == fullMetric) {
		var err error
		if d, err = d.held(r.Options.Seed); err != nil {
			return nil, err
		}
	}
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
		_, err = t.walk(ctx, r.Values, t.keep)
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
		a.err, err = ErrorOn(ctx, a.model, t.judge.rows, t.measure)
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

// ErrorOn returns the error of a model on rows, +Inf if it is not a number.
func ErrorOn(ctx context.Context, m learners.Model, rows data.Source, measure learners.Measure) (float64, error) {
	y, err := learners.Targets(ctx, rows)
	if err != nil {
		return 0, err
	}
	f := make([]float64, len(y))
	if err := m.Predict(ctx, f, rows); err != nil {
		return 0, err
	}
	if v := measure(f, y, rows.Outputs()); v == v {
		return v, nil
	}
	return math.Inf(1), nil
}

// compare tries the median distance, learned length scales, and a learned metric, as far as they are
// learned, with several λ. A fit of the latter two that fails is left out.
func (t *trainer) compare(ctx context.Context) error {
	scale, given := t.run.Values[lengthScaleName]
	plain, named := maps.Clone(t.run.Values), "the median distance"
	if given && scale != Auto {
		named = "the given length scale"
	} else {
		delete(plain, lengthScaleName)
	}
	plain[relevanceName] = equalRelevance
	if t.problem.Metric != nil {
		plain[metricName] = diagonal
	}
	best, err := t.walk(ctx, plain, t.keep)
	if err != nil {
		return err
	}
	used, said := named, []string{fmt.Sprintf("%.4g with %s", best.err, named)}
	consider := func(name string, v Values) error {
		a, err := t.walk(ctx, v, func(attempt) {})
		if diverged := (*learners.DivergenceError)(nil); errors.As(err, &diverged) {
			a.err = math.Inf(1)
		} else if err != nil {
			return err
		}
		said = append(said, fmt.Sprintf("%.4g with %s", a.err, name))
		if a.err < leastGain*best.err {
			best, used = a, name
			t.keep(best)
		}
		return nil
	}
	if t.problem.Learned != nil {
		v := maps.Clone(t.run.Values)
		if t.problem.Metric != nil {
			v[metricName] = diagonal
		}
		if !given { // better as they are, with their λ, than at the median distance
			v[lengthScaleName] = Auto
		}
		if err := consider(learnedScales, v); err != nil {
			return err
		}
	}
	if m := t.problem.Metric; m != nil {
		if err := consider(fmt.Sprintf("a full metric, learned from %d rows", m.Rows), t.run.Values); err != nil {
			return err
		}
	}
	if used == learnedScales {
		t.notes = append(t.notes, t.problem.Learned.Notes(t.data.Encoding.InputNames())...)
	} else {
		t.out.Problem.Learned = nil
	}
	t.notes = append(t.notes, fmt.Sprintf("the validation %s is %s, so the model has %s", t.out.Measure, strings.Join(said, ", "), used))
	return nil
}

const learnedScales = "learned length scales"

// walk tries v, and larger and smaller λ as long as these are better. It calls keep with the best so far.
func (t *trainer) walk(ctx context.Context, v Values, keep func(attempt)) (attempt, error) {
	best, err := t.try(ctx, v)
	diverged := (*learners.DivergenceError)(nil)
	if err != nil && !errors.As(err, &diverged) {
		return best, err
	} else if err != nil {
		best.err = math.Inf(1)
	}
	if err == nil {
		keep(best)
	}
	if t.run.Regularity != 0 { // λ is that of the theorem
		return best, err
	}
	walked := t.walkRidge(v, t.problem, func(v Values, gain float64) (bool, error) {
		a, err := t.try(ctx, v)
		if err != nil || !(a.err < gain*best.err) {
			return false, err
		}
		best = a
		keep(best)
		return true, nil
	})
	if best.err < math.Inf(1) { // with some λ
		err = nil
	}
	return best, cmp.Or(walked, err)
}

// walkRidge calls better with larger and smaller λ than that of v, and the ratio of errors that makes it
// better, as long as it is. It does nothing where λ is given as a number, is that of the evidence of an exact fit, or
// has no part, and for many rows, where a fit takes long.
func (a *Algorithm) walkRidge(v Values, p Problem, better func(Values, float64) (bool, error)) error {
	r := reader{a, v}
	text, given := v["lambda"]
	k, err := r.kernel(p)
	has := slices.ContainsFunc(a.Parameters, func(p Parameter) bool { return p.Name == "lambda" })
	if given && text != Auto || !has || err != nil || p.Rows > mostWalked || a.StepsRegularise(v) || a.Name == ridgeRegression.Name && r.learns() {
		return nil
	}
	for _, to := range []struct{ factor, gain float64 }{{10, leastGain}, {0.1, smallerGain}} {
		for at := r.ridge(k, p) * to.factor; at > leastWalked && at < 1; at *= to.factor {
			next := maps.Clone(v)
			next["lambda"] = strconv.FormatFloat(at, 'g', 4, 64)
			more, err := better(next, to.gain)
			if diverged := (*learners.DivergenceError)(nil); err != nil && !errors.As(err, &diverged) {
				return err
			} else if !more {
				break
			}
		}
	}
	return nil
}

// leastWalked is the least λ that is tried, and mostWalked the largest number of rows for which.
const leastWalked, mostWalked = 1e-13, 100_000

// leastGain is the ratio of errors that makes a larger λ, or what is learned, better, because few rows
// judge. smallerGain is that of a smaller λ. With one that is too small the error is large on few rows, of
// which none may judge.
const leastGain, smallerGain = 0.99, 0.97
