package tuner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// with calls f with the named study's desk: again with a new desk if it was
// dropped from memory before f could do anything, and again with a fresh state if
// another writer of the store was faster.
func (t *Tuner) with(ctx context.Context, name string, f func(d *desk) error) error {
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
		case errors.As(err, &conflict) && try < maxConflicts:
			time.Sleep(rand.N(time.Duration(try) * time.Millisecond))
		default:
			return err
		}
	}
}

// maxConflicts is how often in a row a call may lose to another writer.
const maxConflicts = 20

// Study implements [Service].
func (t *Tuner) Study(ctx context.Context, name string) (Study, error) {
	var v Study
	err := t.with(ctx, name, func(d *desk) error {
		return d.read(ctx, func(s *study.Study) { v = view(name, d.id, s) })
	})
	return v, err
}

func view(name string, id store.StudyID, s *study.Study) Study {
	status, how := s.Status()
	v := Study{
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

// Pause implements [Service].
func (t *Tuner) Pause(ctx context.Context, name string, c study.Pause) (Study, error) {
	return t.change(ctx, name, c)
}

// Resume implements [Service].
func (t *Tuner) Resume(ctx context.Context, name string, c study.Resume) (Study, error) {
	return t.change(ctx, name, c)
}

// Finish implements [Service].
func (t *Tuner) Finish(ctx context.Context, name string, c study.Finish) (Study, error) {
	c.Reason = study.FinishedUser
	return t.change(ctx, name, c)
}

// change does a command and returns the study as it left it.
func (t *Tuner) change(ctx context.Context, name string, c study.Command) (Study, error) {
	var v Study
	err := t.with(ctx, name, func(d *desk) error {
		d.mu.Lock()
		_, err := d.decide(c)
		if err == nil {
			v = view(name, d.id, d.s)
		}
		return d.release(ctx, err)
	})
	return v, err
}

// release unlocks the desk and waits until all that was decided or seen is
// stored. It returns the error of storing it, else err.
func (d *desk) release(ctx context.Context, err error) error {
	b := d.barrier()
	d.mu.Unlock()
	if stored := d.wait(ctx, b); stored != nil {
		return stored
	}
	return err
}

// SetAttributes implements [Service].
func (t *Tuner) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	return t.with(ctx, name, func(d *desk) error {
		_, err := d.do(ctx, c)
		return err
	})
}

// Ask implements [Service].
func (t *Tuner) Ask(ctx context.Context, name string, c study.Ask) (Asked, error) {
	if c.Count == 0 {
		c.Count = 1
	}
	auto := c.Count == AutoCount
	var asked Asked
	err := t.with(ctx, name, func(d *desk) error {
		var a answer
		var b *batch
		var askErr error
		if err := d.inTurn(ctx, func() {
			c := c
			if auto {
				if c.Count, askErr = d.autoCount(ctx, c); askErr != nil {
					return
				}
			}
			a, b, askErr = d.ask(ctx, c)
		}); err != nil {
			return err
		}
		if err := d.wait(ctx, b); err != nil && a.first.stored() {
			return fmt.Errorf("%w: %w: %v", store.ErrUnknownOutcome, errPart, err)
		} else if err != nil {
			return err
		}
		if askErr != nil && len(a.reply.Trials) > 0 { // some were handed out: the caller may ask for them again
			return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, askErr)
		} else if askErr != nil {
			return askErr
		}
		asked = Asked{a.trials, a.usefulWorkers, a.warnings}
		return nil
	})
	return asked, err
}

// Tell implements [Service].
func (t *Tuner) Tell(ctx context.Context, name string, c study.Tell) (Told, error) {
	var told Told
	err := t.with(ctx, name, func(d *desk) error {
		d.mu.Lock()
		reply, err := d.decide(c)
		if err == nil {
			told.Late = reply.Late
			told.Trial, _ = d.s.Trial(c.Trial)
		}
		if err := d.release(ctx, err); err != nil {
			return err
		}
		d.prepare()
		return nil
	})
	return told, err
}

