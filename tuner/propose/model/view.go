package model

import (
	"iter"

	"github.com/bkbtuner/bkb/tuner/study"
)

// View is what a proposer may see of a study. *[study.View] and *[study.Study]
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

// The phases of suggestions.
const (
	PhaseStart   = "start"   // fills the space without a model
	PhaseModel   = "model"   // upper confidence bound
	PhaseExploit = "exploit" // posterior mean
	PhaseExplore = "explore" // wide upper confidence bound
)
