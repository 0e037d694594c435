package learners

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/spf13/cobra"
)

func algorithms(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
	for _, a := range training.Algorithms() {
		out = append(out, cobra.CompletionWithDesc(a.Name, a.Summary))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
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
	var names, values []string
	if len(args) > 0 {
		a, _ := training.Find(args[0])
		for _, p := range a.Parameters {
			names = append(names, p.Name)
			for _, choice := range p.Choices {
				values = append(values, p.Name+"="+choice)
			}
		}
	}
	return cli.Assignments(names, values, nil, toComplete)
}
