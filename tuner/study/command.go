package study

import (
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Command is something that somebody wants from a study; exactly one of the
// types of this package that implement it. RequestID, in each of them, is
// optional; see the package documentation.
type Command interface {
	decide(s *Study, now time.Time) (Reply, []Body, error)
}

// identified is a command that may carry a request id.
type identified interface {
	requestID() string
	digest(*digest)
}

// Reply answers a command.
type Reply struct {
	// Trials that the command started, made or concerns, in order, and the epoch
	// that each of them had by it.
	Trials, Epochs []int
	// Missing says how many new suggestions an Ask wants besides Trials: the
	// caller has them proposed and sends a [Start] for each.
	Missing int
	// Late says that a Tell was kept as a late result.
	Late bool
	// Replayed says that this answers an earlier send of the same request.
	Replayed bool
}

// hand adds a trial to the answer.
func (r *Reply) hand(trial, epoch int) {
	r.Trials, r.Epochs = append(r.Trials, trial), append(r.Epochs, epoch)
}

// about is the reply that concerns one trial.
func about(trial, epoch int) Reply {
	return Reply{Trials: []int{trial}, Epochs: []int{epoch}}
}

// Create begins a study; it is decided on the zero [Study].
type Create struct {
	RequestID string
	Spec      Spec
}

// Pause stops the study from handing out trials.
type Pause struct{ RequestID string }

// Resume ends a pause.
type Resume struct{ RequestID string }

// Finish ends the study. FinishedTrials and FinishedCost are the study's own to
// decide and refused here.
type Finish struct {
	RequestID string
	Reason    FinishReason
	Detail    string
}

// Enqueue puts a configuration in the queue, to be handed out before new
// suggestions.
type Enqueue struct {
	RequestID  string
	Config     space.Config
	Attributes Attributes
}

// Add takes in a finished trial that was run elsewhere. It does not count
// towards MaxTrials, nor its cost towards MaxCost.
type Add struct {
	RequestID  string
	Config     space.Config
	Reports    []Report // their Epoch is ignored
	Outcome    Outcome
	Attributes Attributes
}

// Ask wants Count trials to run. A named worker first gets back the trials it
// is already running (their leases renewed), unless New; then come queued
// trials in order; for the rest the reply says how many are Missing.
type Ask struct {
	RequestID string
	Count     int // 1 … MaxCount
	Worker    string
	Lease     time.Duration // 0 for the study's
	New       bool
}

// Start hands out a new suggestion in answer to Ask, as trial number Trial,
// which must be the next one.
type Start struct {
	Ask        Ask
	Trial      int
	Suggestion Suggestion
	// Answer is how many trials the answer to Ask has in all: those of the
	// reply to it and those that were missing, unless fewer could be proposed. It
	// matters, and is checked, if Ask has a request id.
	Answer int
}

// Heartbeat renews the lease on a running trial. It never shortens one. Sent
// twice it does no harm, so it carries no request id.
type Heartbeat struct {
	Trial int
	Epoch int           // 0 for the current one
	Lease time.Duration // 0 for the study's
}

// ReportValues adds intermediate values to a running trial. A value reported
// again is fine if it is the same.
type ReportValues struct {
	RequestID string
	Trial     int
	Epoch     int      // 0 for the current one
	Reports   []Report // their Epoch is ignored; values in any order
}

// Tell gives a trial its outcome.
type Tell struct {
	RequestID string
	Trial     int
	Epoch     int // 0 for the current one
	Outcome   Outcome
}

// Expire ends the lease of a running trial: the caller's clock says that it is
// over. It does nothing if that lease is not the current one.
type Expire struct {
	Trial int
	Epoch int
}

// SetAttributes sets attributes of a trial, or of the study if Trial is
// [OfStudy]. A key given an empty value is removed.
type SetAttributes struct {
	RequestID  string
	Trial      int
	Attributes Attributes
}

// Anchor records a rebuild of the proposer's model.
type Anchor struct {
	Seen      Position
	Effective Position // after the position that this event will have
	Model     []byte
}

func (c Create) requestID() string        { return c.RequestID }
func (c Pause) requestID() string         { return c.RequestID }
func (c Resume) requestID() string        { return c.RequestID }
func (c Finish) requestID() string        { return c.RequestID }
func (c Enqueue) requestID() string       { return c.RequestID }
func (c Add) requestID() string           { return c.RequestID }
func (c Ask) requestID() string           { return c.RequestID }
func (c Start) requestID() string         { return c.Ask.RequestID }
func (c ReportValues) requestID() string  { return c.RequestID }
func (c Tell) requestID() string          { return c.RequestID }
func (c SetAttributes) requestID() string { return c.RequestID }
