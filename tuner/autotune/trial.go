package autotune

import (
	"context"
	"crypto/rand"
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

// bestStep is the metric that says at which step of a fit the validation error was
// least, lastStep the one that says how many there were.
const (
	bestStep = "best-step"
	lastStep = "steps"
)

// StoppedError is the end of a trial that was told to stop.
type StoppedError struct{ Reason string }

func (e *StoppedError) Error() string { return e.Reason }

// Trial runs one trial of a study: it fits, reports each step to svc, and writes to
// out what came of it, a line as package tuner/runner reads it. If the service says
// that the trial should stop, the error is a *StoppedError; any other error is a
// failure of the trial. A panic of the learner is an error too.
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
	f := following{ctx: ctx, svc: svc, study: name, trial: trial, objective: t.Objective(), best: math.Inf(1)}
	o := learners.Options{Seed: t.options.Seed, Workers: t.options.Workers, Validation: t.data.Validation, Measure: t.measure, Progress: f.step}
	if t.stepsRegularise() {
		o.Patience = max(5, t.steps/5)
	}
	_, err = e.Fit(ctx, t.data.Train, o)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case impossible(err):
		return infeasible(out, err)
	case err != nil:
		return err
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

// stepsRegularise tells whether the steps of the learner are models of growing
// complexity, of which the best is chosen, and not approximations of one model that
// λ regularises.
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

// impossible tells the errors that the hyper-parameters are to blame for.
func impossible(err error) bool {
	var diverged *learners.DivergenceError
	var parameter *learners.ParameterError
	var number *kernel.NonFiniteError
	return errors.As(err, &diverged) || errors.As(err, &parameter) || errors.As(err, &number)
}

func infeasible(out io.Writer, reason error) error {
	_, err := fmt.Fprintf(out, "infeasible=%v\n", reason)
	return err
}

// following follows the fit of a trial and reports it.
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
		return nil // not finite: the end will show
	}
	v, err := f.report(study.Report{Step: int64(p.Iteration), Values: []study.NamedValue{{Name: f.objective, Value: p.ValidationError}}})
	switch tuner.CodeOf(err) {
	case tuner.OK:
	case tuner.LeaseLost, tuner.TrialState, tuner.NotFound, tuner.AlreadyTold:
		return err
	default:
		return nil // it could not be said; the fit goes on, and its result counts
	}
	if v.Stop {
		return &StoppedError{v.Reason}
	}
	return nil
}

// report sends a report, a second time if nobody knows what became of the first.
func (f *following) report(r study.Report) (v tuner.Verdict, err error) {
	c := study.ReportValues{RequestID: rand.Text(), Trial: f.trial.Number, Epoch: f.trial.Epoch, Reports: []study.Report{r}}
	for range 2 {
		v, err = f.svc.Report(f.ctx, f.study, c)
		if code := tuner.CodeOf(err); code != tuner.Unknown && code != tuner.Unavailable {
			break
		}
	}
	return v, err
}
