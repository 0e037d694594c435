package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// with calls f with the actor of a study. It calls f again if the study was dropped from
// memory before f had an effect, if another writer of the store committed first, or if
// another server claimed the study. In that case the next actor learns who has it.
func (t *Engine) with(ctx context.Context, name string, f func(a *actor.Actor) error) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, release, err := t.actor(ctx, name)
		if err != nil {
			return err
		}
		err = f(a)
		release()
		switch conflict := (*store.ConflictError)(nil); {
		case errors.Is(err, actor.ErrRetired):
			t.forget(a)
		case errors.Is(err, actor.ErrDiscarded):
		case errors.As(err, new(*store.FencedError)) && try < maxConflicts:
			t.forget(a)
		case errors.As(err, &conflict) && try < maxConflicts:
			time.Sleep(rand.N(time.Duration(try) * time.Millisecond))
		default:
			return err
		}
	}
}

// maxConflicts is the number of times in a row that a call may lose to another writer.
const maxConflicts = 20

// call is with for a call that returns something.
func call[R any](ctx context.Context, t *Engine, name string, f func(a *actor.Actor) (R, error)) (out R, err error) {
	err = t.with(ctx, name, func(a *actor.Actor) error {
		out, err = f(a)
		return err
	})
	return out, err
}

// Study implements [tuner.Service].
func (t *Engine) Study(ctx context.Context, name string) (tuner.Study, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Study, error) { return a.Study(ctx) })
}

// Pause implements [tuner.Service].
func (t *Engine) Pause(ctx context.Context, name string, c study.Pause) (tuner.Study, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Study, error) { return a.Change(ctx, c) })
}

// Resume implements [tuner.Service].
func (t *Engine) Resume(ctx context.Context, name string, c study.Resume) (tuner.Study, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Study, error) { return a.Change(ctx, c) })
}

// Finish implements [tuner.Service].
func (t *Engine) Finish(ctx context.Context, name string, c study.Finish) (tuner.Study, error) {
	c.Reason = study.FinishedUser
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Study, error) { return a.Change(ctx, c) })
}

// Extend implements [tuner.Service].
func (t *Engine) Extend(ctx context.Context, name string, c study.Extend) (tuner.Study, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Study, error) { return a.Change(ctx, c) })
}

// SetAttributes implements [tuner.Service].
func (t *Engine) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	return t.with(ctx, name, func(a *actor.Actor) error { return a.Do(ctx, c) })
}

// Ask implements [tuner.Service].
func (t *Engine) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Asked, error) { return a.Ask(ctx, c) })
}

// Tell implements [tuner.Service].
func (t *Engine) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Told, error) { return a.Tell(ctx, c) })
}

// Report implements [tuner.Service].
func (t *Engine) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Verdict, error) { return a.Report(ctx, c) })
}

// Heartbeat implements [tuner.Service].
func (t *Engine) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Verdict, error) { return a.Heartbeat(ctx, c) })
}

// Enqueue implements [tuner.Service].
func (t *Engine) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	return call(ctx, t, name, func(a *actor.Actor) (study.Trial, error) { return a.Make(ctx, c) })
}

// Add implements [tuner.Service].
func (t *Engine) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	return call(ctx, t, name, func(a *actor.Actor) (study.Trial, error) { return a.Make(ctx, c) })
}

// Trial implements [tuner.Service].
func (t *Engine) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	trial, err := call(ctx, t, name, func(a *actor.Actor) (study.Trial, error) { return a.Trial(ctx, number) })
	return trial.WithoutReports(), err
}

// Reports implements [tuner.Service].
func (t *Engine) Reports(ctx context.Context, name string, number, first, limit int) (reports []study.Report, more bool, err error) {
	trial, err := call(ctx, t, name, func(a *actor.Actor) (study.Trial, error) { return a.Trial(ctx, number) })
	reports, more = view.Reports(trial, first, limit)
	return reports, more, err
}

// Trials implements [tuner.Service].
func (t *Engine) Trials(ctx context.Context, name string, f tuner.Filter) (trials []study.Trial, more bool, err error) {
	v, err := call(ctx, t, name, func(a *actor.Actor) (*study.View, error) { return a.Snapshot(ctx) })
	if err != nil {
		return nil, false, err
	}
	trials, more = view.Trials(v, f)
	return trials, more, nil
}

// Columns implements [tuner.Service].
func (t *Engine) Columns(ctx context.Context, name string, q tuner.ColumnQuery) (tuner.Columns, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Columns, error) { return a.Columns(ctx, q) })
}

// Best implements [tuner.Service].
func (t *Engine) Best(ctx context.Context, name string) ([]study.Trial, error) {
	return call(ctx, t, name, func(a *actor.Actor) ([]study.Trial, error) { return a.Best(ctx) })
}

// Diagnose implements [tuner.Service].
func (t *Engine) Diagnose(ctx context.Context, name string) (surrogate.Diagnosis, error) {
	return call(ctx, t, name, func(a *actor.Actor) (surrogate.Diagnosis, error) { return a.Diagnose(ctx) })
}

// Predict implements [tuner.Service].
func (t *Engine) Predict(ctx context.Context, name string, q tuner.PredictQuery) (tuner.Predictions, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Predictions, error) { return a.Predict(ctx, q) })
}

// Importance implements [tuner.Service].
func (t *Engine) Importance(ctx context.Context, name string, q tuner.ImportanceQuery) (tuner.Importance, error) {
	return call(ctx, t, name, func(a *actor.Actor) (tuner.Importance, error) { return a.Importance(ctx, q) })
}
