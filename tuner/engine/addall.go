package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/study"
)

// AddAll implements [tuner.Service].
func (t *Engine) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	if err := tuner.CheckAddAll(commands); err != nil {
		return nil, err
	}
	var made []int
	part := false // whether some trials were stored before the store refused the rest
	err := t.with(ctx, name, func(a *actor.Actor) error {
		numbers, some, err := a.MakeAll(context.WithoutCancel(ctx), commands)
		made, part = numbers, part || some
		return err
	})
	if err != nil && part && !errors.As(err, new(*tuner.CommandError)) { // also if the call was retried since
		return nil, fmt.Errorf("%w: %w: %w", store.ErrUnknownOutcome, errPartAdded, err)
	}
	return made, err
}

// errPartAdded explains why some trials may exist although the store refused others. A
// request too large for one commit takes several.
var errPartAdded = errors.New("a part of the trials has been added")
