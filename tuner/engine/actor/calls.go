package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Study implements [tuner.Service].
func (a *Actor) Study(ctx context.Context, _ string) (v tuner.Study, err error) {
	err = a.log.read(ctx, func(l *state) { v = l.view(a.name, a.id, a.env.Now()) })
	return v, err
}

// view returns the study as it stands. The log's lock is held.
func (v *state) view(name string, id store.StudyID, now time.Time) tuner.Study {
	return view.List(name, id, v.study, v.digest).Show(name, now)
}

// Do decides a command and waits until it is stored.
func (a *Actor) Do(ctx context.Context, c study.Command) error { return a.log.do(ctx, c) }

// change decides a command and returns the study as the command left it.
func (a *Actor) change(ctx context.Context, c study.Command) (v tuner.Study, err error) {
	err = a.log.update(ctx, func(l *state) error {
		_, err := a.log.decide(ctx, c)
		if err == nil {
			v = l.view(a.name, a.id, a.env.Now())
		}
		return err
	})
	return v, err
}

// Pause implements [tuner.Service].
func (a *Actor) Pause(ctx context.Context, _ string, c study.Pause) (tuner.Study, error) {
	return a.change(ctx, c)
}

// Resume implements [tuner.Service].
func (a *Actor) Resume(ctx context.Context, _ string, c study.Resume) (tuner.Study, error) {
	return a.change(ctx, c)
}

// Finish implements [tuner.Service].
func (a *Actor) Finish(ctx context.Context, _ string, c study.Finish) (tuner.Study, error) {
	c.Reason = study.FinishedUser
	return a.change(ctx, c)
}

// Extend implements [tuner.Service].
func (a *Actor) Extend(ctx context.Context, _ string, c study.Extend) (tuner.Study, error) {
	return a.change(ctx, c)
}

// SetAttributes implements [tuner.Service].
func (a *Actor) SetAttributes(ctx context.Context, _ string, c study.SetAttributes) error {
	return a.Do(ctx, c)
}

// Ask implements [tuner.Service].
func (a *Actor) Ask(ctx context.Context, _ string, c study.Ask) (tuner.Asked, error) {
	if c.Count == 0 {
		c.Count = 1
	}
	return a.queue.ask(ctx, c)
}

// Tell implements [tuner.Service]. The outcome and the trials that are asked for next are
// stored together, unless a model makes the trials, which can take long.
func (a *Actor) Tell(ctx context.Context, _ string, c study.Tell) (told tuner.Told, err error) {
	var b *batch
	if err := a.log.updateLater(ctx, func(v *state) error {
		reply, err := a.queue.decideForWorker(ctx, c)
		if err != nil {
			return err
		}
		told.Late = reply.Late
		told.Trial, _ = v.study.Trial(c.Trial)
		told.Trial = told.Trial.WithoutReports()
		a.log.stop(v)
		a.queue.prepare() // while the store writes
		b = a.log.last()
		if c.Next == nil || v.suggester.models() {
			a.log.barrier()
		}
		return nil
	}); err != nil {
		return told, err
	}
	if c.Next != nil {
		told.Next, err = a.next(ctx, *c.Next)
		if !b.stored() {
			_, _ = a.log.stage(func(*state) error { return nil })
		}
	}
	return told, cmp.Or(a.log.wait(ctx, b), err)
}

// next asks for trials. It returns nil if there are none to hand out.
func (a *Actor) next(ctx context.Context, c study.Ask) (*tuner.Asked, error) {
	asked, err := a.Ask(ctx, a.name, c)
	switch tuner.CodeOf(err) {
	case tuner.OK:
		return &asked, nil
	case tuner.Finished, tuner.Paused, tuner.NoneLeft, tuner.Exhausted, tuner.Denied, tuner.Invalid:
		return nil, nil
	default: // sent again, the outcome stays told
		return nil, fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
	}
}

// Report implements [tuner.Service].
func (a *Actor) Report(ctx context.Context, _ string, c study.ReportValues) (tuner.Verdict, error) {
	return a.judged(ctx, c, c.Trial, a.log.update)
}

