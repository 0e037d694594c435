package trials

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// RemarkEdges writes to stderr at which ends of ranges the recommended trials lie, and the
// remedy.
func RemarkEdges(g *cli.Globals, cmd *cobra.Command, spec study.Spec, best []study.Trial, remedy func([]space.Edge) string) {
	edges, lines := edgesOf(spec, best)
	for _, line := range lines {
		g.Note(cmd, "%s.", line)
	}
	if len(lines) > 0 {
		g.Note(cmd, "The optimum may lie beyond.")
		g.Note(cmd, "%s", remedy(edges))
	}
}

// wider returns a function that says how to continue a study in wider ranges.
func wider(view tuner.Study) func([]space.Edge) string {
	return func(edges []space.Edge) string {
		if !autotune.Is(view.Spec) {
			return fmt.Sprintf("To continue in a wider range, run\n\n  tuner create-study %s --from %s --space FILE\n", Successor(view.Name), view.Name)
		}
		words := []string{"To continue in a wider range, repeat tuner auto with --from", view.Name}
		for _, e := range edges {
			words = append(words, "--range", autotune.Wider(view.Spec, e))
		}
		return strings.Join(words, " ") + "."
	}
}

// edgesOf returns the ends of ranges at which some of the best trials lie, and a line of
// text for each.
func edgesOf(spec study.Spec, best []study.Trial) (edges []space.Edge, lines []string) {
	counts := map[string]int{}
	for _, t := range best {
		for _, e := range autotune.Edges(spec, t.Config) {
			if counts[e.String()]++; counts[e.String()] == 1 {
				edges = append(edges, e) // in the order of the trials
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

// Successor is the name of the study that continues another. It is a-2 after a, and a-3
// after a-2.
func Successor(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 1 && n < 1000 {
			return fmt.Sprintf("%s-%d", name[:i], n+1)
		}
	}
	return name + "-2"
}
