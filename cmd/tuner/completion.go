package main

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

// shells are the shells with completion.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	var bare bool
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long: `Completion prints a script by which a shell completes commands, flags, studies, trials,
metrics and parameters. Load it in the file that your shell reads at its start. In bash
it needs the package bash-completion.

  bash        source <(tuner completion bash)
  zsh         autoload -U compinit; compinit; source <(tuner completion zsh)
  fish        tuner completion fish | source
  powershell  tuner completion powershell | Out-String | Invoke-Expression`,
		Example:   "  echo 'source <(tuner completion bash)' >> ~/.bashrc",
		Args:      cli.Exactly(1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, !bare)
			case "zsh":
				if bare {
					return root.GenZshCompletionNoDesc(out)
				}
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, !bare)
			case "powershell":
				if bare {
					return root.GenPowerShellCompletion(out)
				}
				return root.GenPowerShellCompletionWithDesc(out)
			default:
				return cli.OneOf("shell", args[0], shells...)
			}
		},
	}
	cmd.Flags().BoolVar(&bare, "no-descriptions", false, "completions without descriptions")
	return cmd
}
