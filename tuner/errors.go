package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Code is the kind of an error, within the process and over the network. Exit codes and
// gRPC codes follow from it.
type Code string

// The codes. Any other error is [Internal].
const (
	OK            Code = ""
	Invalid       Code = "INVALID"        // the request breaks a rule
	NotFound      Code = "NOT_FOUND"      // no such study or trial
	AlreadyExists Code = "ALREADY_EXISTS" // a study of this name exists
	Finished      Code = "FINISHED"       // the study hands out and accepts no more trials
	Paused        Code = "PAUSED"         // the study is paused and hands out no trials
	NoneLeft      Code = "NONE_LEFT"      // all trials are handed out, and some still run
	TrialState    Code = "TRIAL_STATE"    // the trial's state does not allow it
	LeaseLost     Code = "LEASE_LOST"     // another worker has the trial
	AlreadyTold   Code = "ALREADY_TOLD"   // the trial has ended with another outcome
	Denied        Code = "DENIED"         // the caller lacks permission
	Exhausted     Code = "EXHAUSTED"      // a limit was reached or the disk is full, and a retry may succeed later
	Unavailable   Code = "UNAVAILABLE"    // the service is closed or unreachable, and the call had no effect
	Unknown       Code = "UNKNOWN"        // the call may have had an effect, so send it again
	Cancelled     Code = "CANCELLED"      // the caller cancelled the call
	Deadline      Code = "DEADLINE"       // the caller's deadline passed
	Damaged       Code = "DAMAGED"        // stored data differ from those written
	Unsupported   Code = "UNSUPPORTED"    // this service or store cannot do it
	Internal      Code = "INTERNAL"       // a defect of this program
)

// RemoteError is an error from a service over the network.
type RemoteError struct {
	Code    Code
	Message string
	// Stored is the stored outcome that comes with AlreadyTold, or nil.
	Stored *study.Outcome
	// Final reports that a retry cannot succeed, for example because a certificate is not valid.
	Final bool
	// RetryAfter is the time until the next try, or 0 if it is not known.
	RetryAfter time.Duration
	// Faults are the fields of the request that come with Invalid.
	Faults []Fault
}

// Fault is a field of a request and the rule that it breaks.
type Fault struct{ Field, Rule string }

func (e *RemoteError) Error() string { return e.Message }

// ErrBusy refuses an ask because too many wait already. Its code is [Exhausted].
var ErrBusy = errors.New("too many asks wait for this study; retry later")

// ErrUnsupported is wrapped by errors of operations that a store or a proposer does not support.
var ErrUnsupported = errors.New("not supported")

// CodeOf classifies an error of a [Service].
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if remote := (*RemoteError)(nil); errors.As(err, &remote) {
		return remote.Code
	}
	for _, c := range []struct {
		code  Code
		match func(error) bool
	}{
		{Unknown, is(store.ErrUnknownOutcome)},
		{Exhausted, is(store.ErrFull)},
		{Exhausted, is(ErrBusy)},
		{Exhausted, as[*QuotaError]},
		{Exhausted, as[*MemoryError]},
		{Damaged, is(store.ErrDamaged)},
		{Denied, is(store.ErrReadOnly)},
		{Denied, as[*DeniedError]},
		{Unavailable, is(store.ErrClosed)},
		{Unavailable, is(store.ErrUnavailable)},
		{Unavailable, as[*store.ConflictError]},
		{Unavailable, as[*store.FencedError]},
		{Cancelled, is(context.Canceled)},
		{Deadline, is(context.DeadlineExceeded)},
		{Unsupported, is(ErrUnsupported)},
		{Finished, as[*study.FinishedError]},
		{Paused, is(study.ErrPaused)},
		{NoneLeft, as[*study.NoneLeftError]},
		{NoneLeft, as[*study.BudgetError]},
		{AlreadyTold, as[*study.AlreadyToldError]},
		{LeaseLost, as[*study.LeaseError]},
		{TrialState, as[*study.TrialStateError]},
		{NotFound, as[*study.TrialNotFoundError]},
		{NotFound, as[*store.NotFoundError]},
		{AlreadyExists, as[*store.ExistsError]},
		{AlreadyExists, is(study.ErrExists)},
		{Damaged, as[*store.CorruptError]},
		{Damaged, as[*store.NewerFormatError]},
		{Exhausted, as[*store.LimitError]},
		{Invalid, is(store.ErrInvalid)},
		{Invalid, as[*study.InvalidError]},
		{Invalid, as[*study.ReportConflictError]},
		{Invalid, as[*study.RequestReusedError]},
		{Invalid, as[*space.Error]},
	} {
		if c.match(err) {
			return c.code
		}
	}
	return Internal
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// MemoryError refuses work for which there is no room in memory. The call had no
// effect. Its code is [Exhausted].
type MemoryError struct{ Limit int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("memory is short, and the server may use %d bytes (tuner serve --max-memory). Retry later", e.Limit)
}

// RetryAfter returns how long to wait before a retry.
func (e *MemoryError) RetryAfter() time.Duration { return time.Second }

// QuotaError refuses a command that would make a study exceed its quota. The command
// had no effect. Its code is [Exhausted].
type QuotaError struct {
	What   string // bytes or reports
	Value  int64  // with the command
	Most   int64
	Option string // the flag of tuner serve
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the study would hold %d %s, and one study may hold %d (tuner serve %s); tell running trials as before; start a new study or raise the limit",
		e.Value, e.What, e.Most, e.Option)
}
