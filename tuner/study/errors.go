package study

import (
	"errors"
	"fmt"
	"time"
)

// Errors without fields.
var (
	// ErrNotCreated is returned for any command but [Create] on the empty study.
	ErrNotCreated = errors.New("the study has not been created")
	// ErrExists is returned for a [Create] of a study that exists.
	ErrExists = errors.New("the study already exists")
	// ErrPaused is returned for an ask while the study is paused.
	ErrPaused = errors.New("the study is paused; resume it to ask for trials")
)

// InvalidError refuses a command whose content violates a rule.
type InvalidError struct {
	Field  string // name of the invalid field, such as "metrics.loss.stderr"
	Value  string // value of the field
	Rule   string // rule for the value
	Remedy string // how to fix it, may be empty
	// Known are the options that exist if the field is an unknown option.
	Known []string
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

// TrialNotFoundError is returned for a trial number that does not exist.
type TrialNotFoundError struct {
	Trial  int
	Trials int // number of trials, so valid numbers are 0 … Trials−1
}

func (e *TrialNotFoundError) Error() string {
	if e.Trials == 0 {
		return fmt.Sprintf("there is no trial %d: the study has no trials yet", e.Trial)
	}
	return fmt.Sprintf("there is no trial %d: the study has trials 0 to %d", e.Trial, e.Trials-1)
}

// FinishedError refuses to hand out or add trials after the study has finished.
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

// BudgetError refuses another trial because the study has reached its limit.
type BudgetError struct{ MaxTrials int }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the study takes no more than %d trials", e.MaxTrials)
}

// NoneLeftError refuses an ask because all trials of the study have been handed out,
// and some are still running.
type NoneLeftError struct {
	Trials  int
	Running int
	// NextExpiry is the earliest deadline, after which a trial may be handed out again.
	// It is zero if no running trial has retries left.
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

// LeaseError refuses a heartbeat or a report under a lease that has ended.
type LeaseError struct {
	Trial   int
	Epoch   int    // epoch of the lease
	Current int    // current epoch of the trial
	Worker  string // current holder of the trial, empty if there is none or it is unnamed
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
	Late   int // epoch of the stored late result, or 0 if Stored is the trial's outcome
}

func (e *AlreadyToldError) Error() string {
	if e.Late > 0 {
		return fmt.Sprintf("trial %d was handed out again and keeps the late result of epoch %d: %s", e.Trial, e.Late, e.Stored)
	}
	return fmt.Sprintf("trial %d is over and keeps its outcome: %s", e.Trial, e.Stored)
}

// ReportConflictError refuses an intermediate value that differs from the stored one of
// the same step.
type ReportConflictError struct {
	Trial  int
	Step   int64
	Metric string
	Stored float64
}

func (e *ReportConflictError) Error() string {
	return fmt.Sprintf("trial %d already has %s = %g at step %d; report each step once", e.Trial, e.Metric, e.Stored, e.Step)
}

// RequestReusedError refuses a request id that was used with other content, or by another caller.
type RequestReusedError struct {
	ID     string
	Others bool // by another caller
}

func (e *RequestReusedError) Error() string {
	return fmt.Sprintf("request_id = %q: %s", e.ID, e.Rule())
}

// Rule returns the rule and the remedy.
func (e *RequestReusedError) Rule() string {
	if e.Others {
		return "belongs to the token or certificate that used it first; use a new id, or send it with that one"
	}
	return "was used for another request; use a new id, or send the same content again"
}
