package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// ReplayReport is the result of recomputing a study from its log.
type ReplayReport struct {
	Events      int
	Suggestions int // recomputed
	Fallbacks   int // not recomputed, because the proposer had failed or was late
	Models      int // model events, recomputed
	Differences []Difference
	// ModelDifferences are the positions of model events that came out differently.
	ModelDifferences []study.Position
}

// Difference is a suggestion that came out differently.
type Difference struct {
	Trial              int
	Stored, Recomputed space.Config
}

// Replay folds the log of a study anew. Its proposer makes every suggestion and every
// model again, from the events that it had seen. If there are no differences, the log
// explains the whole search. progress, if not nil, is called after every event.
func (t *Engine) Replay(ctx context.Context, name string, progress func(study.Position)) (ReplayReport, error) {
	info, err := t.store.Lookup(ctx, name)
	if err != nil {
		return ReplayReport{}, err
	}
	r := replayer{id: info.ID, lag: new(study.Study)}
	next, stop := iter.Pull2(t.store.Read(ctx, info.ID, 0))
	defer stop()
	r.next = next
	s, err := actor.Fold(ctx, t.store, info.ID, func(s *study.Study, e study.Event) (err error) {
		r.report.Events++
		switch b := e.Body.(type) {
		case study.Started:
			if b.Suggestion != nil {
				err = r.repeat(ctx, s.Spec(), b)
			}
		case study.Anchored:
			err = r.remake(ctx, s.Spec(), s.Position(), b)
		}
		if err == nil && progress != nil {
			progress(s.Position())
		}
		return err
	})
	if err != nil {
		return r.report, err
	}
	return r.report, s.Check()
}

// replayer makes suggestions again, on a study that lags behind the log.
type replayer struct {
	id       store.StudyID
	next     func() (store.Record, error, bool)
	lag      *study.Study // up to the last event that the proposer had seen
	proposer propose.Proposer
	report   ReplayReport
}

func (r *replayer) repeat(ctx context.Context, spec study.Spec, b study.Started) error {
	if b.Suggestion.Phase == study.PhaseFallback {
		r.report.Fallbacks++
		return nil
	}
	if err := r.advance(spec, b.Suggestion.Seen); err != nil {
		return err
	}
	view := r.lag.Snapshot()
	place := b.Trial - view.Trials() // among the suggestions made together
	if place < 0 {
		return &store.CorruptError{Study: r.id, Reason: fmt.Sprintf("the suggestion for trial %d claims to have seen that trial", b.Trial)}
	}
	r.report.Suggestions++
	p, err := r.proposer.Propose(ctx, view, place+1)
	if errors.Is(err, propose.ErrExhausted) || err == nil && len(p.Suggestions) <= place {
		r.report.Differences = append(r.report.Differences, Difference{Trial: b.Trial, Stored: b.Suggestion.Config})
		return nil
	} else if err != nil {
		return err
	}
	if got := p.Suggestions[place].Config; !got.Equal(b.Suggestion.Config) {
		r.report.Differences = append(r.report.Differences, Difference{b.Trial, b.Suggestion.Config, got})
	}
	return nil
}

// advance makes a proposer if there is none, and moves the lagging study forward to
// position p.
func (r *replayer) advance(spec study.Spec, p study.Position) error {
	if r.proposer == nil {
		var err error
		if r.proposer, err = propose.New(spec.Proposer, spec); err != nil {
			return err
		}
	}
	for r.lag.Position() < p {
		record, err, ok := r.next()
		if !ok {
			return &store.CorruptError{Study: r.id, Position: r.lag.Position(), Reason: "a suggestion claims to have seen events beyond the end of the log"}
		} else if err != nil {
			return err
		}
		if err := r.lag.Apply(record.Event); err != nil {
			return &store.CorruptError{Study: r.id, Position: record.Position, Reason: err.Error()}
		}
	}
	return nil
}

// remake makes the model of an event again.
func (r *replayer) remake(ctx context.Context, spec study.Spec, p study.Position, b study.Anchored) error {
	if err := r.advance(spec, p-1); err != nil {
		return err
	}
	r.report.Models++
	if m, ok := r.proposer.(propose.Modeler); ok {
		model, err := m.Remake(ctx, r.lag.Snapshot(), b)
		if err == nil && bytes.Equal(model, b.Model) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	r.report.ModelDifferences = append(r.report.ModelDifferences, p)
	return nil
}
