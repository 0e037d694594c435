package tuner

import (
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
)

// CommandError says which of many commands failed. The commands before it took effect. The failed
// command and those after it did not, unless the code is [Unknown], in which case they may have.
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

// CheckMany refuses to add more than [MaxPage] trials at once.
func CheckMany(n int) error {
	if n > MaxPage {
		return &study.InvalidError{Field: "trials", Value: fmt.Sprint(n), Rule: fmt.Sprintf("must be at most %d at once", MaxPage), Remedy: "send fewer per call"}
	}
	return nil
}

// CheckAddAll checks the commands of [Service.AddAll] without looking at the study.
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
