package learners

import (
	"maps"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wider returns a function that says by which command to continue in wider ranges. It is
// the given command with the flags that hold for the new study too.
func (a *autoRun) wider(g *cli.Globals, cmd *cobra.Command, spec study.Spec) func([]space.Edge) string {
	return func(edges []space.Edge) string {
		words := []string{cli.ProgramName(), "auto", a.algorithm.Name}
		if a.demo { // these flags were not given
			words = append(words, "--data", cli.ShellQuote(a.data.paths[0]), "--target", "y", "--db", cli.ShellQuote(g.Db))
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
		return "To continue in a wider range, run\n\n  " + cli.FoldCommand(strings.Join(words, " "), cli.OutputWidth(cmd.ErrOrStderr()))
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
		words = append(words, name, cli.ShellQuote(v))
	}
	return words
}
