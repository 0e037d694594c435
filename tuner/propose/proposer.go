package propose

import (
	"context"
	"errors"
	"fmt"
	"iter"

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
	// Suggested is the number of trials whose configuration the proposer made.
	Suggested() int
	// Trial returns trial n as it stands.
	Trial(n int) (t study.Trial, ok bool)
	// All yields the trials from number first on, in order.
	All(first int) iter.Seq[study.Trial]
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
	default:
		return nil, &study.InvalidError{
			Field: "proposer.name", Value: fmt.Sprintf("%.60q", c.Name),
			Rule: "there is no such proposer", Remedy: "use sobol, random or grid",
		}
	}
}

func noOptions(text, name string) error {
	o := study.ReadOptions("proposer.options", text)
	return o.Finish(name)
}
