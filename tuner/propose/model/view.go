package model

import (
	"iter"

	"github.com/bkbtuner/bkb/tuner/study"
)

// View is the part of a study that a proposer may read. *[study.View] and *[study.Study]
// are Views.
type View interface {
	// Spec returns the spec that the study was created with.
	Spec() study.Spec
	// Position returns how much of the log is in the View.
	Position() study.Position
	// Trials returns the number of trials, which is also the number of the next one.
	Trials() int
	// Cost returns the sum of the told costs that counts towards the spec's MaxCost. It
	// includes those of late results and excludes those of added trials.
	Cost() float64
	// Trial returns trial n as it stands.
	Trial(n int) (t study.Trial, ok bool)
	// LateResults is the number of late results, and Late yields them from number
	// first on, in the order of the log.
	LateResults() int
	Late(first int) iter.Seq[study.Late]
	// All yields the trials from number first on, in order.
	All(first int) iter.Seq[study.Trial]
	// Anchor returns the model event in effect at a position up to that of the View. If
	// there is none, ok is false.
	Anchor(p study.Position) (a study.Anchored, ok bool)
}

var (
	_ View = (*study.View)(nil)
	_ View = (*study.Study)(nil)
)
