package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Study returns the study as it stands.
func (a *Actor) Study(ctx context.Context) (v tuner.Study, err error) {
	err = a.log.read(ctx, func(l *state) { v = l.view(a.name, a.id, a.env.Now()) })
	return v, err
}

// view returns the study as it stands. The log's lock is held.
func (v *state) view(name string, id store.StudyID, now time.Time) tuner.Study {
	return view.List(name, id, v.study, v.digest).Show(name, now)
}

// Do decides a command and waits until it is stored.
func (a *Actor) Do(ctx context.Context, c study.Command) error { return a.log.do(ctx, c) }

// Change decides a command and returns the study as the command left it.
func (a *Actor) Change(ctx context.Context, c study.Command) (v tuner.Study, err error) {
	err = a.log.update(ctx, func(l *state) error {
		_, err := a.log.decide(ctx, c)
		if err == nil {
			v = l.view(a.name, a.id, a.env.Now())
		}
		return err
	})
	return v, err
}

// Ask hands out trials.
func (a *Actor) Ask(ctx context.Context, c study.Ask) (tuner.Asked, error) {
	if c.Count == 0 {
		c.Count = 1
	}
	return a.queue.ask(ctx, c)
}

// Tell gives a trial its outcome.
func (a *Actor) Tell(ctx context.Context, c study.Tell) (told tuner.Told, err error) {
	err = a.log.update(ctx, func(v *state) error {
		reply, err := a.queue.decideForWorker(ctx, c)
		if err != nil {
			return err
		}
		told.Late = reply.Late
		told.Trial, _ = v.study.Trial(c.Trial)
		told.Trial = told.Trial.WithoutReports()
		a.clock.stop(context.Background(), a.log, v)
		a.queue.prepare() // while the store writes
		return nil
	})
	return told, err
}

// Report adds intermediate values and says whether to stop the trial.
func (a *Actor) Report(ctx context.Context, c study.ReportValues) (tuner.Verdict, error) {
	return a.judged(ctx, c, c.Trial, a.log.update)
}

// Heartbeat renews a lease and says whether to stop the trial. A long-lived service renews
// the lease in memory at once and in the store with the next commit, because leases begin
// anew after a restart.
func (a *Actor) Heartbeat(ctx context.Context, c study.Heartbeat) (tuner.Verdict, error) {
	if a.env.LongLived {
		return a.judged(ctx, c, c.Trial, a.log.updateLater)
	}
	return a.judged(ctx, c, c.Trial, a.log.update)
}

// judged decides a command on a running trial and says whether to stop the trial.
func (a *Actor) judged(ctx context.Context, c study.Command, trial int, update func(context.Context, func(*state) error) error) (verdict tuner.Verdict, err error) {
	err = update(ctx, func(v *state) error {
		_, err := a.queue.decideForWorker(ctx, c)
		if err == nil {
			verdict = v.verdict(trial)
		}
		return err
	})
	if err == nil {
		a.queue.foretell(ctx, trial, &verdict)
	}
	return verdict, err
}

// Make makes a trial by a study.Enqueue or study.Add.
func (a *Actor) Make(ctx context.Context, c study.Command) (study.Trial, error) {
	return a.queue.make(ctx, c)
}

// MakeAll makes trials up to the first refusal. part reports that some were stored before
// the store refused the rest.
func (a *Actor) MakeAll(ctx context.Context, commands []study.Command) (numbers []int, part bool, err error) {
	return a.queue.makeAll(ctx, commands)
}

// Trial returns a trial including its reports.
func (a *Actor) Trial(ctx context.Context, number int) (trial study.Trial, err error) {
	var missing error
	err = a.log.read(ctx, func(v *state) {
		var ok bool
		if trial, ok = v.study.Trial(number); !ok {
			missing = &study.TrialNotFoundError{Trial: number, Trials: v.study.Trials()}
		}
	})
	return trial, errors.Join(err, missing)
}

// Snapshot returns the stored study.
func (a *Actor) Snapshot(ctx context.Context) (*study.View, error) { return a.log.snapshot(ctx) }

// Since returns the stored study if it is ahead of a position. Otherwise it returns nil and
// a channel that is closed when that may have changed. end is the position of the study.
func (a *Actor) Since(ctx context.Context, after study.Position) (v *study.View, advanced <-chan struct{}, end study.Position, err error) {
	return a.log.since(ctx, after)
}

