package autotune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// These are the metrics of a report after a fold, beside the objective. They are enough to
// continue a trial with the next fold.
const (
	foldError = "fold-error"
	foldClass = "fold-class-error"
	foldBest  = "fold-best-step"
	foldSteps = "fold-steps"
)

// foldRows is the number of training and validation rows below which [DefaultFolds] asks
// for cross-validation, and usualFolds is its number of folds.
const (
	foldRows   = 2000
	usualFolds = 5
)

// DefaultFolds returns the number of folds for n training and validation rows. Many rows
// have one split. A fifth of few rows is too small a sample to compare configurations on, so
// they have n folds where these have a closed form, and five otherwise.
func DefaultFolds(a training.Algorithm, fixed training.Values, n int) int {
	switch {
	case n >= foldRows || n < 2*usualFolds:
		return 1
	case closed(a, fixed):
		return n
	}
	return usualFolds
}

// part is rows to fit to and rows to judge on.
type part struct {
	train, validation data.Source
	weights, judged   []float64 // of their rows, nil if all count alike
}

// leaveOneOuter is an estimator with the outputs for each row of a fit without it.
type leaveOneOuter interface {
	LeaveOneOut(ctx context.Context, train data.Source, o learners.Options) ([]float64, error)
}

// closed reports whether a learner leaves out rows in closed form. These errors are those of
// the exact solution, which falkon in single precision does not have, nor where fixed
// hyper-parameters say where it ends.
func closed(a training.Algorithm, fixed training.Values) bool {
	ends := slices.ContainsFunc([]string{"solver", "iterations", "tolerance"}, func(name string) bool { return fixed[name] != "" })
	exact := fixed["precision"] != "float32" && !ends
	return a.Name == "krr" || a.Name == "falkon" && exact && a.Scoring(fixed, training.Problem{}).Loss == learners.SquaredLoss
}

// leaveOneOut is Trial in closed form.
func (t *Tuning) leaveOneOut(ctx context.Context, c space.Config, e learners.Estimator, out io.Writer) error {
	outputs, err := t.leftOut(ctx, e, t.options.Workers)
	if err != nil || ctx.Err() != nil {
		return failed(ctx, out, err)
	}
	y, err := learners.Targets(ctx, t.known)
	if err != nil {
		return err
	}
	known := t.data.KnownWeights()
	return t.write(out, c, folded{
		outputs:    outputs,
		err:        t.measure(t.name, known)(outputs, y, t.known.Outputs()),
		classError: t.measure(classError, known)(outputs, y, t.known.Outputs()),
	})
}

// leftOut returns the outputs for each row of a fit without it.
func (t *Tuning) leftOut(ctx context.Context, e learners.Estimator, workers int) ([]float64, error) {
	return e.(leaveOneOuter).LeaveOneOut(ctx, t.known, learners.Options{Seed: t.options.Seed, Workers: workers, Weights: t.weights})
}

// divide sets the folds of the training and validation rows, with classes in equal shares.
func (t *Tuning) divide(ctx context.Context, k int) error {
	known, judged := t.known, t.data.KnownWeights()
	if n := known.Len(); k > n {
		return fmt.Errorf("autotune: there are %d folds for %d training and validation rows; use at most %[2]d", k, n)
	}
	var classes []int
	if t.data.Encoding.Task == data.Classification {
		y, err := data.Targets(ctx, known)
		if err != nil {
			return err
		}
		classes = data.Classes(y, known.Outputs())
	}
	parts, err := data.KFold(known.Len(), classes, k, t.options.Seed)
	if err != nil {
		return err
	}
	for i, p := range parts {
		f := part{weights: data.Pick(t.weights, p.Train), judged: data.Pick(judged, p.Test)}
		if err := t.positive(fmt.Sprintf("rows outside fold %d", i+1), f.weights, "use fewer folds"); err != nil {
			return err
		}
		if f.train, err = data.Subset(known, p.Train); err != nil {
			return err
		}
		if f.validation, err = data.Subset(known, p.Test); err != nil {
			return err
		}
		t.folds = append(t.folds, f)
	}
	return nil
}

// folded is the result of a fold.
type folded struct {
	err        float64 // of the best step, or of the last where steps do not regularise
	classError float64 // there
	best, last int
	current    bool      // reported in the present run of the trial
	outputs    []float64 // for the rows that judge, of a fit that ends by itself
}

