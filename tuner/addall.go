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
	// [MaxPage]. It returns the trials, stored, of the commands up to the first that
	// is refused, with a [CommandError]. Once begun it is not interrupted. After an error
	// with the code [Unknown] nobody knows how many there are: the same commands again
	// are answered with what is there and go on.
	AddAll(ctx context.Context, name string, commands []study.Command) ([]study.Trial, error)
}

var _ Adder = (*Tuner)(nil)

// CommandError refuses one of many commands. Those before it are done.
type CommandError struct {
	Index int // from 0
	Err   error
}

func (e *CommandError) Error() string { return e.Err.Error() }

func (e *CommandError) Unwrap() error { return e.Err }

// AddAll is [Adder]'s where the service is one. Over the network it is not: there
// one trial is added after another, the trials answered are those before any error,
// and the end of ctx interrupts.
func AddAll(ctx context.Context, s Service, name string, commands []study.Command) (trials []study.Trial, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a, ok := s.(Adder); ok {
		return a.AddAll(ctx, name, commands)
	}
	if err := checkAddAll(commands); err != nil {
		return nil, err
	}
	for i, c := range commands {
		trial, err := addOne(ctx, s, name, c)
		if err != nil && refuses(CodeOf(err)) {
			return trials, &CommandError{i, err}
		} else if err != nil {
			return trials, err
		}
		trials = append(trials, trial)
	}
	return trials, nil
}

func addOne(ctx context.Context, s Service, name string, c study.Command) (study.Trial, error) {
	if e, ok := c.(study.Enqueue); ok {
		return s.Enqueue(ctx, name, e)
	}
	return s.Add(ctx, name, c.(study.Add))
}

// refuses tells whether an error of such a code is about the command, and not
// about the store or the way to it.
func refuses(c Code) bool {
	return c == Invalid || c == Finished || c == NoneLeft
}

// AddAll implements [Adder].
func (t *Tuner) AddAll(ctx context.Context, name string, commands []study.Command) ([]study.Trial, error) {
	if err := checkAddAll(commands); err != nil {
		return nil, err
	}
	var made []study.Trial
	part := false // is stored of what a store then refused
	err := t.with(ctx, name, func(d *desk) error {
		ctx := context.WithoutCancel(ctx)
		var trials []study.Trial
		var first, b *batch
		var refused error
		err := d.inTurn(ctx, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			trials, first, refused = d.makeAll(commands)
			b = d.barrier()
		})
		if err != nil {
			return err
		}
		if err := d.wait(ctx, b); err != nil {
			part = part || first.stored()
			return err
		}
		made = trials
		return refused
	})
	if err != nil && part && len(made) == 0 { // whether or not it was tried again since
		return nil, fmt.Errorf("%w: %w: %w", store.ErrUnknownOutcome, errPartAdded, err)
	}
	return made, err
}

// errPartAdded is why many trials that a store refused are not all missing: what
// is too much for one commit takes several.
var errPartAdded = errors.New("a part of the trials has been added")

func checkAddAll(commands []study.Command) error {
	if len(commands) > MaxPage {
		return &study.InvalidError{Field: "commands", Value: fmt.Sprint(len(commands)), Rule: fmt.Sprintf("must be at most %d at once", MaxPage), Remedy: "add them in parts"}
	}
	for i, c := range commands {
		field, id := fmt.Sprintf("commands[%d]", i), ""
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
func (d *desk) makeAll(commands []study.Command) (trials []study.Trial, first *batch, refused error) {
	for _, c := range commands {
		before := d.s.Position()
		reply, err := d.decide(c)
		if err != nil && d.broken == nil {
			err = &CommandError{len(trials), err}
		}
		if err != nil {
			return trials, first, err
		}
		if first == nil && d.s.Position() > before {
			first = d.last()
		}
		trial, _ := d.s.Trial(reply.Trials[0])
		trials = append(trials, trial)
	}
	return trials, first, nil
}
