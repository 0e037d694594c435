package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Foreign is the state of a study of another optimiser. It follows from the events of
// the study, the first one included. The log's lock guards it.
type Foreign interface {
	// Apply folds the next event. An error means that the log is damaged.
	Apply(study.Event) error
}

// observe folds an event that was read into the state of another optimiser.
func (v *live) observe(id store.StudyID, e study.Event, o Options) error {
	if b, ok := e.Body.(study.Created); ok && b.Spec.Foreign() && o.Foreign != nil {
		v.foreign = o.Foreign(id)
	}
	if v.foreign == nil {
		return nil
	}
	return v.foreign.Apply(e)
}

// ForeignStudy names a study of another optimiser.
type ForeignStudy struct {
	ID   store.StudyID
	Name string // in the store
}

// CreateForeign makes a study of Optuna with its first changes. It returns a
// [store.ExistsError] if the name is taken.
func (t *Engine) CreateForeign(ctx context.Context, name string, objectives []study.Objective, changes []study.Foreign) (ForeignStudy, error) {
	if err := t.serving(); err != nil {
		return ForeignStudy{}, err
	}
	empty, err := space.New()
	if err != nil {
		return ForeignStudy{}, err
	}
	now := t.options.Now().UTC().Round(0)
	events := []study.Event{{Time: now, Body: study.Created{Spec: study.Spec{
		Space: empty, Objectives: objectives, Proposer: study.Component{Name: study.Optuna},
	}}}}
	for _, c := range changes {
		events = append(events, study.Event{Time: now, Body: c})
	}
	sign(tuner.CallerOf(ctx), events)
	info, err := t.store.Create(ctx, name, events)
	if err != nil {
		t.checkFatal(err)
		return ForeignStudy{}, err
	}
	t.forgetName(name) // a call may have looked for the name earlier
	t.notices.changed(name)
	return ForeignStudy{info.ID, name}, nil
}

// ForeignPrefix begins the names of studies of Optuna.
const ForeignPrefix = "optuna."

// checkPrefix refuses a new study whose name would block one of Optuna. Older files may have
// such studies.
func (t *Engine) checkPrefix(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, ForeignPrefix) {
		return nil
	}
	_, err := t.store.Lookup(ctx, name)
	if missing := (*store.NotFoundError)(nil); !errors.As(err, &missing) {
		return err
	}
	return &study.InvalidError{
		Field: "name", Value: name,
		Rule: "only names of studies of Optuna begin with " + ForeignPrefix, Remedy: "choose a name with another beginning",
	}
}

// FindForeign returns the study with a name or, if the name is empty, with an id.
func (t *Engine) FindForeign(ctx context.Context, name string, id store.StudyID) (ForeignStudy, error) {
	if err := t.serving(); err != nil {
		return ForeignStudy{}, err
	}
	var info store.Info
	var err error
	if name != "" {
		info, err = t.store.Lookup(ctx, name)
	} else {
		info, err = t.store.Stat(ctx, id)
	}
	return ForeignStudy{info.ID, info.Name}, err
}

// ForeignStudies returns the studies whose names begin with a prefix, in order of name.
func (t *Engine) ForeignStudies(ctx context.Context, prefix string) (studies []ForeignStudy, err error) {
	if err := t.serving(); err != nil {
		return nil, err
	}
	for info, err := range t.store.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(info.Name, prefix) {
			break
		}
		studies = append(studies, ForeignStudy{info.ID, info.Name})
	}
	return studies, nil
}

// Change calls f with the state of a study of another optimiser, and stores the changes
// that f returns. It returns when all that f saw is stored, too. f may be called again
// if its changes were not stored. The error is a [store.NotFoundError] if the name has
// become that of another study, and
// [ErrNotForeign] for any other kind of study.
func (t *Engine) Change(ctx context.Context, s ForeignStudy, f func(Foreign) ([]study.Foreign, error)) error {
	return t.with(ctx, s.Name, func(d *desk) error {
		if d.id != s.ID {
			return &store.NotFoundError{Study: s.ID}
		}
		return d.log.update(ctx, func(*live) error {
			v, err := d.log.current()
			if err != nil {
				return err
			}
			if v.foreign == nil {
				return ErrNotForeign
			}
			changes, err := f(v.foreign)
			if err != nil || len(changes) == 0 {
				return err
			}
			_, err = d.log.decide(ctx, study.Change{Changes: changes})
			return err
		})
	})
}

// ErrNotForeign refuses [Engine.Change] for a study that this service optimises.
var ErrNotForeign = errors.New("the study is not one of Optuna")

// DeleteForeign deletes a study of another optimiser.
func (t *Engine) DeleteForeign(ctx context.Context, s ForeignStudy) error {
	if err := t.serving(); err != nil {
		return err
	}
	if err := t.store.Delete(ctx, s.ID); err != nil {
		t.checkFatal(err)
		if errors.Is(err, store.ErrUnknownOutcome) {
			t.forgetName(s.Name) // it may be gone
		}
		return err
	}
	t.mu.Lock()
	delete(t.glances, s.ID)
	t.mu.Unlock()
	t.forgetName(s.Name)
	t.notices.changed(s.Name)
	return nil
}
