package study

import (
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
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
	switch s {
	case Queued:
		return "queued"
	case Running:
		return "running"
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case Infeasible:
		return "infeasible"
	case Pruned:
		return "pruned"
	default:
		return fmt.Sprintf("TrialState(%d)", uint8(s))
	}
}

// Terminal tells whether a trial in this state is over.
func (s TrialState) Terminal() bool { return s >= Completed && s <= Pruned }

// Trial is one configuration's life. The zero fields of a state that a trial
// has not reached are empty. Slices and maps inside are shared with the study:
// read them, do not change them.
type Trial struct {
	Number int // 0, 1, 2, … in order of creation within the study
	State  TrialState
	Config space.Config

	Origin     Origin
	Suggestion Suggestion // of a trial with OriginSuggested

	Epoch    int       // how often it was started; 0 for one still queued or added
	Expiries int       // how often its lease expired
	Worker   string    // holder of the last lease, empty for an unnamed one
	Holder   string    // caller that was given the last lease, empty if it is not known
	Deadline time.Time // of the last lease

	Reports    []Report // of all epochs, in order of arrival
	Outcome    Outcome  // of a terminal trial
	ToldEpoch  int      // the epoch that told Outcome; 0 if nobody did
	Late       []LateResult
	Attributes Attributes

	Created, Started, Ended time.Time

	lastStep int64    // the highest step reported in the last epoch; −1 if none
	ended    Position // of the event that gave the trial its outcome; 0 if it has none
}

// EndPosition is that of the event that gave the trial the outcome it has; 0 if
// it has none. A late tell that replaces failed(expired) moves it.
func (t *Trial) EndPosition() Position { return t.ended }

// WithoutReports returns the trial without its reports.
func (t Trial) WithoutReports() Trial {
	if !planted.Is(planted.ReportsCarried) {
		t.Reports = nil
	}
	return t
}

// Origin tells where a trial's configuration came from.
type Origin uint8

// The origins. The zero Origin is invalid.
const (
	OriginSuggested Origin = iota + 1 // by the study's proposer
	OriginEnqueued                    // by a user, to be run
	OriginAdded                       // by a user, already run elsewhere
)

// String returns the origin in lower case.
func (o Origin) String() string {
	switch o {
	case OriginSuggested:
		return "suggested"
	case OriginEnqueued:
		return "enqueued"
	case OriginAdded:
		return "added"
	default:
		return fmt.Sprintf("Origin(%d)", uint8(o))
	}
}

// Suggestion is a configuration that a proposer made, with what it thought.
type Suggestion struct {
	Config space.Config
	Seed   uint64   // of the stream of random numbers it was drawn with
	Seen   Position // how much of the log the proposer had seen
	Phase  string   // start, model, exploit, explore or fallback
	// Mean and StdDev are the model's prediction for each objective; empty
	// where the proposer has no model.
	Mean, StdDev []float64
	// Bound is the optimistic confidence bound of each objective, in its unit, and
	// Beta how many standard deviations of the model it is from the mean: what an
	// upper confidence bound maximises. Empty where the proposer has no model.
	Bound, Beta []float64
}

// Report holds intermediate values of a running trial at one step. Epoch is
// the lease they were reported under.
type Report struct {
	Epoch  int
	Step   int64
	Values []NamedValue // ordered by name
}

// NamedValue is one number with its metric's name.
type NamedValue struct {
	Name  string
	Value float64
}

// LateResult is an outcome told under a lease that had been taken over.
type LateResult struct {
	Epoch   int
	Time    time.Time
	Outcome Outcome
}

// Late is a late result with its place.
type Late struct {
	Trial    int
	Position Position // of the event that told it
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
