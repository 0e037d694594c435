package tuner

import (
	"context"
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Adder is a [Service] that adds many trials at once.
type Adder interface {
	// AddAll adds and enqueues trials, in order, with few commits: each command is a
	// study.Add or study.Enqueue with a request id of its own, and there are at most
	// [MaxPage]. It returns the numbers of the trials, one for each command. Once
	// begun it is not interrupted.
	//
	// If one of the commands is refused, the error is a [CommandError]. After another
	// error with the code [Unknown] any number of the trials may have been added, after
	// all others none. The same commands again return the trials that are there and add
	// the rest.
	AddAll(ctx context.Context, name string, commands []study.Command) (numbers []int, err error)
}

var _ Adder = (*Tuner)(nil)

// CommandError says at which of many commands a call ended. The commands before it are
// done. It and those after it are not, unless the code is [Unknown]: then they may be.
type CommandError struct {
	Index int // from 0
	Err   error
}

func (e *CommandError) Error() string { return e.Where() + ": " + e.Err.Error() }

// Where names the command as the field of a request.
func (e *CommandError) Where() string { return fmt.Sprintf("trials[%d]", e.Index) }

func (e *CommandError) Unwrap() error { return e.Err }

// Refused reports whether the error is the command's, not the store's or the network's.
func (e *CommandError) Refused() bool {
	code := CodeOf(e.Err)
	return code == Invalid || code == Finished || code == NoneLeft
}

// AddAll calls the service's AddAll if it is an [Adder] and its server, if it has one,
// supports it. Otherwise it adds one trial after another until ctx ends.
func AddAll(ctx context.Context, s Service, name string, commands []study.Command) (numbers []int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a, ok := s.(Adder); ok {
		if numbers, err := a.AddAll(ctx, name, commands); CodeOf(err) != Unsupported {
			return numbers, err
		}
	}
	if err := CheckAddAll(commands); err != nil {
		return nil, err
	}
	for i, c := range commands {
		trial, err := addOne(ctx, s, name, c)
		if err != nil {
			return nil, &CommandError{i, err}
		}
		numbers = append(numbers, trial.Number)
	}
	return numbers, nil
}

func addOne(ctx context.Context, s Service, name string, c study.Command) (study.Trial, error) {
	if e, ok := c.(study.Enqueue); ok {
		return s.Enqueue(ctx, name, e)
	}
	return s.Add(ctx, name, c.(study.Add))
}

// AddAll implements [Adder].
func (t *Tuner) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	if err := CheckAddAll(commands); err != nil {
		return nil, err
	}
	var made []int
	part := false // is stored of what the store then refused
	err := t.with(ctx, name, func(d *desk) error {
		numbers, some, err := d.proposer.makeAll(context.WithoutCancel(ctx), commands)
		made, part = numbers, part || some
		return err
	})
	if err != nil && part && !as[*CommandError](err) { // even if the call was tried again since
		return nil, fmt.Errorf("%w: %w: %w", store.ErrUnknownOutcome, errPartAdded, err)
	}
	return made, err
}

// errPartAdded says why some of many trials may be there although the store refused
// others: what is too much for one commit takes several.
var errPartAdded = errors.New("a part of the trials has been added")

// CheckMany refuses to add more than [MaxPage] trials at once.
func CheckMany(n int) error {
	if n > MaxPage {
		return &study.InvalidError{Field: "trials", Value: fmt.Sprint(n), Rule: fmt.Sprintf("must be at most %d at once", MaxPage), Remedy: "add them in parts"}
	}
	return nil
}

// CheckAddAll checks the commands for an [Adder], as far as the study does not matter.
func CheckAddAll(commands []study.Command) error {
	if err := CheckMany(len(commands)); err != nil {
		return err
	}
	for i, c := range commands {
		field, id := (&CommandError{Index: i}).Where(), ""
		switch c := c.(type) {
		case study.Add:
			id = c.RequestID
		case study.Enqueue:
			id = c.RequestID
		default:
			return &study.InvalidError{Field: field, Value: fmt.Sprintf("%T", c), Rule: "does not make a trial at once", Remedy: "add or enqueue"}
		}
		if id == "" {
			return &study.InvalidError{Field: field + ".request_id", Value: `""`, Rule: "must be there: a part may be stored and the rest not", Remedy: "give each command an id of its own"}
		}
	}
	return nil
}
