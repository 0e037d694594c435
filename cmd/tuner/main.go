// Tuner is the command line of BKB Tuner. Data goes to stdout, everything else
// to stderr.
//
// Exit status: 0 on success, 1 on failure, 2 on a mistake in the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// The exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake in the command line itself.
type usageError struct{ error }

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "tuner:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tuner",
		Short: "Tune hyper-parameters with a budgeted kernel bandit",
		Long: `Tuner tunes hyper-parameters: it suggests configurations, takes in what came of
them, and forgets nothing. Data goes to stdout, everything else to stderr.

EXIT STATUS
  0  success
  1  failure
  2  a mistake in the command line`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newSpace(), newVersion())
	return root
}

// noArgs refuses arguments, which for a command with subcommands are unknown ones.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
		return usageError{fmt.Errorf("unknown command %q; did you mean %q?", args[0], suggestions[0])}
	}
	return usageError{fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())}
}

// exactly accepts n arguments, named in the usage line.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usageError{fmt.Errorf("%d arguments given, %d wanted: %s", len(args), n, cmd.UseLine())}
	}
}
