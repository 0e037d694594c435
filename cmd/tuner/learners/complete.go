package learners

import (
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/spf13/cobra"
)

func algorithms(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, a := range training.Algorithms() {
		out = append(out, cobra.CompletionWithDesc(a.Name, a.Summary))
	}
	return cli.Beginning(out, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// kernelNames are the kernels of the learners.
func kernelNames() []string {
	for _, p := range training.Algorithms()[0].Parameters {
		if p.Name == "kernel" {
			return p.Choices
		}
	}
	return nil
}

// hyperParameters completes the hyper-parameters of the algorithm that args name, as
// lambda=, and the values of choices, as kernel=gaussian.
func hyperParameters(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return cli.Nothing()
	}
	a, err := training.Find(args[0])
	if err != nil {
		return cli.Nothing()
	}
	var names, values []string
	for _, p := range a.Parameters {
		names = append(names, p.Name)
		for _, choice := range p.Choices {
			values = append(values, p.Name+"="+choice)
		}
	}
	if strings.Contains(toComplete, "=") {
		return cli.Beginning(values, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	return cli.Assignments(names, nil, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
