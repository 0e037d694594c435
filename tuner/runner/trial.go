package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// verdict is why a running command is ended.
type verdict struct {
	lost   bool   // another worker has the trial or it has ended, so its result is not told
	pruned bool   // else it is cancelled
	reason string // for people
}

// outcome is that of a command ended for a verdict.
func (v verdict) outcome() study.Outcome {
	if v.pruned {
		return study.Outcome{State: study.Pruned, Message: message(v.reason)}
	}
	return study.Outcome{State: study.Failed, Reason: study.FailedCancelled, Message: message(v.reason)}
}

// trial runs one trial and returns it as told, or with a zero State if it was not told.
// An error ends the whole run.
func (r *run) trial(ctx context.Context, t study.Trial) (study.Trial, error) {
	began := time.Now()
	reading := newReading(r.spec.Objectives, r.options.Limited...)
	job, err := r.start(t, reading)
	if errors.Is(err, errElsewhere) {
		return study.Trial{}, err
	}
	if err != nil {
		return r.tell(ctx, t, crash(err.Error()))
	}
	attending, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	over := make(chan struct{}) // closed when the command has ended
	verdicts := make(chan verdict, 1)
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		r.attend(attending, t, reading, over, verdicts)
	}()
	var timeout <-chan time.Time
	if r.options.Timeout > 0 {
		timeout = time.After(r.options.Timeout)
	}
	var v verdict
	var o study.Outcome // of a command that was ended
	interrupted := false
	select {
	case <-job.done:
		interrupted = job.signalled() && endsWithin(ctx, settling)
	case v = <-verdicts:
		if v.lost && r.endsBy(ctx, job, settling) { // its result counts
			v = verdict{}
			break
		}
		r.stop(job)
		o = v.outcome()
	case <-timeout:
		r.stop(job)
		o = crash(fmt.Sprintf("ended because it ran longer than %s", r.options.Timeout))
	case <-ctx.Done():
		interrupted = !job.over() || job.signalled()
	}
	if interrupted {
		leave()
		if !job.over() {
			r.stop(job)
		}
		<-attended
		return study.Trial{}, nil // the trial stays with the worker of this run
	}
	close(over)
	r.await(ctx, attended, leave)
	silent := false // it ended well without a result
	if o.State == 0 {
		var unclear bool
		if o, unclear = r.outcome(t, job, reading); unclear {
			var ended bool
			if v, ended = r.verdict(ctx, t); ended {
				o = v.outcome()
			}
			silent = !ended && o.State == study.Failed
		}
	}
	if v.lost {
		return r.lost(t, errors.New(v.reason))
	}
	o.Cost = r.cost(o, time.Since(began))
	told, err := r.tell(ctx, t, o)
	if silent && told.State == study.Failed {
		err = errors.Join(err, r.stopSilent(ctx, told))
	}
	return told, err
}

// lost says that a trial is not told.
func (r *run) lost(t study.Trial, why error) (study.Trial, error) {
	r.event(Event{Kind: Lost, Trial: t, Err: why})
	return study.Trial{}, nil
}

func crash(text string) study.Outcome {
	return study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: message(text)}
}

// stopSilent ends the run after a command that ended well without a result, unless another
// trial of the study has had one. All others would likely end the same way.
func (r *run) stopSilent(ctx context.Context, told study.Trial) error {
	worked := false
	err := r.each(ctx, study.Completed, func(t study.Trial) { worked = worked || t.Origin != study.OriginAdded })
	if err != nil || worked {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = fmt.Errorf("the run stops, because no trial has completed and the command of trial %d ended without a result: %s", told.Number, told.Outcome.Message)
	}
	return nil
}

// settling is how long one of two events may take to be known after the other. A command may
// continue after another worker got its trial, because the end of a command is known only some
// moments later when a machine wakes up. And a scheduler that ends a job sends a signal to all of
// its processes, which may reach the command before the run.
const settling = time.Second

// endsWithin waits for the end of ctx, and tells whether it came within a time.
func endsWithin(ctx context.Context, limit time.Duration) bool { return !sleep(ctx, limit, nil) }

// endsBy waits for a job to end by itself, and tells whether it did.
func (r *run) endsBy(ctx context.Context, j *job, limit time.Duration) bool {
	select {
	case <-j.done:
	case <-time.After(limit):
	case <-ctx.Done():
	case <-r.options.KillNow:
	}
	return j.over()
}

