package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// remarkEdges writes to stderr at which ends of ranges the recommended trials lie, and the
// remedy.
func (g *globals) remarkEdges(cmd *cobra.Command, spec study.Spec, best []study.Trial, remedy func([]space.Edge) string) {
	edges, lines := edgesOf(spec, best)
	for _, line := range lines {
		g.note(cmd, "%s.", line)
	}
	if len(lines) > 0 {
		g.note(cmd, "The optimum may lie beyond.")
		g.note(cmd, "%s", remedy(edges))
	}
}

// wider returns a function that says how to continue a study in wider ranges.
func wider(view tuner.Study) func([]space.Edge) string {
	return func(edges []space.Edge) string {
		if !autotune.Is(view.Spec) {
			return fmt.Sprintf("To continue in a wider range, run\n\n  tuner create-study %s --from %s --space FILE\n", successor(view.Name), view.Name)
		}
		words := []string{"To continue in a wider range, repeat tuner auto with --from", view.Name}
		for _, e := range edges {
			words = append(words, "--range", autotune.Wider(view.Spec, e))
		}
		return strings.Join(words, " ") + "."
	}
}

// wider returns a function that says by which command to continue in wider ranges. It is
// the given command with the flags that hold for the new study too.
func (a *autoRun) wider(g *globals, cmd *cobra.Command, spec study.Spec) func([]space.Edge) string {
	return func(edges []space.Edge) string {
		words := []string{programName(), "auto", a.algorithm.Name}
		if a.demo { // these flags were not given
			words = append(words, "--data", shellQuote(a.data.paths[0]), "--target", "y", "--db", shellQuote(g.db))
		}
		cmd.Flags().Visit(func(f *pflag.Flag) {
			switch f.Name {
			case "demo", "from", "study", "range", "out", "log-dir", "png", "quiet", "verbose":
				return
			case "db":
				if a.demo {
					return
				}
			}
			words = append(words, flagWords(f)...)
		})
		words = append(words, "--from", a.study)
		ranges := map[string]string{}
		for _, e := range edges {
			ranges[e.Parameter] = autotune.Wider(spec, e)
		}
		for _, text := range a.ranges {
			if name, _, _ := strings.Cut(text, "="); ranges[name] == "" {
				ranges[name] = text
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ranges)) {
			words = append(words, "--range", ranges[name])
		}
		return "To continue in a wider range, run\n\n  " + foldCommand(strings.Join(words, " "), outputWidth(cmd.ErrOrStderr()))
	}
}

// flagWords are the shell words of a flag that was given.
func flagWords(f *pflag.Flag) []string {
	name := "--" + f.Name
	if f.Value.Type() == "bool" {
		return []string{name + "=" + f.Value.String()}
	}
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	var words []string
	for _, v := range values {
		words = append(words, name, shellQuote(v))
	}
	return words
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
