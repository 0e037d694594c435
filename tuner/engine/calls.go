package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// with calls f with the desk of a study. It calls f again if the study was dropped from
// memory before f had an effect, if another writer of the store committed first, or if
// another server claimed the study. In that case the next desk learns who has it.
func (t *Engine) with(ctx context.Context, name string, f func(d *desk) error) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, release, err := t.desk(ctx, name)
		if err != nil {
			return err
		}
		err = f(d)
		release()
		switch conflict := (*store.ConflictError)(nil); {
		case errors.Is(err, errRetired):
			t.forget(d)
		case errors.Is(err, errDiscarded):
		case errors.As(err, new(*store.FencedError)) && try < maxConflicts:
			t.forget(d)
		case errors.As(err, &conflict) && try < maxConflicts:
			time.Sleep(rand.N(time.Duration(try) * time.Millisecond))
		default:
			return err
		}
	}
}

// maxConflicts is the number of times in a row that a call may lose to another writer.
const maxConflicts = 20

// Study implements [tuner.Service].
func (t *Engine) Study(ctx context.Context, name string) (tuner.Study, error) {
	var v tuner.Study
	err := t.with(ctx, name, func(d *desk) error {
		return d.log.read(ctx, func(l *live) { v = l.view(name, d.id, t.options.Now()) })
	})
	return v, err
}

// view returns the study as it stands. The log's lock is held.
func (v *live) view(name string, id store.StudyID, now time.Time) tuner.Study {
	out := view(name, id, v.study)
	v.digest.show(&out, now)
	return out
}

// view returns a study without its digest.
func view(name string, id store.StudyID, s *study.Study) tuner.Study {
	status, how := s.Status()
	v := tuner.Study{
		Name: name, ID: id, Spec: s.Spec(), Status: status, Finished: how, Created: s.Created(),
		Position: s.Position(), Counts: make(map[study.TrialState]int), Trials: s.Trials(), Added: s.Added(), Cost: s.Cost(), Attributes: s.Attributes(),
	}
	for state := study.Queued; state <= study.Pruned; state++ {
		if n := s.Count(state); n > 0 {
			v.Counts[state] = n
		}
	}
	return v
}

// Pause implements [tuner.Service].
func (t *Engine) Pause(ctx context.Context, name string, c study.Pause) (tuner.Study, error) {
	return t.change(ctx, name, c)
}

// Resume implements [tuner.Service].
func (t *Engine) Resume(ctx context.Context, name string, c study.Resume) (tuner.Study, error) {
	return t.change(ctx, name, c)
}

// Finish implements [tuner.Service].
func (t *Engine) Finish(ctx context.Context, name string, c study.Finish) (tuner.Study, error) {
	c.Reason = study.FinishedUser
	return t.change(ctx, name, c)
}

// change decides a command and returns the study as the command left it.
func (t *Engine) change(ctx context.Context, name string, c study.Command) (tuner.Study, error) {
	var v tuner.Study
	err := t.with(ctx, name, func(d *desk) error {
		return d.log.update(ctx, func(l *live) error {
			_, err := d.log.decide(ctx, c)
			if err == nil {
				v = l.view(name, d.id, t.options.Now())
			}
			return err
		})
	})
	return v, err
}

// SetAttributes implements [tuner.Service].
func (t *Engine) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	return t.with(ctx, name, func(d *desk) error { return d.log.do(ctx, c) })
}

// Ask implements [tuner.Service].
func (t *Engine) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	if c.Count == 0 {
		c.Count = 1
	}
	var asked tuner.Asked
	err := t.with(ctx, name, func(d *desk) (err error) {
		asked, err = d.proposer.ask(ctx, c)
		return err
	})
	return asked, err
}

// Tell implements [tuner.Service].
func (t *Engine) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	var told tuner.Told
	err := t.with(ctx, name, func(d *desk) error {
		return d.log.update(ctx, func(v *live) error {
			reply, err := d.proposer.decideForWorker(ctx, c)
			if err != nil {
				return err
			}
			told.Late = reply.Late
			told.Trial, _ = v.study.Trial(c.Trial)
			told.Trial = told.Trial.WithoutReports()
			d.proposer.prepare() // while the store writes
			return nil
		})
	})
	return told, err
}

