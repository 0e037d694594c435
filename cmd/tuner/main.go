// Tuner is the command line of BKB Tuner. Data goes to stdout and everything else to
// stderr. The exit codes are part of the interface (see exits).
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

	"github.com/bkbtuner/bkb/internal/simd"
)

func main() { os.Exit(program()) }

// program runs this process's command line.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	g := &globals{}
	root := newRoot(g)
	root.SetArgs(guardNegatives(root, args))
	root.SetIn(stdin)
	root.SetOut(cleanOnTerminal(stdout))
	root.SetErr(cleanOnTerminal(stderr))
	err := simd.Check()
	if err != nil {
		err = usageError{err}
	} else {
		var cmd *cobra.Command
		cmd, err = root.ExecuteContextC(ctx)
		err = nameFlag(cmd, err)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = &statusError{exitInterrupted, errors.New("interrupted")}
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintln(root.ErrOrStderr(), "tuner:", err)
	}
	return statusOf(err)
}

func newRoot(g *globals) *cobra.Command {
	version := new(bool)
	root := &cobra.Command{
		Use:   "tuner",
		Short: "Tune hyper-parameters with a budgeted kernel bandit",
		Long: `Tuner tunes hyper-parameters. It suggests configurations, records the results, and
models them to suggest better ones.`,
		Example:       "  tuner run --demo",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return g.setColor(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *version {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
				return err
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(showHelp)
	// Cobra's own flag needs a template, with which the linker keeps every method.
	root.Flags().BoolVar(version, "version", false, "version of this program")
	g.flags(root)
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Studies", []*cobra.Command{
			newCreateStudy(g), newStudies(g), newRun(g), newPause(g), newResume(g), newFinish(g), newDeleteStudy(g), newSpace(g),
		}},
		{"Trials", []*cobra.Command{
			newAsk(g), newTell(g), newReport(g), newHeartbeat(g), newEnqueue(g), newNote(g), newStop(g), newTrials(g), newBest(g), newWatch(g),
		}},
		{"Learners", []*cobra.Command{newAuto(g), newTrain(g), newPredict(g), newEvaluate(g), newLeverage(g)}},
		{"Server", []*cobra.Command{newServe(g), newUI(g), newKatib(g), newWorkers(g), newHealth(g), newToken(g)}},
		{"Data", []*cobra.Command{newExport(g), newImport(g), newBackup(g), newRestore(g), newCheck(g), newCompact(g), newCopy(g), newStore(g)}},
		{"Diagnose", []*cobra.Command{newDiagnose(g), newImportance(g), newExpect(g), newPlot(g), newReplay(g), newBench(g)}},
		{"Program", []*cobra.Command{newVersion(), newDevices(), newMan(), newCompletion()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	root.AddCommand(newTopics()...)
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID("Program")
	setConnections(root)
	g.complete(root)
	return root
}

// noArgs refuses arguments. For a command with subcommands they are unknown subcommands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
		return usagef("unknown command %q; did you mean %q?", args[0], suggestions[0])
	}
	return usagef("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// exactly accepts n arguments.
func exactly(n int) cobra.PositionalArgs {
	return between(n, n)
}

// between accepts low to high arguments. A negative high means any number.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		n := len(args)
		switch {
		case n >= low && (n <= high || high < 0):
			return nil
		case low == high:
			return usagef("%d arguments given, %d needed: %s", n, low, cmd.UseLine())
		case high < 0:
			return usagef("%d arguments given, %d or more needed: %s", n, low, cmd.UseLine())
		default:
			return usagef("%d arguments given, %d to %d needed: %s", n, low, high, cmd.UseLine())
		}
	}
}
