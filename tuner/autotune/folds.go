package autotune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// These are the metrics of a report after a fold, beside the objective. They are enough to
// continue a trial with the next fold.
const (
	foldError = "fold-error"
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
// have one split. A fifth of few rows is too small a sample to compare configurations on.
func DefaultFolds(n int) int {
	if n >= foldRows || n < 2*usualFolds {
		return 1
	}
	return usualFolds
}

// fold is a part of the training and validation rows, and the rest.
type fold struct {
	train, validation data.Source
}

// divide sets the folds of the training and validation rows, with classes in equal shares.
func (t *Tuning) divide(ctx context.Context, k int) error {
	known, err := t.data.Known()
	if err != nil {
		return err
	}
	if n := known.Len(); k > n {
		return fmt.Errorf("autotune: there are %d folds for %d training and validation rows; use at most %[2]d", k, n)
	}
	var parts []data.Fold
	if t.data.Encoding.Task == data.Classification {
		y, err := data.Targets(ctx, known)
		if err != nil {
			return err
		}
		parts, err = data.StratifiedKFold(data.Classes(y, known.Outputs()), k, t.options.Seed)
		if err != nil {
			return err
		}
	} else if parts, err = data.KFold(known.Len(), k, t.options.Seed); err != nil {
		return err
	}
	for _, p := range parts {
		f := fold{}
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
	best, last int
	current    bool // reported in the present run of the trial
}

// crossValidate is Trial with folds. The objective is the mean error of the folds, weighted
// by rows. Each fold is reported, and the trial can end between folds. A later run of the
// trial takes the folds that were reported, so that an interruption costs at most a fold.
func (t *Tuning) crossValidate(ctx context.Context, svc tuner.Service, name string, trial study.Trial, e learners.Estimator, out io.Writer) error {
	done, err := t.reported(ctx, svc, name, trial)
	if err != nil {
		return err
	}
	f := following{ctx: ctx, svc: svc, study: name, trial: trial, objective: t.Objective()}
	sum, rows, best, last := 0.0, 0, 0, 0
	for i, part := range t.folds {
		r, known := done[i]
		if !known {
			if r, err = t.fitFold(ctx, e, part); ctx.Err() != nil {
				return ctx.Err()
			} else if impossible(err) {
				return infeasible(out, err)
			} else if err != nil {
				return err
			}
		}
		if r.err-r.err != 0 {
			return infeasible(out, fmt.Errorf("the error of fold %d is not finite", i+1))
		}
		n := part.validation.Len()
		sum, rows, best, last = sum+float64(n)*r.err, rows+n, best+r.best, max(last, r.last)
		values := []study.NamedValue{
			{Name: t.Objective(), Value: sum / float64(rows)},
			{Name: foldError, Value: r.err},
			{Name: foldBest, Value: float64(r.best)},
			{Name: foldSteps, Value: float64(r.last)},
		}
		// The last report is sent again, because its verdict may be lost.
		if _, more := done[i+1]; r.current && more {
			continue
		}
		if err := f.send(study.Report{Step: int64(i + 1), Values: values}); err != nil {
			return err
		}
	}
	text := ""
	if t.stepsRegularise() {
		text = fmt.Sprintf(" %s=%d", bestStep, int(math.Round(float64(best)/float64(len(t.folds)))))
	}
	_, err = fmt.Fprintf(out, "%s=%s%s %s=%d\n", t.Objective(), strconv.FormatFloat(sum/float64(rows), 'g', 8, 64), text, lastStep, last)
	return err
}

// fitFold fits to the other folds.
func (t *Tuning) fitFold(ctx context.Context, e learners.Estimator, part fold) (folded, error) {
	r, least := folded{}, math.Inf(1)
	o := learners.Options{
		Seed: t.options.Seed, Workers: t.options.Workers, Validation: part.validation, Measure: t.measure,
		Progress: func(p learners.Progress) error {
			r.last, r.err = p.Iteration, p.ValidationError
			if p.ValidationError < least {
				least, r.best = p.ValidationError, p.Iteration
			}
			return nil
		},
	}
	if t.stepsRegularise() {
		o.Patience = t.patience()
	}
	_, err := e.Fit(ctx, part.train, o)
	if t.stepsRegularise() {
		r.err = least
	}
	return r, err
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
			done[int(r.Step)-1] = folded{err: x, best: int(found[foldBest]), last: int(found[foldSteps]), current: r.Epoch == trial.Epoch}
		}
	}
	return done, nil
}
