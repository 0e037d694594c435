package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner"
)

// The exit statuses that are not the codes' of package tuner.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInvalid     = 4
	exitDamaged     = 7
	exitStop        = runner.ExitStop
	exitUnavailable = 20
	exitInterrupted = 130
)

// exit is an exit status with what it means. Statuses are part of the interface:
// none ever changes its meaning.
type exit struct {
	status int
	codes  []tuner.Code
	means  string
}

// exits is the one table that errors, --help and docs/cli.md go by.
func exits() []exit {
	return []exit{
		{exitOK, []tuner.Code{tuner.OK}, "success"},
		{exitFailure, []tuner.Code{tuner.Internal}, "failure"},
		{exitUsage, nil, "a mistake in the command line"},
		{exitNotFound, []tuner.Code{tuner.NotFound}, "no such file, study or trial, or no best trial yet"},
		{exitInvalid, []tuner.Code{tuner.Invalid}, "the request or the data break a rule; the message says which"},
		{5, []tuner.Code{tuner.AlreadyExists}, "a study of this name exists"},
		{6, []tuner.Code{tuner.Denied}, "no or not enough permission"},
		{exitDamaged, []tuner.Code{tuner.Damaged}, "stored data are not what was written, or do not recompute"},
		{8, []tuner.Code{tuner.Unsupported}, "this service or store cannot do it"},
		{10, []tuner.Code{tuner.Finished}, "the study has finished: loops that ask end here"},
		{11, []tuner.Code{tuner.NoneLeft}, "all trials are handed out and some still run: ask later"},
		{12, []tuner.Code{tuner.Paused}, "the study is paused: ask later"},
		{13, []tuner.Code{tuner.TrialState, tuner.LeaseLost, tuner.AlreadyTold}, "the trial is not running, is another worker's, or has another outcome"},
		{exitStop, nil, "the trial should stop (report and heartbeat with --exit-code)"},
		{exitUnavailable, []tuner.Code{tuner.Unavailable}, "cannot be reached, or the file is in use; nothing happened"},
		{21, []tuner.Code{tuner.Unknown}, "it may have happened or not; send it again with the same --request-id"},
		{22, []tuner.Code{tuner.Exhausted}, "a limit, or the disk is full; later may do"},
		{23, []tuner.Code{tuner.Deadline}, "time was up"},
		{exitInterrupted, []tuner.Code{tuner.Cancelled}, "interrupted"},
	}
}

// exitHelp is the section of the help on exit statuses.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("EXIT STATUS\n")
	for _, e := range exits() {
		fmt.Fprintf(&b, "%5d  %s\n", e.status, e.means)
	}
	return b.String()
}

// usageError is a mistake in the command line itself.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the program with a status; its error may be nil.
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

// statusOf is the exit status for an error.
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
	case errors.Is(err, runner.ErrClaimed):
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
