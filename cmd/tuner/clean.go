package main

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// clean makes stored text fit for a line on a terminal: no control, escape or
// bidirectional characters, line breaks as spaces.
func clean(s string) string {
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

// hostile characters play tricks on a terminal.
func hostile(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// strip leaves out hostile characters.
func strip(s string) string {
	return strings.Map(func(r rune) rune {
		if hostile(r) {
			return -1
		}
		return r
	}, s)
}

// short is clean text of at most n characters.
func short(s string, n int) string {
	r := []rune(clean(s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// isTerminal tells whether a stream is one.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// cleanOnTerminal returns w, or if w is a terminal a writer that lets no stored
// text play tricks on it.
func cleanOnTerminal(w io.Writer) io.Writer {
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

// terminalOf returns the terminal behind a stream of run, nil if it is none.
func terminalOf(w io.Writer) *os.File {
	if p, ok := w.(*painter); ok {
		w = p.Writer
	}
	if c, ok := w.(*cleanWriter); ok {
		return c.terminal
	}
	return nil
}
