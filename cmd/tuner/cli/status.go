package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

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
