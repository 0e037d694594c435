// Tuner is the command line of BKB Tuner. Data goes to stdout, everything else
// to stderr. What the exit statuses mean is part of the interface: see exits.
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
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us at once
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
		err = root.ExecuteContext(ctx)
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
	root := &cobra.Command{
		Use:   "tuner",
		Short: "Tune hyper-parameters with a budgeted kernel bandit",
		Long: `Tuner tunes hyper-parameters: it suggests configurations, takes in what came of
them, and forgets nothing. Data goes to stdout, everything else to stderr.

Commands work on a file (--db, tuner.db unless told otherwise) or on a server
(--server), in the same way. A file can be used by many processes: each has it
for a moment, the others wait, up to --lock-timeout.

ENVIRONMENT
  TUNER_DB      the file, for --db
  TUNER_SERVER  the server, for --server
  TUNER_TOKEN   the token for the server; or --token-file
  TUNER_TOKENS  a server's file of tokens, for --tokens
  TUNER_STUDY   the study where STUDY is left out
  NO_COLOR      no bold text; see --color
  BKB_SIMD      portable for arithmetic without vector instructions

` + exitHelp(),
		Example:       "  tuner auto --demo\n  tuner run --demo\n  tuner create-study digits --space space.yaml --minimize loss --max-trials 50\n  tuner run digits --parallel 4 -- python train.py --lr {lr}\n  tuner best digits",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return g.setColor(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, cmd.CommandPath())
	})
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	g.flags(root)
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Studies", []*cobra.Command{
			newCreateStudy(g), newStudies(g), newRun(g), newPause(g), newResume(g), newFinish(g), newDeleteStudy(g), newSpace(g),
		}},
		{"Trials", []*cobra.Command{
			newAsk(g), newTell(g), newReport(g), newHeartbeat(g), newEnqueue(g), newTrials(g), newBest(g), newWatch(g),
		}},
		{"Learners", []*cobra.Command{newAuto(g), newTrain(g), newPredict(g), newEvaluate(g), newLeverage(g)}},
		{"Server", []*cobra.Command{newServe(g), newHealth(g), newToken(g)}},
		{"Data", []*cobra.Command{newExport(g), newImport(g), newBackup(g), newRestore(g), newCheck(g), newCompact(g)}},
		{"Diagnose", []*cobra.Command{newDiagnose(g), newReplay(g), newBench(g), newVersion()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	root.AddCommand(newMan())
	g.complete(root)
	return root
}

// noArgs refuses arguments, which for a command with subcommands are unknown ones.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
		return usagef("unknown command %q; did you mean %q?", args[0], suggestions[0])
	}
	return usagef("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// exactly accepts n arguments, named in the usage line.
func exactly(n int) cobra.PositionalArgs {
	return between(n, n)
}

// between accepts low to high arguments; a negative high means any number.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		n := len(args)
		switch {
		case n >= low && (n <= high || high < 0):
			return nil
		case low == high:
			return usagef("%d arguments given, %d wanted: %s", n, low, cmd.UseLine())
		case high < 0:
			return usagef("%d arguments given, %d or more wanted: %s", n, low, cmd.UseLine())
		default:
			return usagef("%d arguments given, %d to %d wanted: %s", n, low, high, cmd.UseLine())
		}
	}
}
