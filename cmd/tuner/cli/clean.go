package cli

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

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
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// strip removes hostile characters.
func strip(s string) string {
	return strings.Map(func(r rune) rune {
		if hostile(r) {
			return -1
		}
		return r
	}, s)
}

// Short is clean text of at most n characters.
func Short(s string, n int) string {
	r := []rune(Clean(s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// isTerminal tells whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// CleanOnTerminal returns w, or a writer that strips hostile characters if w is a
// terminal.
func CleanOnTerminal(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &cleanWriter{w.(*os.File)}
}

type cleanWriter struct{ terminal *os.File }

func (w *cleanWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.terminal, strip(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// OutputWidth is the number of columns for text on a stream. It is that of the terminal,
// else $COLUMNS, else 80.
func OutputWidth(w io.Writer) int {
	const usual, least = 80, 20
	if f := TerminalOf(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n >= least {
			return n
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= least {
		return n
	}
	return usual
}

// TerminalOf returns the terminal behind a stream of run, or nil.
func TerminalOf(w io.Writer) *os.File {
	if p, ok := w.(*painter); ok {
		w = p.Writer
	}
	switch w := w.(type) {
	case *cleanWriter:
		return w.terminal
	case *os.File:
		if isTerminal(w) {
			return w
		}
	}
	return nil
}
