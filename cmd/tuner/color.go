package main

import (
	"bytes"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

const (
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// setColor decides whether the tables on stdout use bold text.
func (g *globals) setColor(cmd *cobra.Command) error {
	out := cmd.Root().OutOrStdout()
	terminal := terminalOf(out)
	use, err := useColor(g.color, terminal != nil, os.Getenv)
	if err != nil || !use {
		return err
	}
	raw := out
	if terminal != nil {
		raw = terminal
	}
	cmd.Root().SetOut(&painter{out, raw})
	return nil
}

// useColor follows --color, and for auto the terminal, NO_COLOR (no-color.org) and TERM.
func useColor(mode string, terminal bool, env func(string) string) (bool, error) {
	switch mode {
	case colorAlways:
		return true, nil
	case colorNever:
		return false, nil
	case colorAuto:
		return terminal && env("NO_COLOR") == "" && env("TERM") != "dumb", nil
	}
	return false, usagef("--color %s: must be auto, always or never", mode)
}

// painter is an output that can show bold text.
type painter struct {
	io.Writer           // text, cleaned on a terminal
	raw       io.Writer // escape sequences
}

// boldLine writes the first line to a painter in bold.
type boldLine struct {
	to    *painter
	begun bool
	ended bool
}

// headed returns w for a table, whose first line is bold if w can show that.
func headed(w io.Writer) io.Writer {
	if p, ok := w.(*painter); ok {
		return &boldLine{to: p}
	}
	return w
}

// Write implements io.Writer.
func (b *boldLine) Write(text []byte) (int, error) {
	if b.ended {
		return b.to.Write(text)
	}
	if !b.begun {
		b.begun = true
		if _, err := io.WriteString(b.to.raw, bold); err != nil {
			return 0, err
		}
	}
	line, _, found := bytes.Cut(text, []byte("\n"))
	n, err := b.to.Write(line)
	if err != nil || !found {
		return n, err
	}
	b.ended = true
	if _, err := io.WriteString(b.to.raw, plain); err != nil {
		return n, err
	}
	more, err := b.to.Write(text[n:])
	return n + more, err
}
