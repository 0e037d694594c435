package tuner

import (
	"fmt"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// From is the place in a study's log after which a watch begins. To resume a watch, give
// the study and the position of its last event.
type From struct {
	Study store.StudyID // 0 for the one that has the name now
	After study.Position
}

// Of returns an error if another study has the name now.
func (f *From) Of(id store.StudyID) error {
	if f.Study != 0 && id != 0 && id != f.Study { // servers of earlier versions tell none
		return fmt.Errorf("the study was deleted, and another one has its name; watch that from position 0: %w", &store.NotFoundError{Study: f.Study})
	}
	f.Study = id
	return nil
}

// Yield yields an event, or the error with which the watch ends, and goes on to it. more
// says whether others may follow.
func (f *From) Yield(yield func(Event, error) bool, h Event, err error) (more bool) {
	if err == nil {
		err = f.Of(h.Study)
	}
	if err != nil {
		yield(Event{}, err)
		return false
	}
	f.After = h.Position
	return yield(h, nil)
}

// PastEnd is the error of a watch after a position that the log lacks.
func (f *From) PastEnd(end study.Position) error {
	return &study.InvalidError{
		Field: "after", Value: fmt.Sprint(f.After), Rule: fmt.Sprintf("is past the end of the log, which is at %d, so it is not the log that was watched", end),
		Remedy: "read the study anew, and watch from position 0",
	}
}