// await waits until the last reports are sent, but not for long once ctx ended.
func (r *run) await(ctx context.Context, attended <-chan struct{}, leave func()) {
	select {
	case <-attended:
		return
	case <-ctx.Done():
	}
	timer := time.AfterFunc(r.options.Grace, leave)
	defer timer.Stop()
	<-attended
}

// outcome reads what came of a command that ended by itself. It is unclear if the command
// may have ended because the service told it to stop. Then it says so with its exit code,
// or it succeeded without a result.
func (r *run) outcome(t study.Trial, job *job, reading *reading) (o study.Outcome, unclear bool) {
	if r.options.Result != "" {
		if err := r.readResult(t, reading); err != nil && job.err == nil {
			return crash(err.Error()), true
		}
	}
	metrics, infeasible, missing := reading.outcome()
	failed := missing != ""
	missing = cmp.Or(missing, firstMissing(metrics, r.options.Limited))
	switch {
	case infeasible != nil:
		return study.Outcome{State: study.Infeasible, Message: message(*infeasible)}, false
	case errors.Is(job.err, ErrPruned):
		why := strings.TrimPrefix(strings.TrimPrefix(job.err.Error(), ErrPruned.Error()), ": ")
		return study.Outcome{State: study.Pruned, Message: message(why)}, false
	case job.exited(ExitInfeasible):
		return study.Outcome{State: study.Infeasible, Message: message(job.lastWords())}, false
	case job.exited(ExitStop):
		return study.Outcome{State: study.Pruned, Message: message(job.lastWords())}, true
	case job.err != nil:
		return crash(job.complaint()), false
	case missing == "":
		return study.Outcome{State: study.Completed, Metrics: metrics}, false
	}
	where := "stdout"
	if r.options.Result != "" {
		where = "the file of results"
	}
	text := fmt.Sprintf("the command did not report %s: %s needs a line %s", missing, where, assignment(missing, "NUMBER"))
	if isName(missing) {
		text += ", or JSON"
	}
	names, advice := reading.heard()
	if names != "" {
		text += "; it reported " + names
	}
	if advice != "" {
		text += "; " + advice
	}
	if !failed { // the missing metric has a limit, which the trial breaks
		return study.Outcome{State: study.Completed, Metrics: metrics, Message: message(text)}, false
	}
	return crash(text), true
}

// verdict asks the service whether a trial whose command has ended should have stopped.
// It also does so for a short time after ctx ended.
func (r *run) verdict(ctx context.Context, t study.Trial) (v verdict, ok bool) {
	asking, cancel := r.lingering(ctx)
	defer cancel()
	beaten, err := r.heartbeat(asking, t)
	return r.judge(asking, t, beaten, err)
}

// lingering is a context that ends a time of grace after ctx.
func (r *run) lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(r.options.Grace, cancel) })
	return longer, func() { stop(); cancel() }
}

// readResult reads the file of results, which has one JSON object or lines.
func (r *run) readResult(t study.Trial, reading *reading) error {
	path := r.resultFile(t)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the file of results: %w", err)
	}
	whole := strings.Join(strings.Fields(string(text)), " ")
	if strings.HasPrefix(whole, "{") && parseObject([]byte(whole)).metrics != nil {
		reading.line(whole)
		return nil
	}
	for line := range strings.Lines(string(text)) {
		reading.line(line)
	}
	return nil
}

func (r *run) resultFile(t study.Trial) string {
	path, _ := r.result.fill(r.result.args[0], t)
	return path
}

func (r *run) cost(o study.Outcome, ran time.Duration) float64 {
	switch r.options.CostMetric {
	case "":
		return 0
	case CostSeconds:
		return ran.Seconds()
	}
	m, _ := o.Metric(r.options.CostMetric)
	if c := m.Mean(); c >= 0 {
		return c
	}
	return 0
}

// tell tells an outcome. One that the study refuses is told as a failure.
func (r *run) tell(ctx context.Context, t study.Trial, o study.Outcome) (study.Trial, error) {
	told, err := r.tellOnce(ctx, t, o)
	if tuner.CodeOf(err) == tuner.Invalid && o.State != study.Failed {
		failed := crash(err.Error())
		failed.Cost = o.Cost
		told, err = r.tellOnce(ctx, t, failed)
	}
	switch code := tuner.CodeOf(err); {
	case code == tuner.LeaseLost || code == tuner.AlreadyTold || code == tuner.TrialState:
		return r.lost(t, err)
	case err != nil:
		return study.Trial{}, fmt.Errorf("trial %d ended as %s, which could not be told: %w", t.Number, o, err)
	case told.Late:
		return r.lost(t, errors.New("another worker has the trial, so the outcome is kept beside it as a late result"))
	}
	return told.Trial, nil
}

