package main

import (
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// remarkEdges says on stderr at which ends of ranges the trials lie that are
// recommended, and what to do about it.
func (g *globals) remarkEdges(cmd *cobra.Command, view tuner.Study, best []study.Trial) {
	edges, lines := edgesOf(view.Spec, best)
	for _, line := range lines {
		g.note(cmd, "%s: the optimum may lie beyond it.", line)
	}
	switch {
	case len(lines) == 0:
	case autotune.Is(view.Spec):
		var wider strings.Builder
		for _, e := range edges {
			wider.WriteString(" --range " + autotune.Wider(view.Spec, e))
		}
		g.note(cmd, "tuner auto as before, but with --from %s%s, goes on in a wider range.", view.Name, wider.String())
	default:
		g.note(cmd, "A new study with a wider range takes these trials over: tuner create-study %s --from %s --space FILE.", successor(view.Name), view.Name)
	}
}

// edgesOf returns the ends of ranges at which some of the best trials lie, and says of
// each of which.
func edgesOf(spec study.Spec, best []study.Trial) (edges []space.Edge, lines []string) {
	counts := map[string]int{}
	for _, t := range best {
		for _, e := range autotune.Edges(spec, t.Config) {
			if counts[e.String()]++; counts[e.String()] == 1 {
				edges = append(edges, e) // in the order in which they turn up
			}
		}
	}
	for _, e := range edges {
		line := e.String()
		if len(best) > 1 {
			line += fmt.Sprintf(" in %d of the %d best trials", counts[line], len(best))
		}
		lines = append(lines, line)
	}
	return edges, lines
}
