// Package verify checks the logs of a store against the rules of package study. It is
// the part of a check that is the same for every kind of store.
package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Report is the result of checking logs.
type Report struct {
	Studies   int
	Events    uint64
	Trials    int
	Snapshots int       // without the damaged ones
	Problems  []Problem // at most [MaxProblems]
	More      int       // number of problems beyond MaxProblems
}

// MaxProblems is how many problems a [Report] lists.
const MaxProblems = 100

// OK tells whether the check found no problem.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Add adds a problem.
func (r *Report) Add(p Problem) {
	if len(r.Problems) < MaxProblems {
		r.Problems = append(r.Problems, p)
		return
	}
	r.More++
}

// Problem is one defect of a store.
type Problem struct {
	Study    store.StudyID  // 0 if the problem is not in one study
	Name     string         // of the study, if known
	Position study.Position // in the study's log, 0 if the problem is not in one record
	Err      error
}

func (p Problem) String() string {
	switch {
	case p.Study == 0:
		return p.Err.Error()
	case p.Name == "":
		return fmt.Sprintf("study %d: %v", p.Study, p.Err)
	case p.Position == 0:
		return fmt.Sprintf("study %q (id %d): %v", p.Name, p.Study, p.Err)
	default:
		return fmt.Sprintf("study %q (id %d), event %d: %v", p.Name, p.Study, p.Position, p.Err)
	}
}

// Progress receives the number of studies done, the number of all studies and the name
// of the next one. It may be nil.
type Progress func(done, of int, next string)

// Check reads and replays the logs of studies. An error means that the store cannot
// be read now.
func (r *Report) Check(ctx context.Context, s store.Store, studies []store.Info, progress Progress) error {
	if progress == nil {
		progress = func(int, int, string) {}
	}
	for i, info := range studies {
		progress(i, len(studies), info.Name)
		if err := r.study(ctx, s, info); err != nil {
			return err
		}
	}
	progress(len(studies), len(studies), "")
	return nil
}

// study reads one log and replays it.
func (r *Report) study(ctx context.Context, s store.Store, info store.Info) error {
	problem := func(pos study.Position, err error) {
		r.Add(Problem{Study: info.ID, Name: info.Name, Position: pos, Err: err})
	}
	var position study.Position
	var readErr error
	replayed, err := study.Replay(events(ctx, s, info.ID, &position, &readErr))
	r.Events += uint64(position)
	switch gone := (*store.NotFoundError)(nil); {
	case errors.As(readErr, &gone): // deleted after it was listed
		return nil
	case readErr != nil:
		if err := fatal(ctx, readErr); err != nil {
			return err
		}
		problem(corruptAt(readErr, position), readErr)
	case err != nil:
		problem(position, fmt.Errorf("it cannot follow the events before it: %w", err))
	default:
		r.Trials += replayed.Trials()
		if err := replayed.Check(); err != nil {
			problem(0, err)
		}
	}
	r.Studies++
	return r.snapshot(ctx, s, info)
}

// snapshot counts the sound snapshots. A damaged one is not a problem, because it
// counts as missing.
func (r *Report) snapshot(ctx context.Context, s store.Store, info store.Info) error {
	_, ok, err := s.LoadSnapshot(ctx, info.ID)
	if err != nil {
		return fatal(ctx, err)
	}
	if ok {
		r.Snapshots++
	}
	return nil
}

// events yields the events of a log. It sets last to the last position, and err to the
// error that ended reading.
func events(ctx context.Context, s store.Store, id store.StudyID, last *study.Position, err *error) iter.Seq[study.Event] {
	return func(yield func(study.Event) bool) {
		for r, readErr := range s.Read(ctx, id, 1) {
			if readErr != nil {
				*err = readErr
				return
			}
			*last = r.Position
			if !yield(r.Event) {
				return
			}
		}
	}
}

// corruptAt returns the position in err, or the one after last.
func corruptAt(err error, last study.Position) study.Position {
	if e, ok := errors.AsType[*store.CorruptError](err); ok {
		return e.Position
	}
	return last + 1
}

// fatal returns errors that end a check because they are not about the data.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	return nil
}
