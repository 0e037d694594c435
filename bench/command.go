package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/internal/nearest"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The exit codes are those of tuner.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInterrupted = 130
)

// statusError ends the program with an exit code.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// usagef is a mistake in the command line.
func usagef(format string, args ...any) error {
	return &statusError{exitUsage, fmt.Errorf(format, args...)}
}

func notFoundf(format string, args ...any) error {
	return &statusError{exitNotFound, fmt.Errorf(format, args...)}
}

// statusOf is the exit code for an error.
func statusOf(err error) int {
	var status *statusError
	var value *experiment.ValueError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return status.status
	case errors.As(err, &value) && value.In == "bench":
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailure
}

// unknown is the error for a name that does not exist.
func unknown(what, name string, known []string, command string) error {
	if near := nearest.Name(name, known, max(2, len(name)/4)+1); near != "" {
		return notFoundf("there is no %s %q; did you mean %s?", what, name, near)
	}
	return notFoundf("there is no %s %q; list them with %s", what, name, command)
}

// console is what both commands write to.
type console struct {
	quiet  bool
	format string // table or json
}

func (c *console) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "no messages on stderr except errors")
	cmd.Flags().StringVarP(&c.format, "format", "f", "table", "output `format`, table or json")
}

// check refuses an unknown format.
func (c *console) check() error {
	if c.format != "table" && c.format != "json" {
		return usagef("--format %q: must be table or json", c.format)
	}
	return nil
}

// note writes a message to stderr, unless --quiet is given.
func (c *console) note(cmd *cobra.Command, format string, args ...any) {
	if !c.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
	}
}

func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// terminalOf returns the terminal behind a stream, or nil.
func terminalOf(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// widthOf is the number of columns of a stream. It is that of the terminal, else $COLUMNS,
// else 80.
func widthOf(w io.Writer) int {
	if f := terminalOf(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n >= 20 {
			return n
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 20 {
		return n
	}
	return 80
}

// version is the version of this module, with the commit if the build has it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}
