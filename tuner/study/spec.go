package study

import (
	"fmt"
	"math"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Spec holds the settings of a study. It never changes after the creation.
type Spec struct {
	// Space is the search space.
	Space *space.Space
	// Objectives lists at least one objective, with distinct names.
	Objectives []Objective
	// MaxTrials ends the study when it has that many trials, without added ones, and
	// all of them are over. 0 means no limit.
	MaxTrials int
	// Timeout ends the study that long after its creation. 0 means no limit.
	Timeout time.Duration
	// MaxCost ends the study when the sum of the told costs, including those of late
	// results, reaches it. 0 means no limit.
	MaxCost float64
	// Lease is how long a worker holds a trial without a heartbeat, unless it asks for
	// another time. 0 means [DefaultLease].
	Lease time.Duration
	// MaxRetries is how often a trial whose lease expired is handed out again before it
	// fails. 0 means that it fails at the first expiry.
	MaxRetries int
	// Seed is the seed of the study's random numbers.
	Seed uint64
	// Proposer and Pruner name and configure the components that suggest and stop
	// trials. An empty name means the service's default, or no pruner.
	Proposer, Pruner Component
	// Attributes are the user's own notes. They can also be set later.
	Attributes Attributes
}

// Component names a proposer or pruner and holds its options as a JSON object or
// nothing. This package does not interpret the options.
type Component struct {
	Name    string
	Options string
}

// Objective is a quantity to optimise.
type Objective struct {
	Name      string
	Direction Direction
}

// Direction is the direction in which an objective improves.
type Direction uint8

// The directions. The zero Direction is invalid.
const (
	Minimize Direction = iota + 1
	Maximize
)

// String returns minimize or maximize.
func (d Direction) String() string {
	return named("Direction", uint8(d), []string{Minimize: "minimize", Maximize: "maximize"})
}

// Compare orders two values of an objective, better first. It is negative if a is
// better than b. NaN equals itself and is worse than any other value, including the
// infinity on the bad side.
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

// goodInfinity tells whether x is the infinity on the good side, which cannot be
// measured.
func (d Direction) goodInfinity(x float64) bool {
	return d == Minimize && math.IsInf(x, -1) || d == Maximize && math.IsInf(x, 1)
}

// FinishReason tells why a study finished.
type FinishReason uint8

// The reasons. The zero FinishReason is invalid.
const (
	FinishedTrials    FinishReason = iota + 1 // MaxTrials trials are over
	FinishedTime                              // Timeout reached
	FinishedCost                              // MaxCost reached
	FinishedGap                               // the optimality gap of the proposer fell below its threshold
	FinishedExhausted                         // the proposer has tried all configurations
	FinishedUser                              // ended by a user
)

// String returns the reason in lower case.
func (r FinishReason) String() string {
	return named("FinishReason", uint8(r), []string{FinishedTrials: "max trials", FinishedTime: "time", FinishedCost: "cost", FinishedGap: "gap", FinishedExhausted: "exhausted", FinishedUser: "user"})
}

// Attributes are a user's own key-value notes.
type Attributes map[string]string

// StopAttribute is the attribute that asks a running trial to stop. Its value is the reason.
// StopReason is a reason if there is no better one.
const (
	StopAttribute = "bkb.stop"
	StopReason    = "stopped by hand"
)

// named returns the i-th name of a type's constants, or the type with the number.
func named(typ string, i uint8, names []string) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}