// Heartbeat implements [tuner.Service]. A long-lived service renews the lease in memory at once and in the store with the next commit, because leases begin
// anew after a restart.
func (a *Actor) Heartbeat(ctx context.Context, _ string, c study.Heartbeat) (tuner.Verdict, error) {
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

// Enqueue implements [tuner.Service].
func (a *Actor) Enqueue(ctx context.Context, _ string, c study.Enqueue) (study.Trial, error) {
	return a.queue.make(ctx, c)
}

// Add implements [tuner.Service].
func (a *Actor) Add(ctx context.Context, _ string, c study.Add) (study.Trial, error) {
	return a.queue.make(ctx, c)
}

// MakeAll makes trials up to the first refusal. part reports that some were stored before
// the store refused the rest.
func (a *Actor) MakeAll(ctx context.Context, commands []study.Command) (numbers []int, part bool, err error) {
	return a.queue.makeAll(ctx, commands)
}

// Trial implements [tuner.Service].
func (a *Actor) Trial(ctx context.Context, _ string, number int) (study.Trial, error) {
	trial, err := a.trial(ctx, number)
	return trial.WithoutReports(), err
}

// Reports implements [tuner.Service].
func (a *Actor) Reports(ctx context.Context, _ string, number, first, limit int) (reports []study.Report, more bool, err error) {
	trial, err := a.trial(ctx, number)
	reports, more = view.Reports(trial, first, limit)
	return reports, more, err
}

// trial returns a trial including its reports.
func (a *Actor) trial(ctx context.Context, number int) (trial study.Trial, err error) {
	var missing error
	err = a.log.read(ctx, func(v *state) {
		var ok bool
		if trial, ok = v.study.Trial(number); !ok {
			missing = &study.TrialNotFoundError{Trial: number, Trials: v.study.Trials()}
		}
	})
	return trial, errors.Join(err, missing)
}

// Trials implements [tuner.Service].
func (a *Actor) Trials(ctx context.Context, _ string, f tuner.Filter) (trials []study.Trial, more bool, err error) {
	v, err := a.log.snapshot(ctx)
	if err != nil {
		return nil, false, err
	}
	trials, more = view.Trials(v, f)
	return trials, more, nil
}

// Since returns the stored study if it is ahead of a position. Otherwise it returns nil and
// a channel that is closed when that may have changed. end is the position of the study.
func (a *Actor) Since(ctx context.Context, after study.Position) (v *study.View, advanced <-chan struct{}, end study.Position, err error) {
	return a.log.since(ctx, after)
}

// Columns implements [tuner.Service].
func (a *Actor) Columns(ctx context.Context, _ string, q tuner.ColumnQuery) (out tuner.Columns, err error) {
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

// Best implements [tuner.Service].
func (a *Actor) Best(ctx context.Context, _ string) (trials []study.Trial, err error) {
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

// Diagnose implements [tuner.Service].
func (a *Actor) Diagnose(ctx context.Context, _ string) (d surrogate.Diagnosis, err error) {
	err = a.queue.consult(ctx, func(p propose.Proposer, v *study.View) (err error) {
		m, can := p.(propose.Modeler)
		if !can {
			return noModel(v)
		}
		d, err = m.Diagnose(ctx, v)
		return err
	})
	return d, err
}

func noModel(v *study.View) error {
	return fmt.Errorf("a model of the proposer %s: %w; use the proposer %s", v.Spec().Proposer.Name, tuner.ErrUnsupported, tuner.DefaultProposer)
}

// Predict implements [tuner.Service].
func (a *Actor) Predict(ctx context.Context, _ string, q tuner.PredictQuery) (tuner.Predictions, error) {
	m, v, out, err := a.freeze(ctx)
	if err != nil {
		return out, err
	}
	return view.Predict(ctx, m, v, q, out, func(ctx context.Context) ([]study.Trial, error) { return a.Best(ctx, a.name) })
}

// freeze returns the model of the study, which is nil if there is none, the study as it
// stands, and the state of the model. Predictions need no turn of the proposer then.
func (a *Actor) freeze(ctx context.Context) (m *propose.Frozen, v *study.View, out tuner.Predictions, err error) {
	out.Trial = tuner.NoTrial
	err = a.queue.consult(ctx, func(p propose.Proposer, view *study.View) (err error) {
		v = view
		model, can := p.(propose.Modeler)
		if !can {
			return noModel(v)
		}
		m, out.State, out.Missing, err = model.Freeze(ctx, v)
		out.Position = v.Position()
		if m != nil {
			out.Results = m.Results
		}
		return err
	})
	return m, v, out, err
}

// Importance implements [tuner.Service].
func (a *Actor) Importance(ctx context.Context, _ string, q tuner.ImportanceQuery) (tuner.Importance, error) {
	v, err := a.log.snapshot(ctx)
	if err != nil {
		return tuner.Importance{}, err
	}
	return view.Importance(ctx, v, q, &a.columns, &a.importances, func() (*propose.Frozen, surrogate.State, int, error) {
		m, _, p, err := a.freeze(ctx)
		return m, p.State, p.Missing, err
	})
}

// ofTrial calls f with the study if it has a trial.
func (a *Actor) ofTrial(ctx context.Context, number int, f func(artifacts.Study) error) error {
	of := artifacts.Study{ID: a.id}
	var missing error
	err := a.log.read(ctx, func(v *state) {
		of.Created = v.study.Created()
		if _, ok := v.study.Trial(number); !ok {
			missing = &study.TrialNotFoundError{Trial: number, Trials: v.study.Trials()}
		}
	})
	if err := errors.Join(err, missing); err != nil {
		return err
	}
	return f(of)
}

// WriteArtifact implements [tuner.Service].
func (a *Actor) WriteArtifact(ctx context.Context, _ string, c tuner.WriteArtifact) (out tuner.WrittenArtifact, err error) {
	err = a.ofTrial(ctx, c.Trial, func(s artifacts.Study) (err error) {
		out, err = a.env.Artifacts.Write(ctx, s, c, a.env.Exists)
		return err
	})
	return out, err
}

// ReadArtifact implements [tuner.Service].
func (a *Actor) ReadArtifact(ctx context.Context, _ string, q tuner.ReadArtifact) (part tuner.ArtifactPart, err error) {
	err = a.ofTrial(ctx, q.Trial, func(s artifacts.Study) (err error) {
		part, err = a.env.Artifacts.Read(s, q)
		return err
	})
	return part, err
}

// Artifacts implements [tuner.Service].
func (a *Actor) Artifacts(ctx context.Context, _ string, q tuner.ListArtifacts) (list []tuner.Artifact, err error) {
	err = a.ofTrial(ctx, q.Trial, func(s artifacts.Study) (err error) {
		list, err = a.env.Artifacts.List(s, q.Trial)
		return err
	})
	return list, err
}

// DeleteArtifact implements [tuner.Service].
func (a *Actor) DeleteArtifact(ctx context.Context, _ string, c tuner.DeleteArtifact) error {
	return a.ofTrial(ctx, c.Trial, func(s artifacts.Study) error { return a.env.Artifacts.Delete(s, c) })
}