// Columns returns numbers of trials.
func (a *Actor) Columns(ctx context.Context, q tuner.ColumnQuery) (out tuner.Columns, err error) {
	v, err := a.log.snapshot(ctx)
	if err != nil {
		return out, err
	}
	chosen, err := view.Choose(a.columns.Readers(v.Spec()), q.Names)
	if err != nil {
		return out, err
	}
	size := int64(0)
	for _, r := range chosen {
		size += int64(2 * r.Type.Size() * v.Trials())
	}
	leave, ok := a.env.Memory.Enter(size, memlimit.ShareWorker)
	if !ok {
		return out, &tuner.MemoryError{Limit: a.env.Memory.Bytes()}
	}
	defer leave()
	out, err = a.columns.At(v, chosen, func(v *study.View) ([]int, bool) { return a.changedAfter(q.After, v) })
	out.ID, out.Time = a.id, a.env.Now()
	return out, err
}

// changedAfter returns the trials that have an event after a position, ascending. If some is
// false, they are all of them.
func (a *Actor) changedAfter(after study.Position, v *study.View) (rows []int, some bool) {
	if after == 0 {
		return nil, false
	}
	a.log.mu.Lock()
	touched, some := a.log.state.touched.Between(after, v.Position())
	a.log.mu.Unlock()
	if !some {
		return nil, false
	}
	slices.Sort(touched)
	for _, n := range slices.Compact(touched) {
		rows = append(rows, int(n))
	}
	return rows, true
}

// Best recommends trials.
func (a *Actor) Best(ctx context.Context) (trials []study.Trial, err error) {
	v, recommended, err := a.queue.recommend(ctx)
	if err != nil {
		return nil, err
	}
	if len(recommended) == 0 {
		recommended = propose.Best(v)
	}
	for _, n := range recommended {
		trial, _ := v.Trial(n)
		trials = append(trials, trial)
	}
	for i := range trials {
		trials[i] = trials[i].WithoutReports()
	}
	return trials, nil
}

// Diagnose describes the model of the study's proposer.
func (a *Actor) Diagnose(ctx context.Context) (d surrogate.Diagnosis, err error) {
	err = a.queue.consult(ctx, func(p propose.Proposer, v *study.View) (err error) {
		m, can := p.(propose.Diagnoser)
		if !can {
			return noModel(v)
		}
		d, err = m.Diagnose(ctx, v)
		return err
	})
	return d, err
}

func noModel(v *study.View) error {
	return fmt.Errorf("a model of the proposer %s: %w", v.Spec().Proposer.Name, tuner.ErrUnsupported)
}

// Predict returns what the model of the study's proposer predicts.
func (a *Actor) Predict(ctx context.Context, q tuner.PredictQuery) (tuner.Predictions, error) {
	m, v, out, err := a.freeze(ctx)
	if err != nil {
		return out, err
	}
	return view.Predict(ctx, m, v, q, out, a.Best)
}

// freeze returns the model of the study, which is nil if there is none, the study as it
// stands, and the state of the model. Predictions need no turn of the proposer then.
func (a *Actor) freeze(ctx context.Context) (m *propose.Frozen, v *study.View, out tuner.Predictions, err error) {
	out.Trial = tuner.NoTrial
	err = a.queue.consult(ctx, func(p propose.Proposer, view *study.View) (err error) {
		v = view
		predictor, can := p.(propose.Predictor)
		if !can {
			return noModel(v)
		}
		m, out.State, out.Missing, err = predictor.Freeze(ctx, v)
		out.Position = v.Position()
		if m != nil {
			out.Results = m.Results
		}
		return err
	})
	return m, v, out, err
}

// Importance says how much each parameter matters, by the model and by the data.
func (a *Actor) Importance(ctx context.Context, q tuner.ImportanceQuery) (tuner.Importance, error) {
	v, err := a.log.snapshot(ctx)
	if err != nil {
		return tuner.Importance{}, err
	}
	return view.Importance(ctx, v, q, &a.columns, &a.importances, func() (*propose.Frozen, surrogate.State, int, error) {
		m, _, p, err := a.freeze(ctx)
		return m, p.State, p.Missing, err
	})
}
