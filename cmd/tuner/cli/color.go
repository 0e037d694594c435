package cli

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

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
	if !useColor(g.color, terminal != nil, os.Getenv) {
		return
	}
	raw := out
	if terminal != nil {
		raw = terminal
	}
	cmd.Root().SetOut(&painter{out, raw})
}

func useColor(mode string, terminal bool, env func(string) string) bool {
	return mode == colorAlways || mode == colorAuto && terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// painter is an output that shows colours.
type painter struct {
	io.Writer           // text, cleaned on a terminal
	raw       io.Writer // escape sequences
}

// paint writes the text before, and then a coloured text.
func (p *painter) paint(before *strings.Builder, escape, text string) error {
	for _, w := range []struct {
		to   io.Writer
		text string
	}{{p.Writer, before.String()}, {p.raw, escape}, {p.Writer, text}, {p.raw, plain}} {
		if _, err := io.WriteString(w.to, w.text); err != nil {
			return err
		}
	}
	before.Reset()
	return nil
}
