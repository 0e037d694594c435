package study

import (
	"reflect"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Command is a request to a study, one of the types of this package that implement it.
// Most have an optional RequestID, see the package documentation.
type Command interface {
	decide(s *Study, now time.Time) (Reply, []Body, error)
}

// requestID returns the id of a command, or "".
func requestID(c Command) string {
	if s, ok := c.(Start); ok {
		c = s.Ask
	}
	id := reflect.ValueOf(c).FieldByName("RequestID")
	if !id.IsValid() {
		return ""
	}
	return id.String()
}

// Reply is the reply to a command.
type Reply struct {
	// Trials lists the trials that the command started, made or concerns, in order.
	// Epochs has the epoch of each at the time of the reply.
	Trials, Epochs []int
	// Missing says how many new suggestions an Ask needs besides Trials. The caller
	// lets the proposer make them and sends a [Start] for each.
	Missing int
	// Late says that a Tell was kept as a late result.
	Late bool
	// Replayed says that the reply is for an earlier command with the same request id.
	Replayed bool
}

func (r *Reply) hand(trial, epoch int) {
	r.Trials, r.Epochs = append(r.Trials, trial), append(r.Epochs, epoch)
}

func about(trial, epoch int) Reply {
	return Reply{Trials: []int{trial}, Epochs: []int{epoch}}
}

// Create begins a study. It is decided on the zero [Study].
type Create struct {
	RequestID string
	Spec      Spec
}

// Pause stops the study from handing out trials.
type Pause struct{ RequestID string }

// Resume ends a pause.
type Resume struct{ RequestID string }

// Finish ends the study. It refuses FinishedTrials and FinishedCost, which the study
// decides itself.
type Finish struct {
	RequestID string
	Reason    FinishReason
	Detail    string
}

// Extend raises limits of the study, those that are not 0, and continues it if it has
// finished. There must be room for trials then. A study whose configurations or whose
// optimality gap are exhausted stays finished.
type Extend struct {
	RequestID string
	MaxTrials int
	Timeout   time.Duration
	MaxCost   float64
	// More adds the values to the limits, or to the time and cost that are over them.
	// Otherwise they are the new limits.
	More bool
}

// Enqueue adds a configuration to the queue. Queued trials are handed out before new suggestions.
type Enqueue struct {
	RequestID  string
	Config     space.Config
	Attributes Attributes
}

// Add adds a finished trial that was run elsewhere. The trial does not count towards
// MaxTrials, nor its cost towards MaxCost.
type Add struct {
	RequestID  string
	Config     space.Config
	Reports    []Report // their Epoch is ignored
	Outcome    Outcome
	Attributes Attributes
}

// Ask requests Count trials to run. A named worker first gets the trials that it is
// already running, with renewed leases, unless New is set. Then come queued trials in
// order. Missing in the reply counts the rest.
type Ask struct {
	RequestID string
	Count     int // 1 … MaxCount
	Worker    string
	Lease     time.Duration // 0 means that of the study
	New       bool
}

// Start hands out a new suggestion for an Ask, as trial number Trial, which must be the next one.
type Start struct {
	Ask        Ask
	Trial      int
	Suggestion Suggestion
	// Answer is the number of trials in the whole answer to the Ask, which are those in
	// its reply and those that were missing. It is smaller if fewer could be proposed.
	// It is checked only if the Ask has a request id.
	Answer int
}

// Heartbeat renews the lease on a running trial and never shortens it. It has no
// request id, because repeating it does no harm.
type Heartbeat struct {
	Trial int
	Epoch int           // 0 means the current one
	Lease time.Duration // 0 means that of the study
}

// ReportValues adds intermediate values to a running trial. Reporting the same value
// again has no effect.
type ReportValues struct {
	RequestID string
	Trial     int
	Epoch     int      // 0 means the current one
	Reports   []Report // their Epoch is ignored, and values may be in any order
}

// Tell sets the outcome of a trial.
type Tell struct {
	RequestID string
	Trial     int
	Epoch     int // 0 means the current one
	Outcome   Outcome
	// Next, if not nil, is a command of its own, which a service decides after this one.
	Next *Ask
}

// Expire ends the lease of a running trial that has expired by the caller's clock. It
// has no effect if that lease is not the current one.
type Expire struct {
	Trial int
	Epoch int
}

// SetAttributes sets attributes of a trial, or of the study if Trial is [OfStudy]. An
// empty value removes its key.
type SetAttributes struct {
	RequestID  string
	Trial      int
	Attributes Attributes
}

// Anchor records a rebuild of the proposer's model.
type Anchor struct {
	Seen      Position
	Effective Position // larger than the position of this event
	Model     []byte
}
