package main

import (
	"fmt"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// remarkEdges says on stderr at which ends of ranges the trials lie that are
// recommended, and what to do about it.
func (g *globals) remarkEdges(cmd *cobra.Command, view tuner.Study, best []study.Trial) {
	lines := edgeLines(view, best)
	for _, line := range lines {
		g.note(cmd, "%s: the optimum may lie beyond it.", line)
	}
	if len(lines) > 0 {
		g.note(cmd, "A new study with a wider range takes these trials over: tuner create-study %s --from %s --space FILE.", successor(view.Name), view.Name)
	}
}

// edgeLines says of each end of a range which of the best trials lie there.
func edgeLines(view tuner.Study, best []study.Trial) []string {
	type end struct {
		parameter string
		upper     bool
	}
	var ends []end // in the order in which they turn up
	texts, counts := map[end]string{}, map[end]int{}
	for _, t := range best {
		for _, e := range view.Spec.Space.Edges(t.Config) {
			at := end{e.Parameter, e.Upper}
			if counts[at]++; counts[at] == 1 {
				ends, texts[at] = append(ends, at), e.String()
			}
		}
	}
	lines := make([]string, len(ends))
	for i, at := range ends {
		lines[i] = texts[at]
		if len(best) > 1 {
			lines[i] += fmt.Sprintf(" in %d of the %d best trials", counts[at], len(best))
		}
	}
	return lines
}
