package study

import (
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// TrialState is where a trial stands in its life.
type TrialState uint8

// The states of a trial. The zero TrialState is invalid.
const (
	Queued TrialState = iota + 1
	Running
	Completed
	Failed
	Infeasible
	Pruned
)

// String returns the state in lower case.
func (s TrialState) String() string {
	return named("TrialState", uint8(s), []string{Queued: "queued", Running: "running", Completed: "completed", Failed: "failed", Infeasible: "infeasible", Pruned: "pruned"})
}

// Terminal tells whether a trial in this state is over.
func (s TrialState) Terminal() bool { return s >= Completed && s <= Pruned }

// Trial is the life of one configuration. Fields of states that the trial has not
// reached are zero. Slices and maps are shared with the study, so do not change them.
type Trial struct {
	Number int // 0, 1, 2, … in order of creation within the study
	State  TrialState
	Config space.Config

	Origin     Origin
	Suggestion Suggestion // of a trial with OriginSuggested

	Epoch    int       // how often it was started, 0 if still queued or added
	Expiries int       // how often its lease expired
	Worker   string    // worker of the last lease, empty if unnamed
	Deadline time.Time // end of the last lease
	// Seen is the time of the last event in which the holder of the last lease started the
	// trial, extended the lease or reported.
	Seen time.Time

	Reports    []Report // of all epochs, in order of arrival
	Outcome    Outcome  // of a terminal trial
	ToldEpoch  int      // epoch of the tell of Outcome, 0 if Outcome was not told
	Late       []LateResult
	Attributes Attributes

	Created, Started, Ended time.Time

	lastStep int64    // largest step reported in the last epoch, −1 if none
	ended    Position // of the event that set Outcome, 0 if none
	holder   string   // caller that started the last lease, empty if unknown
}

// EndPosition returns the position of the event that set the trial's outcome, 0 if it
// has none. A late tell that replaces failed(expired) changes it.
func (t *Trial) EndPosition() Position { return t.ended }

// WithoutReports returns the trial without its reports.
func (t Trial) WithoutReports() Trial {
	t.Reports = nil
	return t
}

// Origin is the source of a trial's configuration.
type Origin uint8

// The origins. The zero Origin is invalid.
const (
	OriginSuggested Origin = iota + 1 // suggested by the study's proposer
	OriginEnqueued                    // enqueued by a user
	OriginAdded                       // run elsewhere and added by a user
)

// String returns the origin in lower case.
func (o Origin) String() string {
	return named("Origin", uint8(o), []string{OriginSuggested: "suggested", OriginEnqueued: "enqueued", OriginAdded: "added"})
}

// Suggestion is a configuration that a proposer made, with its prediction.
type Suggestion struct {
	Config space.Config
	Seed   uint64   // of the random numbers that made it
	Seen   Position // position up to which the proposer had read the log
	Phase  string
	// Mean and StdDev are the model's prediction for each objective, empty if the
	// proposer has no model.
	Mean, StdDev []float64
	// Bound is the optimistic confidence bound of each objective, in its unit. Beta is its
	// distance from the mean in standard deviations of the model. It is the quantity that an
	// upper confidence bound method maximises. Both are empty if the proposer has no model.
	Bound, Beta []float64
}

// The phases of suggestions.
const (
	PhaseStart    = "start"    // fills the space without a model
	PhaseModel    = "model"    // upper confidence bound
	PhaseExploit  = "exploit"  // posterior mean
	PhaseExplore  = "explore"  // expected improvement
	PhaseEvolve   = "evolve"   // sample of an evolution strategy
	PhaseRepeat   = "repeat"   // the best trial again, to learn whether outcomes have noise
	PhaseFallback = "fallback" // random, because the proposer failed or was late
)

// Report holds intermediate values of a running trial at one step. Epoch is the epoch
// of the lease under which they were reported.
type Report struct {
	Epoch  int
	Step   int64
	Values []NamedValue // sorted by name
}

// NamedValue is a number with its metric's name.
type NamedValue struct {
	Name  string
	Value float64
}

// LateResult is an outcome told under a lease after the trial was taken over.
type LateResult struct {
	Epoch   int
	Time    time.Time
	Outcome Outcome
}

// Late is a late result with its place in the log.
type Late struct {
	Trial    int
	Position Position // of its event
	LateResult
}

// CurrentReports returns the reports of the trial's last epoch in order of arrival.
func (t *Trial) CurrentReports() []Report {
	i := len(t.Reports)
	for i > 0 && t.Reports[i-1].Epoch == t.Epoch {
		i--
	}
	return t.Reports[i:]
}
