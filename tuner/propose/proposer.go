package propose

import (
	"cmp"
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner/propose/acquire"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Proposer makes suggestions for one study. It is used by one goroutine at a time, and with
// Views of one history. Each View shows all trials of the one before. A caller that takes
// trials back because a commit failed makes a new Proposer.
type Proposer interface {
	// Propose makes n suggestions for the trials v.Trials(), v.Trials()+1, …. It makes
	// fewer, but at least one, if there are no more. They are valid in the study's space.
	// The errors are [ErrExhausted] and that of ctx.
	Propose(ctx context.Context, v View, n int) (Proposal, error)
}

// Modeler is a Proposer with a model, which changes only at events of the log.
type Modeler interface {
	Proposer
	// Anchor returns the model event that is due at v, if one is, a function of v only. It must be in
	// the log, at position Effective, before the proposer sees more of it.
	Anchor(ctx context.Context, v View) (a study.Anchor, due bool, err error)
	// Remake returns the model that event a should contain, where v is the study just before a.
	Remake(ctx context.Context, v View, a study.Anchored) (model []byte, err error)
	// Recommend reads v and returns a function that chooses the best trials without the Proposer. It
	// returns one trial for one objective, for several those that no other dominates, and none if
	// there is no model yet.
	Recommend(ctx context.Context, v View) (func() []int, error)
	// Freeze returns the model at v, without running trials. If there is none, m is nil, and the state
	// says why and how many results are missing.
	Freeze(ctx context.Context, v View) (m *Frozen, s surrogate.State, missing int, err error)
	// Forecast predicts the final value of the one objective of a running trial from its reports, if
	// the model can. Its Bound is width standard deviations better than its mean. It is a function of v
	// only.
	Forecast(ctx context.Context, v View, trial int, width float64) (f Forecast, ok bool, err error)
	// Listens reports whether the proposer reads reports. If not, there is never a forecast.
	Listens() bool
	// Diagnose describes the state of the model.
	Diagnose(ctx context.Context, v View) (surrogate.Diagnosis, error)
}

// WithAnchor returns v with one more event, a.
func WithAnchor(v View, a study.Anchor) View { return anchoredView{v, study.Anchored(a)} }

type anchoredView struct {
	View
	a study.Anchored
}

func (v anchoredView) Position() study.Position { return v.View.Position() + 1 }

func (v anchoredView) Anchor(p study.Position) (study.Anchored, bool) {
	if p >= v.a.Effective {
		return v.a, true
	}
	return v.View.Anchor(p)
}

// InducingPointsOf returns the number of inducing points of the first objective in a model
// event, and 0 if it cannot be read.
func InducingPointsOf(a study.Anchor) int {
	e, err := model.Decode(a.Model)
	if err != nil || len(e.Surfaces) == 0 {
		return 0
	}
	return len(e.Surfaces[0].Dictionary)
}

// The arguments and answers of proposers. The types belong to the packages that make them.
type (
	View     = model.View       // what a Proposer may see of a study
	Proposal = acquire.Proposal // what it answers
	Frozen   = model.Frozen     // a model that stays as it is
	Forecast = model.Forecast   // for one running trial
)

// ErrExhausted is returned when there is nothing left to suggest, now or later.
var ErrExhausted = acquire.ErrExhausted

// The names that [New] knows.
const (
	Sobol  = "sobol"
	Random = "random"
	Grid   = "grid"
	BKB    = "bkb"
)

// New returns the proposer that c names, with c's options, for a study with the given spec.
// It ignores spec.Proposer, so that it can also make a fallback. The spec must have a
// space. The error is a *[study.InvalidError].
func New(c study.Component, spec study.Spec) (Proposer, error) {
	switch c.Name {
	case "", Sobol, Random:
		if err := study.ReadOptions("proposer.options", c.Options).Finish(cmp.Or(c.Name, Sobol)); err != nil {
			return nil, err
		}
		if c.Name == Random {
			return &design{spec: spec}, nil
		}
		return newSobol(spec), nil
	case Grid:
		o, err := parseGridOptions(c.Options, spec.Space)
		if err != nil {
			return nil, err
		}
		return newGrid(spec, o)
	case BKB:
		o, err := parseBKBOptions(c.Options, spec)
		if err != nil {
			return nil, err
		}
		return newBKB(spec, o), nil
	default:
		return nil, &study.InvalidError{
			Field: "proposer.name", Value: fmt.Sprintf("%.60q", c.Name),
			Rule: "there is no such proposer", Remedy: "use bkb, sobol, random or grid",
		}
	}
}

// Names lists the proposers, with that of tuner create-study first.
func Names() []string { return []string{BKB, Sobol, Random, Grid} }

// Options lists the options of a proposer.
func Options(name string) []string {
	return study.KnownOptions(name, func(c study.Component, spec study.Spec) error {
		_, err := New(c, spec)
		return err
	})
}
