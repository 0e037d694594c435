package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/server"
)

// Exit codes that are used by name.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitInvalid     = 4
	ExitExists      = 5
	ExitDenied      = 6
	ExitDamaged     = 7
	ExitUnsupported = 8
	ExitStop        = runner.ExitStop
	ExitUnavailable = 20
	ExitBuried      = 75
	ExitInterrupted = 130
)

// exit is an exit code with its meaning. Codes are part of the interface, so a meaning
// never changes.
type exit struct {
	status int
	codes  []tuner.Code
	means  string
}

// exits is the table of exit codes for errors and help pages.
func exits() []exit {
	return []exit{
		{ExitOK, []tuner.Code{tuner.OK}, "success"},
		{ExitFailure, []tuner.Code{tuner.Internal}, "failure"},
		{ExitUsage, nil, "the command line is wrong"},
		{ExitNotFound, []tuner.Code{tuner.NotFound}, "no such file, study or trial, or no best trial yet"},
		{ExitInvalid, []tuner.Code{tuner.Invalid}, "the request or the data break a rule"},
		{ExitExists, []tuner.Code{tuner.AlreadyExists}, "a study of this name exists"},
		{ExitDenied, []tuner.Code{tuner.Denied}, "permission is missing"},
		{ExitDamaged, []tuner.Code{tuner.Damaged}, "stored data are damaged, or a replay differs"},
		{ExitUnsupported, []tuner.Code{tuner.Unsupported}, "this service, store, program or machine does not support it"},
		{10, []tuner.Code{tuner.Finished}, "the study has finished, so loops that ask end"},
		{11, []tuner.Code{tuner.NoneLeft}, "all trials are handed out and some still run, so ask later"},
		{12, []tuner.Code{tuner.Paused}, "the study is paused, so ask later"},
		{13, []tuner.Code{tuner.TrialState, tuner.LeaseLost, tuner.AlreadyTold}, "the trial is not running, is another worker's, or has an outcome"},
		{ExitStop, nil, "the trial should stop (report and heartbeat with --exit-code)"},
		{ExitUnavailable, []tuner.Code{tuner.Unavailable}, "no server answers, or the file or address is in use; nothing has changed"},
		{21, []tuner.Code{tuner.Unknown}, "the outcome is unknown, so repeat it with the same --request-id"},
		{22, []tuner.Code{tuner.Exhausted}, "a limit is reached or the disk is full, so retry later"},
		{23, []tuner.Code{tuner.Deadline}, "the time limit has passed"},
		{ExitBuried, nil, "other servers of the database took over, so start this one again (serve)"},
		{ExitInterrupted, []tuner.Code{tuner.Cancelled}, "interrupted"},
	}
}

// ExitHelp is the table of exit codes on their help page.
func ExitHelp() string {
	var b strings.Builder
	for _, e := range exits() {
		fmt.Fprintf(&b, "%5d  %s\n", e.status, e.means)
	}
	return strings.TrimRight(b.String(), "\n")
}

// usageError is a mistake in the command line itself.
type usageError struct{ error }

// Usage makes an error a mistake in the command line.
func Usage(err error) error { return usageError{err} }

func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the program with an exit code. Its error may be nil.
type statusError struct {
	status int
	err    error
}

// Exit is an error that ends the program with an exit code. err may be nil.
func Exit(status int, err error) error { return &statusError{status, err} }

func (e *statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// StatusOf is the exit code for an error.
func StatusOf(err error) int {
	var usage usageError
	var status *statusError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &status):
		return status.status
	case errors.Is(err, runner.ErrClaimed), errors.Is(err, server.ErrAddressInUse):
		return ExitUnavailable
	case errors.Is(err, runner.ErrFailures):
		return ExitFailure
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, fs.ErrNotExist):
		return ExitNotFound
	}
	code := tuner.CodeOf(err)
	for _, e := range exits() {
		for _, c := range e.codes {
			if c == code {
				return e.status
			}
		}
	}
	return ExitFailure
}
