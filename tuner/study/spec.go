package study

import (
	"fmt"
	"math"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Spec is what a study is created with. It never changes afterwards.
type Spec struct {
	// Space is what can be tuned.
	Space *space.Space
	// Objectives are what the study optimises, at least one, names distinct.
	Objectives []Objective
	// MaxTrials ends the study when it has so many trials (added ones not
	// counted) and all of them are over. 0 means no limit.
	MaxTrials int
	// Timeout ends the study so long after its creation. 0 means no limit.
	Timeout time.Duration
	// MaxCost ends the study when the told costs, those of late results
	// included, sum up to it. 0 means no limit.
	MaxCost float64
	// Lease is how long a worker holds a trial without a sign of life unless
	// it asks for another time. 0 means [DefaultLease].
	Lease time.Duration
	// MaxRetries is how often a trial whose lease expired is handed out again
	// before it fails. 0 means that the first expiry is final.
	MaxRetries int
	// Seed is where the study's streams of random numbers begin.
	Seed uint64
	// Proposer and Pruner choose and configure what suggests and what stops
	// trials. An empty name means the service's default, or no pruner.
	Proposer, Pruner Component
	// Attributes are the user's own notes; they can be set later too.
	Attributes Attributes
}

// Component names a proposer or pruner and holds its options as a JSON object
// (or nothing), which this package does not interpret.
type Component struct {
	Name    string
	Options string
}

// Objective is one quantity to optimise.
type Objective struct {
	Name      string
	Direction Direction
}

// Direction tells which way an objective gets better.
type Direction uint8

// The directions. The zero Direction is invalid.
const (
	Minimize Direction = iota + 1
	Maximize
)

// String returns minimize or maximize.
func (d Direction) String() string {
	switch d {
	case Minimize:
		return "minimize"
	case Maximize:
		return "maximize"
	default:
		return fmt.Sprintf("Direction(%d)", uint8(d))
	}
}

// Compare orders two values of an objective, better first: negative if a is
// better than b. NaN is worse than everything, also than the infinity on the
// bad side, and equal to itself.
func (d Direction) Compare(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	case math.IsNaN(b):
		return -1
	case a == b:
		return 0
	case (a < b) == (d == Minimize):
		return -1
	default:
		return 1
	}
}

// goodInfinity tells whether x is the infinity that no measurement can reach.
func (d Direction) goodInfinity(x float64) bool {
	return d == Minimize && math.IsInf(x, -1) || d == Maximize && math.IsInf(x, 1)
}

// FinishReason tells why a study finished.
type FinishReason uint8

// The reasons. The zero FinishReason is invalid.
const (
	FinishedTrials    FinishReason = iota + 1 // MaxTrials handed out and over
	FinishedTime                              // Timeout reached
	FinishedCost                              // MaxCost reached
	FinishedGap                               // the proposer's optimality gap fell below its threshold
	FinishedExhausted                         // the proposer has tried everything there is
	FinishedUser                              // a person said so
)

// String returns the reason in the words of the documentation.
func (r FinishReason) String() string {
	switch r {
	case FinishedTrials:
		return "max trials"
	case FinishedTime:
		return "time"
	case FinishedCost:
		return "cost"
	case FinishedGap:
		return "gap"
	case FinishedExhausted:
		return "exhausted"
	case FinishedUser:
		return "user"
	default:
		return fmt.Sprintf("FinishReason(%d)", uint8(r))
	}
}

// Attributes are a user's own key-value notes.
type Attributes map[string]string
