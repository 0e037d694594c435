package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Clean makes stored text safe for a line on a terminal. It removes control, escape and
// bidirectional characters, and makes line breaks spaces.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case hostile(r):
			return -1
		}
		return r
	}, s)
}

// hostile characters can forge output on a terminal.
func hostile(r rune) bool {
	return space.Hostile(r) && r != '\n' && r != '\t'
}

func strip(s string) string {
	return strings.Map(func(r rune) rune {
		if hostile(r) {
			return -1
		}
		return r
	}, s)
}

// Short is clean text of at most n characters.
func Short(s string, n int) string { return space.Head(Clean(s), n) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// stream is an output. On a terminal it strips hostile characters. Tables on one with colours
// write to the terminal itself, because their cells are clean.
type stream struct {
	io.Writer
	terminal *os.File // nil if it is none
	colors   bool
}

// CleanOnTerminal returns w, or a writer that strips hostile characters if w is a terminal.
func CleanOnTerminal(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &stream{Writer: w, terminal: w.(*os.File)}
}

func (s *stream) Write(p []byte) (int, error) {
	if s.terminal == nil {
		return s.Writer.Write(p)
	}
	if _, err := io.WriteString(s.terminal, strip(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// OutputWidth is the number of columns for prose on a stream. It is that of the terminal,
// else $COLUMNS, else 80.
func OutputWidth(w io.Writer) int { return cmp.Or(TableWidth(w), 80) }

// TableWidth is the number of columns for tables on a stream. It is that of the terminal,
// else $COLUMNS, else 0, for no limit.
func TableWidth(w io.Writer) int {
	const least = 20
	if f := TerminalOf(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n >= least {
			return n
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= least {
		return n
	}
	return 0
}

// TerminalOf returns the terminal behind a stream of run, or nil.
func TerminalOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *stream:
		return w.terminal
	case *os.File:
		if isTerminal(w) {
			return w
		}
	}
	return nil
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// Escape sequences.
const (
	plain   = "\x1b[0m"
	bold    = "\x1b[1m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	magenta = "\x1b[35m"
	cyan    = "\x1b[36m"
)

// SetColor lets the tables on stdout have colours. It follows --color, and for auto the
// terminal, NO_COLOR (no-color.org) and TERM.
func (g *Globals) SetColor(cmd *cobra.Command) {
	out := cmd.Root().OutOrStdout()
	terminal := TerminalOf(out)
	if useColor(g.color, terminal != nil, os.Getenv) {
		if terminal != nil {
			out = terminal
		}
		cmd.Root().SetOut(&stream{out, terminal, true})
	}
}

func useColor(mode string, terminal bool, env func(string) string) bool {
	return mode == colorAlways || mode == colorAuto && terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// StatusLine is a line on a terminal that shows progress. Elsewhere it shows nothing.
type StatusLine struct {
	terminal *os.File // nil if there is none
	drawn    time.Time
}

func NewStatusLine(g *Globals, cmd *cobra.Command) *StatusLine {
	s := &StatusLine{}
	if !g.Quiet {
		s.terminal = TerminalOf(cmd.ErrOrStderr())
	}
	return s
}

// Draw replaces the line. Unless it matters, it does so ten times a second at most.
func (s *StatusLine) Draw(matters bool, text func() string) {
	if s.terminal == nil || !matters && time.Since(s.drawn) < 100*time.Millisecond {
		return
	}
	s.drawn = time.Now()
	fmt.Fprintf(s.terminal, "\r\x1b[K%s", Short(Clean(text()), OutputWidth(s.terminal)-1))
}

// End removes the line.
func (s *StatusLine) End() {
	if s.terminal != nil {
		fmt.Fprint(s.terminal, "\r\x1b[K")
	}
}