// Report implements [Service].
func (t *Tuner) Report(ctx context.Context, name string, c study.ReportValues) (Verdict, error) {
	var v Verdict
	err := t.with(ctx, name, func(d *desk) error {
		d.mu.Lock()
		_, err := d.decide(c)
		if err == nil {
			v = d.verdict(c.Trial)
		}
		if err := d.release(ctx, err); err != nil {
			return err
		}
		d.foretell(ctx, c.Trial, &v)
		return nil
	})
	return v, err
}

// Heartbeat implements [Service]. On a long-lived service the lease is renewed
// in memory at once and in the store with the next commit, since after a restart
// leases begin anew anyway.
func (t *Tuner) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (Verdict, error) {
	var v Verdict
	err := t.with(ctx, name, func(d *desk) error {
		d.mu.Lock()
		_, err := d.decide(c)
		if err == nil {
			v = d.verdict(c.Trial)
		}
		if err == nil && t.options.LongLived {
			d.mu.Unlock()
		} else if err := d.release(ctx, err); err != nil {
			return err
		}
		d.foretell(ctx, c.Trial, &v)
		return nil
	})
	return v, err
}

// verdict says whether a trial should stop; d.mu is held.
func (d *desk) verdict(n int) Verdict {
	t, _ := d.s.Trial(n)
	v := Verdict{Deadline: t.Deadline}
	if d.pruner != nil {
		p := d.pruner.Decide(n)
		v.Stop, v.Reason = p.Stop, p.Reason
	}
	if status, how := d.s.Status(); status == study.StatusFinished && how.Reason == study.FinishedUser && !v.Stop {
		v.Stop, v.Reason = true, "the study was finished by hand"
	}
	return v
}

// Enqueue implements [Service].
func (t *Tuner) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	return t.make(ctx, name, c)
}

// Add implements [Service].
func (t *Tuner) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	return t.make(ctx, name, c)
}

// make does a command that makes a trial, in turn with those that ask.
func (t *Tuner) make(ctx context.Context, name string, c study.Command) (study.Trial, error) {
	var made study.Trial
	err := t.with(ctx, name, func(d *desk) error {
		var trial study.Trial // the caller's only once inTurn says so
		var b *batch
		var refused error
		err := d.inTurn(ctx, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			var reply study.Reply
			if reply, refused = d.decide(c); refused == nil {
				trial, _ = d.s.Trial(reply.Trials[0])
			}
			b = d.barrier()
		})
		if err != nil {
			return err
		}
		if err := d.wait(ctx, b); err != nil {
			return err
		}
		made = trial
		return refused
	})
	return made, err
}

// Trial implements [Service].
func (t *Tuner) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	var trial study.Trial
	err := t.with(ctx, name, func(d *desk) error {
		var missing error
		err := d.read(ctx, func(s *study.Study) {
			var ok bool
			if trial, ok = s.Trial(number); !ok {
				missing = &study.TrialNotFoundError{Trial: number, Trials: s.Trials()}
			}
		})
		return errors.Join(err, missing)
	})
	return trial, err
}

// snapshot returns the study as it stands, stored.
func (t *Tuner) snapshot(ctx context.Context, name string) (*study.View, error) {
	var view *study.View
	err := t.with(ctx, name, func(d *desk) error {
		return d.read(ctx, func(s *study.Study) { view = s.Snapshot() })
	})
	return view, err
}

// Trials implements [Service].
func (t *Tuner) Trials(ctx context.Context, name string, f Filter) (trials []study.Trial, more bool, err error) {
	view, err := t.snapshot(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if f.Limit <= 0 || f.Limit > MaxPage {
		f.Limit = MaxPage
	}
	for trial := range view.All(f.First) {
		if !f.matches(trial) {
			continue
		}
		if len(trials) == f.Limit {
			return trials, true, nil
		}
		trials = append(trials, trial)
	}
	return trials, false, nil
}

func (f Filter) matches(t study.Trial) bool {
	if f.Worker != "" && t.Worker != f.Worker {
		return false
	}
	if len(f.States) == 0 {
		return true
	}
	for _, s := range f.States {
		if t.State == s {
			return true
		}
	}
	return false
}
