// Package verify checks the logs of a store against the rules of package study. It is
// the part of a check that is the same for every kind of store.
package verify

import (
	"context"
	"errors"
	"fmt"

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

// Check reads and replays the logs of studies. An error means that the store cannot be read now.
func (r *Report) Check(ctx context.Context, s store.Store, studies []store.Info, options *Options) error {
	o := Options{}
	if options != nil {
		o = *options
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	for i, info := range studies {
		o.Progress(i, len(studies), info.Name)
		if err := r.study(ctx, s, info, o); err != nil {
			return err
		}
	}
	o.Progress(len(studies), len(studies), "")
	return nil
}

// study reads one log and replays it.
func (r *Report) study(ctx context.Context, s store.Store, info store.Info, o Options) error {
	observe, compare := func(study.Event) {}, func(*study.Study, []byte) error { return nil }
	if o.Summaries != nil {
		summary := o.Summaries()
		observe, compare = summary.Observe, summary.Compare
	}
	problem := func(pos study.Position, err error) {
		r.Add(Problem{Study: info.ID, Name: info.Name, Position: pos, Err: err})
	}
	var position study.Position
	var readErr error
	replayed, err := study.Replay(func(yield func(study.Event) bool) {
		for e, err := range s.Read(ctx, info.ID, 1) {
			if readErr = err; err != nil {
				return
			}
			position = e.Position
			observe(e.Event)
			if !yield(e.Event) {
				return
			}
		}
	})
	r.Events += uint64(position)
	switch {
	case errors.As(readErr, new(*store.NotFoundError)): // deleted after it was listed
		return nil
	case fatal(ctx, readErr):
		return readErr
	case readErr != nil:
		position++
		if e, ok := errors.AsType[*store.CorruptError](readErr); ok {
			position = e.Position
		}
		problem(position, readErr)
	case err != nil:
		problem(position, fmt.Errorf("it cannot follow the events before it: %w", err))
	default:
		r.Trials += replayed.Trials()
		if err := replayed.Check(); err != nil {
			problem(0, err)
		}
		// A missing or damaged summary is not a problem, because a list then reads the log. Nor
		// is one of events that were committed after the log was read.
		list, err := s.Summaries(ctx, []store.StudyID{info.ID})
		if err == nil && len(list) > 0 && list[0].Position == replayed.Position() {
			r.Summaries++
			err = compare(replayed, list[0].Data)
		}
		if fatal(ctx, err) {
			return err
		}
		if err != nil {
			problem(0, err)
		}
	}
	r.Studies++
	return nil
}

// fatal tells whether an error ends a check because it is not about the data.
func fatal(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome))
}
