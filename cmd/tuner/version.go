package main

import (
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Version prints the version of the module, the commit if the build has it, the version of
Go, the system, and the vector instructions in use (avx512, avx2 or portable). A program that can use
GPUs adds gpu=cuda. The flag --version prints the same line.`,
		Example: "  tuner version",
		Args:    cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cli.VersionLine())
			return err
		},
	}
}
