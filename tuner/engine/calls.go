package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
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
