// Tuner is the command line of BKB Tuner. Data goes to stdout and everything else to
// stderr. The exit codes are part of the interface (see package cli).
//
// A package has the commands of a group of the help page: studies, trials, learners,
// server, data and diagnose. Package cli has what they share, and package record the trials
// of files. Package main puts them together.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/data"
	"github.com/bkbtuner/bkb/cmd/tuner/diagnose"
	"github.com/bkbtuner/bkb/cmd/tuner/learners"
	"github.com/bkbtuner/bkb/cmd/tuner/server"
	"github.com/bkbtuner/bkb/cmd/tuner/studies"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() { os.Exit(program()) }

func program() int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP) // a terminal that closes sends several
		stop()                        // a second Ctrl-C ends the process at once
	})
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	g := &cli.Globals{}
	root := newRoot(g)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		cli.EachFlag(root, func(_ *cobra.Command, f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }) // the marks of help
	}
	root.SetArgs(guardNegatives(root, args))
	root.SetIn(stdin)
	root.SetOut(cli.CleanOnTerminal(stdout))
	root.SetErr(cli.CleanOnTerminal(stderr))
	err := simd.Check()
	if err != nil {
		err = cli.Usage(err)
	} else {
		var cmd *cobra.Command
		cmd, err = root.ExecuteContextC(ctx)
		err = cli.NameFlag(cmd, err)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = cli.Exit(cli.ExitInterrupted, errors.New("interrupted"))
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintln(root.ErrOrStderr(), "tuner:", err)
	}
	return cli.StatusOf(err)
}

func newRoot(g *cli.Globals) *cobra.Command {
	version := new(bool)
	root := &cobra.Command{
		Use:   "tuner",
		Short: "Tune hyper-parameters with a budgeted kernel bandit",
		Long: `Tuner tunes hyper-parameters. It suggests configurations, records the results, and
models them to suggest better ones.`,
		Example:       "  tuner run --demo",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			g.SetColor(cmd)
			return g.Check(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *version {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), cli.VersionLine())
				return err
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(cli.ShowHelp)
	// Cobra's own flag needs a template, with which the linker keeps every method.
	root.Flags().BoolVar(version, "version", false, "version of this program")
	g.Flags(root)
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Studies", studies.Commands(g)},
		{"Trials", trials.Commands(g)},
		{"Learners", learners.Commands(g)},
		{"Server", server.Commands(g)},
		{"Data", data.Commands(g)},
		{"Diagnose", diagnose.Commands(g)},
		{"Program", []*cobra.Command{newVersion(), learners.NewDevices(), newMan()}},
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
	addCompletion(root)
	cli.Finish(root)
	return root
}

var negative = regexp.MustCompile(`^-(\.?[0-9]|(?i:inf(inity)?$))`)

// guardNegatives lets a negative number be an argument of tell. It becomes =-0.5, which
// is the value of the only objective, and which no flag parser takes for a flag.
func guardNegatives(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Name() != "tell" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		switch {
		case arg == "--":
			return args
		case negative.MatchString(arg) && (i == 0 || !takesValue(cmd, args[i-1])):
			args[i] = "=" + arg
		}
	}
	return args
}

// takesValue tells whether an argument is a flag whose value is the next one.
func takesValue(cmd *cobra.Command, arg string) bool {
	if !strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") {
		return false
	}
	var flag *pflag.Flag
	if name, long := strings.CutPrefix(arg, "--"); long {
		if flag = cmd.Flags().Lookup(name); flag == nil {
			flag = cmd.InheritedFlags().Lookup(name)
		}
	} else if len(arg) == 2 {
		if flag = cmd.Flags().ShorthandLookup(arg[1:]); flag == nil {
			flag = cmd.InheritedFlags().ShorthandLookup(arg[1:])
		}
	}
	return flag != nil && flag.NoOptDefVal == ""
}
