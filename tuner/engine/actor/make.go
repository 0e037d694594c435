package actor

import (
	"context"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// make decides a command that makes a trial and waits until it is stored. It takes
// turns with asks.
func (q *queue) make(ctx context.Context, c study.Command) (study.Trial, error) {
	var trial study.Trial // the caller's after inTurn returned nil
	var b *batch
	var refused error
	err := q.inTurn(ctx, func() {
		b, refused = q.log.stage(func(v *state) error {
			reply, err := q.log.decide(ctx, c)
			if err == nil {
				trial, _ = v.study.Trial(reply.Trials[0])
				trial = trial.WithoutReports()
			}
			return err
		})
	})
	if err != nil {
		return study.Trial{}, err
	}
	if err := q.log.wait(ctx, b); err != nil {
		return study.Trial{}, err
	}
	return trial, refused
}

// makeAll decides commands that make trials, up to the first refusal, and waits until
// they are stored. It takes turns with asks. part reports that some were stored before
// the store refused the rest.
func (q *queue) makeAll(ctx context.Context, commands []study.Command) (numbers []int, part bool, err error) {
	var made []int
	var first, b *batch
	var refused error
	err = q.inTurn(ctx, func() {
		b, refused = q.log.stage(func(v *state) (err error) {
			made, first, err = q.decideAll(ctx, v, commands)
			return err
		})
	})
	if err != nil {
		return nil, false, err
	}
	if err := q.log.wait(ctx, b); err != nil {
		return nil, first.stored(), err
	}
	if refused != nil {
		return nil, false, refused
	}
	return made, false, nil
}

// decideAll decides the commands up to the first refusal. first is the batch of the
// first event that they made, or nil if they made none. The log's lock is held.
func (q *queue) decideAll(ctx context.Context, v *state, commands []study.Command) (numbers []int, first *batch, refused error) {
	for i, c := range commands {
		before := v.study.Position()
		reply, err := q.log.decide(ctx, c)
		if _, broken := q.log.current(); err != nil && broken == nil {
			err = &tuner.CommandError{Index: i, Err: err}
		}
		if err != nil {
			return numbers, first, err
		}
		if first == nil && v.study.Position() > before {
			first = q.log.last()
		}
		numbers = append(numbers, reply.Trials[0])
	}
	return numbers, first, nil
}
