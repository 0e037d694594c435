package autotune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// bestStep is the metric with the step of a fit at which the validation error was least.
// lastStep is the metric with the number of steps. classError is that of the fit with the
// objective, where that is another one.
const (
	bestStep   = "best-step"
	lastStep   = "steps"
	classError = "class-error"
)

// StoppedError ends a trial that the service told to stop.
type StoppedError struct{ Reason string }

func (e *StoppedError) Error() string { return e.Reason }

// Trial runs one trial of a study. It fits, reports each step to svc, and writes the
// outcome to out as a line that package tuner/runner reads. If the service says that the
// trial should stop, the error is a *StoppedError. Any other error fails the trial. A panic
// of the learner is returned as an error.
func (t *Tuning) Trial(ctx context.Context, svc tuner.Service, name string, trial study.Trial, out io.Writer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the fit panicked: %v", r)
		}
	}()
	v := Values(trial.Config)
	e, err := t.algorithm.Estimator(v, t.problem)
	if err != nil {
		return infeasible(out, err)
	}
	if t.alone {
		return t.leaveOneOut(ctx, trial.Config, e, out)
	}
	if len(t.folds) > 0 {
		return t.crossValidate(ctx, svc, name, trial, e, out)
	}
	f, last := following{ctx: ctx, svc: svc, study: name, trial: trial, objective: t.Objective()}, 1
	if few := t.few(v); few > 0 {
		v["centers"], last = strconv.Itoa(few), 2
		first, err := t.algorithm.Estimator(v, t.problem)
		if err != nil {
			return infeasible(out, err)
		}
		r, err := t.fitPart(ctx, first, t.single, nil)
		if err == nil {
			err = f.step(1, r.err)
		}
		if err != nil || ctx.Err() != nil {
			return failed(ctx, out, err)
		}
	}
	r, err := t.fitPart(ctx, e, t.single, f.step)
	if err == nil && !t.stepsRegularise() {
		err = f.step(last, r.err)
		if stopped := (*StoppedError)(nil); errors.As(err, &stopped) {
			err = nil // It is over anyway, and the result counts.
		}
	}
	if err != nil || ctx.Err() != nil {
		return failed(ctx, out, err)
	}
	return t.write(out, trial.Config, r)
}

// few returns the number of centres of the first of two fits of a trial, which says at a small
// part of the cost whether the configuration is any good. The second one has the centres of the
// configuration. There is only that if few is 0.
func (t *Tuning) few(v training.Values) int {
	m, err := strconv.Atoi(v["centers"])
	if few := int(10 * math.Sqrt(float64(t.problem.Rows))); err == nil && !t.stepsRegularise() && t.whole && 2*few <= m {
		return few
	}
	return 0
}

// write writes the outcome of a trial, and keeps its outputs.
func (t *Tuning) write(out io.Writer, c space.Config, r folded) error {
	if r.err-r.err != 0 {
		return infeasible(out, errors.New("the validation error is not finite"))
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }
	text := number(r.err)
	if told, err := strconv.ParseFloat(text, 64); err == nil && r.outputs != nil {
		t.keep(c, told, r.outputs)
	}
	text = t.Objective() + "=" + text
	if t.classified() {
		text += fmt.Sprintf(" %s=%s", classError, number(r.classError))
	}
	if t.stepsRegularise() {
		text += fmt.Sprintf(" %s=%d", bestStep, r.best)
	}
	if !t.alone {
		text += fmt.Sprintf(" %s=%d", lastStep, r.last)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// classified reports whether trials have a class error beside the objective.
func (t *Tuning) classified() bool {
	return t.data.Encoding.Task == data.Classification && t.name != classError
}

// patience is the number of steps without improvement that ends a fit.
func (t *Tuning) patience() int { return max(5, t.steps/5) }

// stepsRegularise is that of the algorithm with the fixed hyper-parameters.
func (t *Tuning) stepsRegularise() bool { return t.algorithm.StepsRegularise(t.options.Fixed) }

// failed ends a trial whose fit has an error. It is infeasible if the hyper-parameters caused it.
func failed(ctx context.Context, out io.Writer, err error) error {
	var diverged *learners.DivergenceError
	var parameter *learners.ParameterError
	var number *kernel.NonFiniteError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &diverged), errors.As(err, &parameter), errors.As(err, &number):
		return infeasible(out, err)
	}
	return err
}

func infeasible(out io.Writer, reason error) error {
	_, err := fmt.Fprintf(out, "infeasible=%v\n", reason)
	return err
}

// following reports the progress of the fit of a trial.
type following struct {
	ctx       context.Context
	svc       tuner.Service
	study     string
	trial     study.Trial
	objective string
}

// step reports the error of a step, and ends the fit if the trial is over.
func (f *following) step(step int, e float64) error {
	if e-e != 0 {
		return nil // not finite, and the end of the trial reports it
	}
	return f.send(study.Report{Step: int64(step), Values: []study.NamedValue{{Name: f.objective, Value: e}}})
}

// send reports, a second time if the outcome of the first is unknown. It returns an error if
// the trial is over.
func (f *following) send(r study.Report) error {
	c := study.ReportValues{RequestID: tuner.NewRequestID(), Trial: f.trial.Number, Epoch: f.trial.Epoch, Reports: []study.Report{r}}
	v, err := f.svc.Report(f.ctx, f.study, c)
	if code := tuner.CodeOf(err); code == tuner.Unknown || code == tuner.Unavailable {
		v, err = f.svc.Report(f.ctx, f.study, c)
	}
	switch tuner.CodeOf(err) {
	case tuner.OK:
	case tuner.LeaseLost, tuner.TrialState, tuner.NotFound, tuner.AlreadyTold:
		return err
	default:
		return nil // The report failed. The fit continues, because its result counts.
	}
	if v.Stop {
		return &StoppedError{v.Reason}
	}
	return nil
}
