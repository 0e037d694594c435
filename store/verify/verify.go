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
	Summaries int       // that were compared with their logs
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

// Summarizer compares the summary of one study with its log.
type Summarizer interface {
	// Observe takes the next event of the log.
	Observe(study.Event)
	// Compare returns an error if data are not the summary of the study.
	Compare(s *study.Study, data []byte) error
}

// Progress receives the number of studies done, the number of all studies and the name
// of the next one. It may be nil.
type Progress func(done, of int, next string)

// Options are the settings of a check. Nil Options are the zero ones.
type Options struct {
	Progress Progress
	// Summaries makes a Summarizer for each study. If it is nil, summaries are not checked.
	Summaries func() Summarizer
}

// Check reads and replays the logs of studies. An error means that the store cannot
// be read now.
func (r *Report) Check(ctx context.Context, s store.Store, studies []store.Info, options *Options) error {
	o := Options{}
	if options != nil {
		o = *options
	}
	progress := o.Progress
	if progress == nil {
		progress = func(int, int, string) {}
	}
	if o.Summaries == nil {
		o.Summaries = func() Summarizer { return ignored{} }
	}
	for i, info := range studies {
		progress(i, len(studies), info.Name)
		if err := r.study(ctx, s, info, o.Summaries()); err != nil {
			return err
		}
	}
	progress(len(studies), len(studies), "")
	return nil
}

// study reads one log and replays it.
func (r *Report) study(ctx context.Context, s store.Store, info store.Info, summary Summarizer) error {
	problem := func(pos study.Position, err error) {
		r.Add(Problem{Study: info.ID, Name: info.Name, Position: pos, Err: err})
	}
	var position study.Position
	var readErr error
	replayed, err := study.Replay(events(ctx, s, info.ID, summary, &position, &readErr))
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
		if err := r.summary(ctx, s, replayed, info.ID, summary); err != nil {
			if err := fatal(ctx, err); err != nil {
				return err
			}
			problem(0, err)
		}
	}
	r.Studies++
	return nil
}

// ignored is a [Summarizer] that compares nothing.
type ignored struct{}

func (ignored) Observe(study.Event)                {}
func (ignored) Compare(*study.Study, []byte) error { return nil }

// summary compares the summary of a study with its log. A missing or damaged one is not a
// problem, because a list then reads the log. Nor is one of events that were committed
// after the log was read.
func (r *Report) summary(ctx context.Context, s store.Store, replayed *study.Study, id store.StudyID, with Summarizer) error {
	list, err := s.Summaries(ctx, []store.StudyID{id})
	if err != nil || len(list) == 0 || list[0].Position != replayed.Position() {
		return err
	}
	r.Summaries++
	return with.Compare(replayed, list[0].Data)
}

// events yields the events of a log, and shows them to a Summarizer. It sets last to the
// last position, and err to the error that ended reading.
func events(ctx context.Context, s store.Store, id store.StudyID, summary Summarizer, last *study.Position, err *error) iter.Seq[study.Event] {
	return func(yield func(study.Event) bool) {
		for r, readErr := range s.Read(ctx, id, 1) {
			if readErr != nil {
				*err = readErr
				return
			}
			*last = r.Position
			summary.Observe(r.Event)
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
