package main

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
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInvalid     = 4
	exitDamaged     = 7
	exitUnsupported = 8
	exitStop        = runner.ExitStop
	exitUnavailable = 20
	exitBuried      = 75
	exitInterrupted = 130
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
		{exitOK, []tuner.Code{tuner.OK}, "success"},
		{exitFailure, []tuner.Code{tuner.Internal}, "failure"},
		{exitUsage, nil, "the command line is wrong"},
		{exitNotFound, []tuner.Code{tuner.NotFound}, "no such file, study or trial, or no best trial yet"},
		{exitInvalid, []tuner.Code{tuner.Invalid}, "the request or the data break a rule"},
		{5, []tuner.Code{tuner.AlreadyExists}, "a study of this name exists"},
		{6, []tuner.Code{tuner.Denied}, "permission is missing"},
		{exitDamaged, []tuner.Code{tuner.Damaged}, "stored data are damaged, or a replay differs"},
		{exitUnsupported, []tuner.Code{tuner.Unsupported}, "this service, store, program or machine does not support it"},
		{10, []tuner.Code{tuner.Finished}, "the study has finished, so loops that ask end"},
		{11, []tuner.Code{tuner.NoneLeft}, "all trials are handed out and some still run, so ask later"},
		{12, []tuner.Code{tuner.Paused}, "the study is paused, so ask later"},
		{13, []tuner.Code{tuner.TrialState, tuner.LeaseLost, tuner.AlreadyTold}, "the trial is not running, is another worker's, or has an outcome"},
		{exitStop, nil, "the trial should stop (report and heartbeat with --exit-code)"},
		{exitUnavailable, []tuner.Code{tuner.Unavailable}, "no server answers, or the file or address is in use; nothing has changed"},
		{21, []tuner.Code{tuner.Unknown}, "the outcome is unknown, so repeat it with the same --request-id"},
		{22, []tuner.Code{tuner.Exhausted}, "a limit is reached or the disk is full, so retry later"},
		{23, []tuner.Code{tuner.Deadline}, "the time limit has passed"},
		{exitBuried, nil, "other servers of the database took over, so start this one again (serve)"},
		{exitInterrupted, []tuner.Code{tuner.Cancelled}, "interrupted"},
	}
}

// exitHelp is the table of exit codes on their help page.
func exitHelp() string {
	var b strings.Builder
	for _, e := range exits() {
		fmt.Fprintf(&b, "%5d  %s\n", e.status, e.means)
	}
	return strings.TrimRight(b.String(), "\n")
}

// usageError is a mistake in the command line itself.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the program with an exit code. Its error may be nil.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// statusOf is the exit code for an error.
func statusOf(err error) int {
	var usage usageError
	var status *statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &status):
		return status.status
	case errors.Is(err, runner.ErrClaimed), errors.Is(err, server.ErrAddressInUse):
		return exitUnavailable
	case errors.Is(err, runner.ErrFailures):
		return exitFailure
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	code := tuner.CodeOf(err)
	for _, e := range exits() {
		for _, c := range e.codes {
			if c == code {
				return e.status
			}
		}
	}
	return exitFailure
}
