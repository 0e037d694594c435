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
	"github.com/bkbtuner/bkb/learners/nystrom"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// bestStep is the metric with the step of a fit at which the validation error was least.
// lastStep is the metric with the number of steps.
const (
	bestStep = "best-step"
	lastStep = "steps"
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
	e, err := t.algorithm.Estimator(Values(trial.Config), t.problem)
	if err != nil {
		return infeasible(out, err)
	}
	if t.alone {
		return t.leaveOneOut(ctx, e, out)
	}
	if len(t.folds) > 0 {
		return t.crossValidate(ctx, svc, name, trial, e, out)
	}
	f := following{ctx: ctx, svc: svc, study: name, trial: trial, objective: t.Objective(), best: math.Inf(1)}
	s := t.single
	o := learners.Options{
		Seed: t.options.Seed, Workers: t.options.Workers, Weights: s.weights,
		Validation: s.validation, Measure: t.measure(s.judged), Progress: f.step,
	}
	if t.stepsRegularise() {
		o.Patience = t.patience()
	}
	_, err = e.Fit(ctx, s.train, o)
	if err != nil || ctx.Err() != nil {
		return failed(ctx, out, err)
	}
	text, result := "", f.final
	if t.stepsRegularise() {
		text, result = fmt.Sprintf(" %s=%d", bestStep, f.bestAt), f.best
	}
	if result-result != 0 {
		return infeasible(out, errors.New("the validation error is not finite"))
	}
	_, err = fmt.Fprintf(out, "%s=%s%s %s=%d\n", f.objective, strconv.FormatFloat(result, 'g', 8, 64), text, lastStep, f.last)
	return err
}

// patience is the number of steps without improvement that ends a fit.
func (t *Tuning) patience() int { return max(5, t.steps/5) }

// stepsRegularise reports whether the steps of the learner are models of growing
// complexity, of which the best is chosen. Otherwise they approximate one model that λ
// regularises.
func (t *Tuning) stepsRegularise() bool {
	switch t.algorithm.Name {
	case "krr", "falkon", "log-falkon":
		return false
	case "nystrom":
		solver := t.algorithm.Resolve(t.options.Fixed)["solver"]
		return solver == string(nystrom.Gradient) || solver == string(nystrom.SGD)
	}
	return true
}

// impossible reports whether the hyper-parameters caused an error.
func impossible(err error) bool {
	var diverged *learners.DivergenceError
	var parameter *learners.ParameterError
	var number *kernel.NonFiniteError
	return errors.As(err, &diverged) || errors.As(err, &parameter) || errors.As(err, &number)
}

// failed ends a trial whose fit has an error.
func failed(ctx context.Context, out io.Writer, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case impossible(err):
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

	last, bestAt int
	best, final  float64 // validation errors
}

// step reports a step, and ends the fit if the trial is over.
func (f *following) step(p learners.Progress) error {
	f.last, f.final = p.Iteration, p.ValidationError
	if p.ValidationError < f.best {
		f.best, f.bestAt = p.ValidationError, p.Iteration
	}
	if p.ValidationError-p.ValidationError != 0 {
		return nil // not finite, and the end of the fit reports it
	}
	return f.send(study.Report{Step: int64(p.Iteration), Values: []study.NamedValue{{Name: f.objective, Value: p.ValidationError}}})
}

// send reports, and returns an error if the trial is over.
func (f *following) send(r study.Report) error {
	v, err := f.report(r)
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

// report sends a report. It sends it a second time if the outcome of the first is unknown.
func (f *following) report(r study.Report) (v tuner.Verdict, err error) {
	c := study.ReportValues{RequestID: tuner.NewRequestID(), Trial: f.trial.Number, Epoch: f.trial.Epoch, Reports: []study.Report{r}}
	for range 2 {
		v, err = f.svc.Report(f.ctx, f.study, c)
		if code := tuner.CodeOf(err); code != tuner.Unknown && code != tuner.Unavailable {
			break
		}
	}
	return v, err
}