// tellOnce tells also after ctx ended, but then not for long.
func (r *run) tellOnce(ctx context.Context, t study.Trial, o study.Outcome) (told tuner.Told, err error) {
	telling, cancel := r.lingering(ctx)
	defer cancel()
	c := study.Tell{RequestID: tuner.NewRequestID(), Trial: t.Number, Epoch: t.Epoch, Outcome: o}
	err = r.retry(telling, func() (err error) {
		told, err = r.svc.Tell(telling, r.options.Study, c)
		return err
	})
	return told, err
}

// message makes text fit to be stored.
func message(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if space.Hostile(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
	if len(text) > study.MaxTextBytes {
		text = text[:study.MaxTextBytes]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	return text
}

// maxBeat is the longest time between heartbeats, because their answers may be to stop.
const maxBeat = time.Minute

// attend renews the lease of a trial and sends the reports of its command, until the
// command has ended and all reports were sent, or there is a verdict.
func (r *run) attend(ctx context.Context, t study.Trial, reading *reading, over <-chan struct{}, verdicts chan<- verdict) {
	beat := time.NewTicker(min(max(r.options.Lease/3, time.Second/3), maxBeat))
	defer beat.Stop()
	for {
		var err error
		var v tuner.Verdict
		select {
		case <-beat.C:
			v, err = r.heartbeat(ctx, t)
		case <-reading.fresh:
			v, err = r.report(ctx, t, reading)
		case <-over:
			_, _ = r.report(ctx, t, reading)
			return
		case <-ctx.Done():
			return
		}
		if v, ok := r.judge(ctx, t, v, err); ok {
			verdicts <- v
			return
		}
	}
}

func (r *run) heartbeat(ctx context.Context, t study.Trial) (v tuner.Verdict, err error) {
	c := study.Heartbeat{Trial: t.Number, Epoch: t.Epoch, Lease: r.options.Lease}
	err = r.retry(ctx, func() (err error) {
		v, err = r.svc.Heartbeat(ctx, r.options.Study, c)
		return err
	})
	return v, err
}

// report sends the new reports. Values that the study refuses are dropped with a remark, so that
// a command that runs again after an interruption may report other values for the same steps.
func (r *run) report(ctx context.Context, t study.Trial, reading *reading) (v tuner.Verdict, err error) {
	for {
		reports := reading.take(study.MaxReportBatch)
		if len(reports) == 0 {
			return v, nil
		}
		c := study.ReportValues{RequestID: tuner.NewRequestID(), Trial: t.Number, Epoch: t.Epoch, Reports: reports}
		err = r.retry(ctx, func() (err error) {
			v, err = r.svc.Report(ctx, r.options.Study, c)
			return err
		})
		if tuner.CodeOf(err) == tuner.Invalid {
			r.event(Event{Kind: Remark, Trial: t, Err: err})
			v, err = r.heartbeat(ctx, t)
		}
		if err != nil || v.Stop {
			return v, err
		}
	}
}

// judge says whether the trial must end, because the service says so or because another
// worker has it. Any other error makes a remark, and the command continues.
func (r *run) judge(ctx context.Context, t study.Trial, v tuner.Verdict, err error) (verdict, bool) {
	switch tuner.CodeOf(err) {
	case tuner.OK:
	case tuner.LeaseLost, tuner.TrialState, tuner.NotFound:
		return verdict{lost: true, reason: err.Error()}, true
	default:
		if ctx.Err() == nil {
			r.event(Event{Kind: Remark, Trial: t, Err: errors.Join(errors.New("a heartbeat failed"), err)})
		}
		return verdict{}, false
	}
	if !v.Stop {
		return verdict{}, false
	}
	view, err := r.svc.Study(ctx, r.options.Study)
	over := err == nil && view.Status == study.StatusFinished && view.Finished.Reason == study.FinishedUser
	return verdict{pruned: !over, reason: v.Reason}, true
}