// crossValidate is Trial with folds. The objective is the mean error of the folds, weighted
// by the weights of their rows. Each fold is reported, and the trial can end between folds. A later run of the
// trial takes the folds that were reported, so that an interruption costs at most a fold.
func (t *Tuning) crossValidate(ctx context.Context, svc tuner.Service, name string, trial study.Trial, e learners.Estimator, out io.Writer) error {
	done, err := t.reported(ctx, svc, name, trial)
	if err != nil {
		return err
	}
	v := Values(trial.Config)
	if few := t.few(v); few > 0 {
		v["centers"] = strconv.Itoa(few)
		if e, err = t.algorithm.Estimator(v, t.problem); err != nil {
			return infeasible(out, err)
		}
	}
	f := following{ctx: ctx, svc: svc, study: name, trial: trial, objective: t.Objective()}
	sum, classes, rows, best, last := 0.0, 0.0, 0.0, 0, 0
	for i, part := range t.folds {
		r, known := done[i]
		if !known {
			if r, err = t.fitPart(ctx, e, part, nil); err != nil || ctx.Err() != nil {
				return failed(ctx, out, err)
			}
		}
		if r.err-r.err != 0 {
			return infeasible(out, fmt.Errorf("the error of fold %d is not finite", i+1))
		}
		n := float64(part.validation.Len())
		if part.judged != nil {
			n = 0
			for _, s := range part.judged {
				n += s
			}
		}
		sum, classes, rows, best, last = sum+n*r.err, classes+n*r.classError, rows+n, best+r.best, max(last, r.last)
		values := []study.NamedValue{
			{Name: t.Objective(), Value: sum / rows},
			{Name: foldError, Value: r.err},
			{Name: foldBest, Value: float64(r.best)},
			{Name: foldSteps, Value: float64(r.last)},
		}
		if t.classified() {
			values = append(values, study.NamedValue{Name: foldClass, Value: r.classError})
		}
		// The last report is sent again, because its verdict may be lost.
		if _, more := done[i+1]; r.current && more {
			continue
		}
		if err := f.send(study.Report{Step: int64(i + 1), Values: values}); err != nil {
			return err
		}
	}
	return t.write(out, trial.Config, folded{
		err: sum / rows, classError: classes / rows, last: last, best: int(math.Round(float64(best) / float64(len(t.folds)))),
	})
}

// fitPart fits and judges. Where steps regularise it calls step, if that is not nil, with the
// error of each.
func (t *Tuning) fitPart(ctx context.Context, e learners.Estimator, part part, step func(step int, e float64) error) (folded, error) {
	r, least := folded{}, math.Inf(1)
	at, measure, classes := 0.0, t.measure(t.name, part.judged), t.measure(classError, part.judged)
	judge := func(outputs, targets []float64, c int) float64 {
		at = classes(outputs, targets, c)
		return measure(outputs, targets, c)
	}
	regularise := t.stepsRegularise()
	o := learners.Options{Seed: t.options.Seed, Workers: t.options.Workers, Weights: part.weights}
	if regularise {
		o.Validation, o.Measure, o.Patience = part.validation, judge, t.patience()
	}
	o.Progress = func(p learners.Progress) error {
		r.last = p.Iteration
		if !regularise {
			return nil
		}
		if p.ValidationError < least {
			least, r.err, r.classError, r.best = p.ValidationError, p.ValidationError, at, p.Iteration
		}
		if step == nil {
			return nil
		}
		return step(p.Iteration, p.ValidationError)
	}
	r.err = math.Inf(1)
	model, err := e.Fit(ctx, part.train, o)
	if err != nil || regularise {
		return r, err
	}
	y, err := learners.Targets(ctx, part.validation)
	if err != nil {
		return r, err
	}
	r.outputs = make([]float64, len(y))
	if err := model.Predict(ctx, r.outputs, part.validation); err != nil {
		return r, err
	}
	r.err = judge(r.outputs, y, part.validation.Outputs())
	r.classError = at
	return r, nil
}

// reported returns the folds that the trial reported, also in an earlier run that was
// interrupted.
func (t *Tuning) reported(ctx context.Context, svc tuner.Service, name string, trial study.Trial) (map[int]folded, error) {
	done := map[int]folded{}
	trials, _, err := svc.Trials(ctx, name, tuner.Filter{First: trial.Number, Limit: 1, Reports: true})
	if err != nil {
		return nil, err
	}
	if len(trials) == 0 || trials[0].Number != trial.Number {
		return nil, errors.New("autotune: the trial is not in the study")
	}
	for _, r := range trials[0].Reports {
		found := map[string]float64{}
		for _, v := range r.Values {
			found[v.Name] = v.Value
		}
		if x, ok := found[foldError]; ok && r.Step >= 1 {
			done[int(r.Step)-1] = folded{err: x, classError: found[foldClass], best: int(found[foldBest]), last: int(found[foldSteps]), current: r.Epoch == trial.Epoch}
		}
	}
	return done, nil
}
