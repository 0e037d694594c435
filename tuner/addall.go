package tuner

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Adder is a [Service] that adds many trials at once.
type Adder interface {
	// AddAll adds and enqueues trials in order, with few commits. Each command is a
	// study.Add or study.Enqueue with its own request id, and there are at most
	// [MaxPage]. AddAll returns the trial number for each command. Once it has begun,
	// it does not stop when ctx ends.
	//
	// If a command is refused, the error is a [CommandError]. Any other error means
	// that no trial was added, unless its code is [Unknown]. Then some may have been
	// added, and sending the same commands again returns them and adds the rest.
	AddAll(ctx context.Context, name string, commands []study.Command) (numbers []int, err error)
}

// CommandError says which of many commands failed. The commands before it took effect.
// The failed command and those after it did not, unless the code is [Unknown], in which
// case they may have.
type CommandError struct {
	Index int // from 0
	Err   error
}

func (e *CommandError) Error() string { return e.Where() + ": " + e.Err.Error() }

// Where names the command as the field of a request.
func (e *CommandError) Where() string { return fmt.Sprintf("trials[%d]", e.Index) }

func (e *CommandError) Unwrap() error { return e.Err }

// Refused reports whether the command itself was at fault, not the store or network.
func (e *CommandError) Refused() bool {
	code := CodeOf(e.Err)
	return code == Invalid || code == Finished || code == NoneLeft
}

// AddAll calls the service's AddAll if the service is an [Adder] and its server
// supports the call. Otherwise it adds one trial after another until ctx ends.
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

// CheckMany refuses to add more than [MaxPage] trials at once.
func CheckMany(n int) error {
	if n > MaxPage {
		return &study.InvalidError{Field: "trials", Value: fmt.Sprint(n), Rule: fmt.Sprintf("must be at most %d at once", MaxPage), Remedy: "send fewer per call"}
	}
	return nil
}

// CheckAddAll checks the commands of an [Adder] without looking at the study.
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
			return &study.InvalidError{Field: field, Value: fmt.Sprintf("%T", c), Rule: "must be an add or an enqueue", Remedy: "use study.Add or study.Enqueue"}
		}
		if id == "" {
			return &study.InvalidError{Field: field + ".request_id", Value: `""`, Rule: "must not be empty, or a retry could add a trial twice", Remedy: "give each command its own id"}
		}
	}
	return nil
}
