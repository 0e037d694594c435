package propose

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Proposer makes suggestions for one study. It is used by one goroutine at a
// time, and with Views of one history: each shows all trials of the one before.
// Whoever takes trials back (because a commit failed) makes a new Proposer.
type Proposer interface {
	// Propose makes suggestions for the trials v.Trials(), v.Trials()+1, …: n of
	// them, or fewer (at least one) if there are no more. They are valid in the
	// study's space. The errors are [ErrExhausted] and that of ctx.
	Propose(ctx context.Context, v View, n int) (Proposal, error)
}

// Proposal is what a Proposer answers.
type Proposal struct {
	Suggestions []study.Suggestion
	// UsefulWorkers is how many trials are worth running at the same time; 0 means
	// that no limit is known, as for designs that do not look at results.
	UsefulWorkers int
	// Gap is how much better than the best the model thinks a configuration could
	// be at most, in the units of the one objective; 0 if it cannot say, as while
	// trials are pending.
	Gap float64
	// Warnings say what of the study's settings comes to nothing, and why.
	Warnings []string
	// Capped is the number of inducing points where there would be more but for the
	// proposer's cap, else 0.
	Capped int
	// Converged says that by the proposer's own rule there is nothing more worth
	// trying.
	Converged bool
}

// Anchorer is a Proposer whose model changes at events of the log only.
type Anchorer interface {
	Proposer
	// Anchor returns the model event that is due at v, if one is. It must be in
	// the log before the proposer sees more of it; its Effective is the position
	// it gets there. It is a function of v, and of nothing else.
	Anchor(ctx context.Context, v View) (a study.Anchor, due bool, err error)
	// Remake returns what the model of event a should be, where v is the study as
	// it was just before a.
	Remake(ctx context.Context, v View, a study.Anchored) (model []byte, err error)
}

// WithAnchor returns v as it will be with one more event, a.
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

// Recommender is a Proposer that can tell which trial is best.
type Recommender interface {
	// Recommend returns the trials to prefer: with one objective one, with several
	// those that no other dominates. None if there is no model yet.
	Recommend(ctx context.Context, v View) ([]int, error)
}

// Predictor is a Proposer with a model to ask.
type Predictor interface {
	// Predict returns mean and standard deviation of every objective at every
	// configuration, in the objective's units; ok is false if there is no model.
	Predict(ctx context.Context, v View, configs []space.Config) (p []Prediction, ok bool, err error)
}

// Prediction is of one configuration, for every objective.
type Prediction struct{ Mean, StdDev []float64 }

// Forecaster is a Proposer whose model foretells what running trials come to.
type Forecaster interface {
	// Forecast says what the one objective of a running trial will be, by what it
	// has reported; its Bound is width standard deviations better than its mean. ok
	// is false if the model cannot say. It is a function of v, and of nothing else.
	Forecast(ctx context.Context, v View, trial int, width float64) (f Forecast, ok bool, err error)
	// Listens tells whether reports are looked at; if not, there is no forecast ever.
	Listens() bool
}

// Forecast is about one running trial, in the objective's unit.
type Forecast struct {
	Mean, StdDev float64 // of its value at the end, without noise
	Bound        float64 // the optimistic one
	Incumbent    float64 // the mean at the best of the trials that have outcomes
}

// Diagnoser is a Proposer that can say how its model stands.
type Diagnoser interface {
	Diagnose(ctx context.Context, v View) (Diagnosis, error)
}

// Diagnosis is how a model stands. Without a model all is 0.
type Diagnosis struct {
	Results            int      // that the model has heard of, late ones included
	InducingPoints     int      // m
	Capped             bool     // there would be more but for the option cap
	EffectiveDimension float64  // d_eff, when inducing points were last chosen
	InformationGain    float64  // log det V
	Noise              float64  // standard deviation, in units of the objective's
	Beta, TheoryBeta   float64  // width of the confidence bounds used, and by theory
	Gap                float64  // see Proposal
	Warnings           []string // see Proposal
}

// View is what a Proposer may see of a study. *[study.View] and *[study.Study]
// are Views.
type View interface {
	// Spec is what the study was created with.
	Spec() study.Spec
	// Position is how much of the log is in the View.
	Position() study.Position
	// Trials is the number of trials, and the number that the next one will have.
	Trials() int
	// Cost is the sum of the told costs, those of late results included and those of
	// added trials not, as it counts towards the spec's MaxCost.
	Cost() float64
	// Suggested is the number of trials whose configuration the proposer made.
	Suggested() int
	// Trial returns trial n as it stands.
	Trial(n int) (t study.Trial, ok bool)
	// LateResults is the number of late results, and Late yields them from number
	// first on, in the order of the log.
	LateResults() int
	Late(first int) iter.Seq[study.Late]
	// All yields the trials from number first on, in order.
	All(first int) iter.Seq[study.Trial]
	// Anchor returns the model event in effect at a position up to that of the
	// View; ok is false if there is none.
	Anchor(p study.Position) (a study.Anchored, ok bool)
}

var (
	_ View = (*study.View)(nil)
	_ View = (*study.Study)(nil)
)

// PhaseStart is the phase of suggestions that fill the space without a model.
const PhaseStart = "start"

// ErrExhausted is returned when there is nothing left to suggest, now or later.
var ErrExhausted = errors.New("every configuration of the grid has been suggested")

// The names that [New] knows.
const (
	Sobol  = "sobol"
	Random = "random"
	Grid   = "grid"
	BKB    = "bkb"
)

// New returns the proposer that c names, with c's options, for a study with the
// given spec; spec.Proposer is ignored, so that a fallback can be made too. The
// spec must have a space. The error is a *[study.InvalidError].
func New(c study.Component, spec study.Spec) (Proposer, error) {
	switch c.Name {
	case "", Sobol:
		if err := noOptions(c.Options, Sobol); err != nil {
			return nil, err
		}
		return newSobol(spec), nil
	case Random:
		if err := noOptions(c.Options, Random); err != nil {
			return nil, err
		}
		return newRandom(spec), nil
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

func noOptions(text, name string) error {
	o := study.ReadOptions("proposer.options", text)
	return o.Finish(name)
}
