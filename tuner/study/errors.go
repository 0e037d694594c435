package study

import (
	"errors"
	"fmt"
	"time"
)

// Errors that carry no more than their message.
var (
	// ErrNotCreated is returned for any command but [Create] on the empty study.
	ErrNotCreated = errors.New("the study has not been created")
	// ErrExists is returned for a [Create] of a study that exists.
	ErrExists = errors.New("the study exists already")
	// ErrPaused is returned for an ask while the study is paused.
	ErrPaused = errors.New("the study is paused; resume it to ask for trials")
)

// InvalidError refuses a command whose content breaks a rule.
type InvalidError struct {
	Field  string // what was wrong: "metrics.loss.stderr"
	Value  string // what it was
	Rule   string // what it must be
	Remedy string // what to do; may be empty
}

func (e *InvalidError) Error() string {
	s := fmt.Sprintf("%s = %s: %s", e.Field, e.Value, e.Rule)
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func invalid(field string, value any, rule, remedy string) error {
	text := fmt.Sprintf("%v", value)
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%.60q", s)
	}
	return &InvalidError{Field: field, Value: text, Rule: rule, Remedy: remedy}
}

// TrialNotFoundError is returned for a trial number that the study has not given out.
type TrialNotFoundError struct {
	Trial  int
	Trials int // how many there are: valid numbers are 0 … Trials−1
}

func (e *TrialNotFoundError) Error() string {
	if e.Trials == 0 {
		return fmt.Sprintf("there is no trial %d: the study has no trials yet", e.Trial)
	}
	return fmt.Sprintf("there is no trial %d: the study has trials 0 to %d", e.Trial, e.Trials-1)
}

// FinishedError refuses to hand out or take in trials once the study is over.
type FinishedError struct {
	Reason FinishReason
	Detail string
}

func (e *FinishedError) Error() string {
	s := fmt.Sprintf("the study has finished (%s)", e.Reason)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// BudgetError refuses another trial: the study has all it takes.
type BudgetError struct{ MaxTrials int }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the study takes no more than %d trials", e.MaxTrials)
}

// NoneLeftError refuses an ask because all trials there are to be were handed
// out, though not all of them are over.
type NoneLeftError struct {
	Trials  int
	Running int
	// NextExpiry is when a trial may be there to be handed out again: the
	// earliest deadline. Zero if the study retries none of those that run.
	NextExpiry time.Time
}

func (e *NoneLeftError) Error() string {
	s := fmt.Sprintf("all %d trials of the study were handed out and %d of them still run", e.Trials, e.Running)
	if !e.NextExpiry.IsZero() {
		s += "; ask again after " + e.NextExpiry.Format(time.RFC3339) + ", when the next lease would expire"
	}
	return s
}

// TrialStateError refuses a command that the trial's state does not allow.
type TrialStateError struct {
	Trial  int
	State  TrialState
	Rule   string
	Remedy string
}

func (e *TrialStateError) Error() string {
	s := fmt.Sprintf("trial %d is %s: %s", e.Trial, e.State, e.Rule)
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// LeaseError refuses a sign of life or a report under a lease that is over.
type LeaseError struct {
	Trial   int
	Epoch   int    // the lease's
	Current int    // the trial's
	Worker  string // who holds the trial now; empty if nobody or an unnamed worker
}

func (e *LeaseError) Error() string {
	s := fmt.Sprintf("the lease on trial %d (epoch %d) expired and the trial was handed out again (epoch %d", e.Trial, e.Epoch, e.Current)
	if e.Worker != "" {
		s += ", to " + e.Worker
	}
	return s + "); stop working on it"
}

// AlreadyToldError refuses an outcome that differs from the stored one.
type AlreadyToldError struct {
	Trial  int
	Stored Outcome
	Late   int // the epoch of a late result that differs, else 0
}

func (e *AlreadyToldError) Error() string {
	if e.Late > 0 {
		return fmt.Sprintf("trial %d was handed out again, and keeps what was told late under epoch %d: %s", e.Trial, e.Late, e.Stored)
	}
	return fmt.Sprintf("trial %d is over and keeps its outcome: %s", e.Trial, e.Stored)
}

// ReportConflictError refuses an intermediate value that differs from the one
// stored for the same step.
type ReportConflictError struct {
	Trial  int
	Step   int64
	Metric string
	Stored float64
}

func (e *ReportConflictError) Error() string {
	return fmt.Sprintf("trial %d has %s = %g at step %d already; report each step once", e.Trial, e.Metric, e.Stored, e.Step)
}

// RequestReusedError refuses a request id that came with other content before.
type RequestReusedError struct{ ID string }

func (e *RequestReusedError) Error() string {
	return fmt.Sprintf("request id %q was used for another request; use a new id, or send the same content again", e.ID)
}
