package runner

import (
	"context"
	"errors"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

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

// report sends the new reports. Values that the study refuses are dropped with a remark,
// so that a command that runs again after an interruption may report other values for the
// same steps.
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
