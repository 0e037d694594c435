package tuner

import (
	"context"
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Adder is a [Service] that takes in many trials at once.
type Adder interface {
	// AddAll adds and enqueues trials, in order, with few commits: each command is a
	// study.Add or study.Enqueue with a request id of its own, and there are at most
	// [MaxPage]. It returns the numbers of the trials, one for each command. Once
	// begun it is not interrupted.
	//
	// If it ends at one of the commands, the error is a [CommandError]. After any
	// other with the code [Unknown] nobody knows how many trials there are, after the
	// rest there are none. The same commands again are answered with what is there
	// and go on.
	AddAll(ctx context.Context, name string, commands []study.Command) (numbers []int, err error)
}

var _ Adder = (*Tuner)(nil)

// CommandError is that many commands ended at one of them. Those before it are done;
// it is not and those after it are not, unless the code is [Unknown]: then nobody
// knows.
type CommandError struct {
	Index int // from 0
	Err   error
}

func (e *CommandError) Error() string { return e.Where() + ": " + e.Err.Error() }

// Where names the command as the field of a request.
func (e *CommandError) Where() string { return fmt.Sprintf("trials[%d]", e.Index) }

func (e *CommandError) Unwrap() error { return e.Err }

// Refused tells whether the command is to blame, and not the store or the way to it.
func (e *CommandError) Refused() bool {
	code := CodeOf(e.Err)
	return code == Invalid || code == Finished || code == NoneLeft
}

// AddAll is [Adder]'s where the service is one and its server, if it has one, knows
// how. Elsewhere one trial is added after another, and the end of ctx interrupts.
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
	part := false // is stored of what a store then refused
	err := t.with(ctx, name, func(d *desk) error {
		ctx := context.WithoutCancel(ctx)
		var numbers []int
		var first, b *batch
		var refused error
		err := d.inTurn(ctx, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			numbers, first, refused = d.makeAll(commands)
			b = d.barrier()
		})
		if err != nil {
			return err
		}
		if err := d.wait(ctx, b); err != nil {
			part = part || first.stored()
			return err
		}
		if refused == nil {
			made = numbers
		}
		return refused
	})
	if err != nil && part && !as[*CommandError](err) { // whether or not it was tried again since
		return nil, fmt.Errorf("%w: %w: %w", store.ErrUnknownOutcome, errPartAdded, err)
	}
	return made, err
}

// errPartAdded is why many trials that a store refused are not all missing: what
// is too much for one commit takes several.
var errPartAdded = errors.New("a part of the trials has been added")

// CheckMany tells whether so many trials are too many to add at once.
func CheckMany(n int) error {
	if n > MaxPage {
		return &study.InvalidError{Field: "trials", Value: fmt.Sprint(n), Rule: fmt.Sprintf("must be at most %d at once", MaxPage), Remedy: "add them in parts"}
	}
	return nil
}

// CheckAddAll tells what is wrong with the commands for an [Adder], whatever the
// study.
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
			return &study.InvalidError{Field: field + ".request_id", Value: `""`, Rule: "must be there: a part may be stored and the rest not", Remedy: "give each an id of its own"}
		}
	}
	return nil
}

// makeAll decides the commands up to the first that is refused; d.mu is held. The
// batch has the first event that they made, nil if they made none.
func (d *desk) makeAll(commands []study.Command) (numbers []int, first *batch, refused error) {
	for i, c := range commands {
		before := d.s.Position()
		reply, err := d.decide(c)
		if err != nil && d.broken == nil {
			err = &CommandError{i, err}
		}
		if err != nil {
			return numbers, first, err
		}
		if first == nil && d.s.Position() > before {
			first = d.last()
		}
		numbers = append(numbers, reply.Trials[0])
	}
	return numbers, first, nil
}