// Report implements [tuner.Service].
func (t *Engine) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	var verdict tuner.Verdict
	err := t.with(ctx, name, func(d *desk) error {
		err := d.log.update(ctx, func(v *live) error {
			_, err := d.proposer.decideForWorker(ctx, c)
			if err == nil {
				verdict = v.verdict(c.Trial)
			}
			return err
		})
		if err == nil {
			d.proposer.foretell(ctx, c.Trial, &verdict)
		}
		return err
	})
	return verdict, err
}

// Heartbeat implements [tuner.Service]. A long-lived service renews the lease in memory at
// once and in the store with the next commit, because leases begin anew after a
// restart.
func (t *Engine) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error) {
	var verdict tuner.Verdict
	err := t.with(ctx, name, func(d *desk) error {
		beat := func(v *live) error {
			_, err := d.proposer.decideForWorker(ctx, c)
			if err == nil {
				verdict = v.verdict(c.Trial)
			}
			return err
		}
		update := d.log.update
		if t.options.LongLived {
			update = d.log.updateLater
		}
		err := update(ctx, beat)
		if err == nil {
			d.proposer.foretell(ctx, c.Trial, &verdict)
		}
		return err
	})
	return verdict, err
}

// Enqueue implements [tuner.Service].
func (t *Engine) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	return t.make(ctx, name, c)
}

// Add implements [tuner.Service].
func (t *Engine) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	return t.make(ctx, name, c)
}

func (t *Engine) make(ctx context.Context, name string, c study.Command) (study.Trial, error) {
	var made study.Trial
	err := t.with(ctx, name, func(d *desk) (err error) {
		made, err = d.proposer.make(ctx, c)
		return err
	})
	return made, err
}

// trial returns a trial including its reports.
func (t *Engine) trial(ctx context.Context, name string, number int) (study.Trial, error) {
	var trial study.Trial
	err := t.with(ctx, name, func(d *desk) error {
		var missing error
		err := d.log.read(ctx, func(v *live) {
			var ok bool
			if trial, ok = v.study.Trial(number); !ok {
				missing = &study.TrialNotFoundError{Trial: number, Trials: v.study.Trials()}
			}
		})
		return errors.Join(err, missing)
	})
	return trial, err
}

// Trial implements [tuner.Service].
func (t *Engine) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	trial, err := t.trial(ctx, name, number)
	return trial.WithoutReports(), err
}

// Reports implements [tuner.Service].
func (t *Engine) Reports(ctx context.Context, name string, number, first, limit int) (reports []study.Report, more bool, err error) {
	trial, err := t.trial(ctx, name, number)
	if err != nil {
		return nil, false, err
	}
	if limit <= 0 || limit > tuner.MaxReportPage {
		limit = tuner.MaxReportPage
	}
	n := len(trial.Reports)
	first = min(max(first, 0), n)
	end := min(first+limit, n)
	return trial.Reports[first:end:end], end < n, nil
}

// snapshot returns the stored study.
func (t *Engine) snapshot(ctx context.Context, name string) (*study.View, error) {
	var view *study.View
	err := t.with(ctx, name, func(d *desk) (err error) {
		view, err = d.log.snapshot(ctx)
		return err
	})
	return view, err
}

// Trials implements [tuner.Service].
func (t *Engine) Trials(ctx context.Context, name string, f tuner.Filter) (trials []study.Trial, more bool, err error) {
	view, err := t.snapshot(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if f.Limit <= 0 || f.Limit > tuner.MaxPage {
		f.Limit = tuner.MaxPage
	}
	for trial := range view.All(f.First) {
		if !matches(f, trial) {
			continue
		}
		if len(trials) == f.Limit {
			return trials, true, nil
		}
		if !f.Reports {
			trial = trial.WithoutReports()
		}
		trials = append(trials, trial)
	}
	return trials, false, nil
}

func matches(f tuner.Filter, t study.Trial) bool {
	if f.Worker != "" && t.Worker != f.Worker {
		return false
	}
	return len(f.States) == 0 || slices.Contains(f.States, t.State)
}
