package studies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newRun(g *cli.Globals) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:               "run STUDY [flags] -- COMMAND [ARG…]",
		Short:             "Run a command as the trials of a study",
		ValidArgsFunction: cli.Args(g.Studies, g.Placeholders),
		Long: `Run runs a command for each trial of a study until it has finished. It creates
a missing study with --space, and larger limits raise its own.

In the command {lr} is the parameter lr, {args} are all of them, and {trial} is the number.
It prints loss=0.31 on stdout. See tuner help commands for all that it may do.

Ctrl-C, SIGTERM and SIGHUP end the run and its commands, and a second Ctrl-C does not
wait for --grace. The same command line continues later with the trials that were running.`,
		Example: `  tuner run --demo
  tuner run digits --parallel 4 -- python train.py --lr {lr} --batch {batch}
  tuner run digits --space space.yaml --minimize loss --max-trials 50 \
    -- ./train {args}`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cli.OutliveReaders(cmd)
			if err := r.checkNumbers(); err != nil {
				return err
			}
			if r.demo {
				return runDemo(g, cmd, args, &r)
			}
			var err error
			if r.options.Study, r.options.Command, err = ParseCommand(g, cmd, args); err != nil {
				return err
			}
			r.options.Lease = r.spec.Lease
			if cmd.Flags().Changed("retry-for") {
				r.options.RetryFor = max(g.RetryFor, 1)
			}
			return g.With(cmd, cli.Existing(r.spec.space == ""), func(ctx context.Context, svc tuner.Service) error {
				if err := r.ensure(ctx, g, cmd, svc); err != nil {
					return err
				}
				return r.run(ctx, g, cmd, svc)
			})
		},
	}
	r.flags(g, cmd)
	return cmd
}

// NewCommandsTopic is the help page about the commands of trials.
func NewCommandsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "commands",
		Short: "Commands of trials: placeholders, output, exit codes",
		Long: `The command of tuner run gets the configuration from its arguments or its environment,
and prints the result.

Placeholders:
  {lr}       value of the parameter lr; {{ and }} are braces
  {args}     all parameters as --name=value
  {trial}    number of the trial; also {epoch} and {study}

An argument with an inactive parameter is left out, and the option before it too. The
environment has TUNER_PARAM_LR and so on, TUNER_CONFIG, TUNER_TRIAL, TUNER_EPOCH and
TUNER_LEASE. Run sends the heartbeats.

Lines on stdout, or in the file of --result, which may have placeholders:
  loss=0.31 accuracy=0.9     the result, or {"loss": 0.31}; the last line counts
  step=3 loss=0.51           an intermediate value, for a pruner
  infeasible=REASON          the configuration cannot work

Exit code 66 means infeasible too, and 14 that the command was told to stop (pruned). Any
other but 0 is a failure, with the last line of stderr as its message. The children of a
command end with it.`,
		Example: "  tuner run digits -- python train.py --lr {lr} --batch {batch}",
	}
}

type running struct {
	options runner.Options
	spec    specFlags
	form    *string
	demo    bool
	claim   *runner.Claim
}

func (r *running) flags(g *cli.Globals, cmd *cobra.Command) {
	o := &r.options
	cli.FlagGroup(cmd, cli.Group{Title: "Trials"}, func(fs *pflag.FlagSet) {
		fs.IntVarP(&o.Parallel, "parallel", "j", 1, "number of trials at a time")
		fs.IntVar(&o.Limit, "limit", 0, "number of trials of this run")
		fs.IntVar(&o.MaxFailures, "max-failures", 10, "crashes in a row that end the run")
		fs.DurationVar(&o.Timeout, "trial-timeout", 0, "longest time of a trial")
		fs.DurationVar(&o.Grace, "grace", runner.DefaultGrace, "time between SIGTERM and SIGKILL")
		fs.StringVar(&o.CostMetric, "cost", "", "`metric` with the cost of a trial, or seconds")
		fs.StringVar(&o.Result, "result", "", "`file` with the result (default stdout)")
	})
	cli.FlagGroup(cmd, cli.Group{Title: "Run"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&o.LogDir, "log-dir", "", "`directory` of logs (default STUDY.logs)")
		fs.Int64Var(&o.MaxLog, "max-log", runner.DefaultMaxLog, "bytes of a trial's log")
		fs.StringVar(&o.Worker, "worker", "", "`name` of the workers (default in --log-dir)")
		g.ProposeFlag(fs)
		fs.BoolVar(&r.demo, "demo", false, "small built-in example instead of a command")
	})
	r.form = cli.FormatFlag(cmd, "table", "json", "yaml", "args", "none")
	cmd.Flag("format").Usage = "`format` of the best trial, table, json, yaml, args, none"
	cli.Assign(cmd.Flag("format"), cli.Group{Title: "Run"})
	r.spec.add(cmd)
	cmd.Flag("lease").Usage = "longest time without a heartbeat (default 5m, or the study's if it is not 1h)"
	cli.Register(cmd, "cost", cli.Words(runner.CostSeconds))
	cli.Register(cmd, "log-dir", cli.Folders)
}

// ParseCommand takes the study and the command of its trials from the arguments.
func ParseCommand(g *cli.Globals, cmd *cobra.Command, args []string) (study string, command []string, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		or := ""
		if cmd.Flag("demo") != nil {
			or = ", or try tuner run --demo"
		}
		return "", nil, cli.Usagef("there is no --; write %s STUDY -- COMMAND%s", cmd.CommandPath(), or)
	}
	if dash > 1 {
		return "", nil, cli.Usagef("%q is one argument too many before the --; write %s STUDY -- COMMAND", args[1], cmd.CommandPath())
	}
	if study, err = cli.StudyName(args[:dash]); err != nil {
		return "", nil, g.WithStudy(cmd, nil, nil) // which says what studies there are
	}
	if command = args[dash:]; len(command) == 0 {
		return "", nil, cli.Usagef("there is no command after the --")
	}
	return study, command, nil
}

func (r *running) checkNumbers() error {
	switch o := r.options; {
	case o.Parallel < 1:
		return cli.Usagef("--parallel %d: must be at least 1", o.Parallel)
	case o.Limit < 0:
		return cli.Usagef("--limit %d: must be at least 1, or 0 for no limit", o.Limit)
	case o.MaxLog < 0:
		return cli.Usagef("--max-log %d: must be at least 1, or 0 for no limit", o.MaxLog)
	case o.MaxFailures < 0:
		return cli.Usagef("--max-failures %d: must be at least 1, or 0 for no limit", o.MaxFailures)
	}
	return nil
}

// ensure creates the study if it is missing and the flags describe one. An existing
// study must agree with the flags.
func (r *running) ensure(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service) error {
	name := r.options.Study
	view, err := svc.Study(ctx, name)
	if tuner.CodeOf(err) == tuner.NotFound && r.spec.space != "" {
		spec := NewSpec()
		if err := r.spec.apply(g, cmd, &spec); err != nil {
			return err
		}
		r.options.Limited = propose.ConstrainedMetrics(spec.Proposer)
		if err := r.options.Check(spec); err != nil {
			return err
		}
		if err := r.claimLogs(g, cmd); err != nil {
			return err
		}
		if _, err := svc.CreateStudy(ctx, name, study.Create{Spec: spec}); err != nil {
			return err
		}
		g.Note(cmd, "Created study %s.", name)
		return nil
	}
	if tuner.CodeOf(err) == tuner.NotFound {
		return cli.Explain(ctx, svc, name, err)
	}
	if err != nil {
		return err
	}
	more := study.Extend{}
	err = r.spec.agree(g, cmd, view, func(want *study.Spec) {
		want.Lease = view.Spec.Lease // the flag is of the run
		raise(&more.MaxTrials, &want.MaxTrials, view.Spec.MaxTrials)
		raise(&more.Timeout, &want.Timeout, view.Spec.Timeout)
		raise(&more.MaxCost, &want.MaxCost, view.Spec.MaxCost)
	})
	if err != nil || more == (study.Extend{}) {
		return err
	}
	if _, err = svc.Extend(ctx, name, more); err == nil {
		g.Note(cmd, "Extended study %s.", name)
	}
	return err
}

// raise moves a wanted limit that is larger than that of the study to the new limits.
func raise[T int | time.Duration | float64](to, want *T, has T) {
	if has > 0 && *want > has {
		*to, *want = *want, has
	}
}

// run runs the trials and reports how it went.
func (r *running) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service) error {
	o := &r.options
	if err := r.claimLogs(g, cmd); err != nil {
		return err
	}
	defer r.claim.Release()
	o.Worker, o.LogDir = r.claim.Worker, r.claim.Dir
	kill, unlisten := secondSignal()
	defer unlisten()
	o.KillNow = kill
	view, err := svc.Study(ctx, o.Study)
	if err != nil {
		return err
	}
	p := NewProgress(ctx, cmd.ErrOrStderr(), g, svc, view)
	o.OnEvent, o.Env, o.Limited = p.Event, g.Environment(), propose.ConstrainedMetrics(view.Spec.Proposer)
	summary, err := runner.Run(ctx, svc, *o)
	p.End()
	if err := r.conclude(g, cmd, summary, err); err != nil || *r.form != "table" {
		return err
	}
	return trials.RemarkBest(ctx, g, cmd, svc, summary.Study, summary.Best)
}

// claimLogs claims the directory of logs, unless it did before it created the study.
func (r *running) claimLogs(g *cli.Globals, cmd *cobra.Command) (err error) {
	if r.claim == nil {
		r.claim, err = ClaimLogs(g, cmd, r.options.LogDir, r.options.Study, r.options.Worker)
	}
	return err
}

// ClaimLogs claims the directory that --log-dir names, else the study's. If that is in use
// and the worker has no name, it claims a free one in it.
func ClaimLogs(g *cli.Globals, cmd *cobra.Command, dir, study, worker string) (claim *runner.Claim, err error) {
	if dir == "" && worker == "" {
		claim, err = runner.ClaimFree(study+".logs", study)
	} else {
		claim, err = runner.ClaimDir(cmp.Or(dir, study+".logs"), study, worker)
	}
	switch {
	case errors.Is(err, runner.ErrClaimed):
		return nil, fmt.Errorf("%w; wait for its end, or name another one with --log-dir", err)
	case err != nil:
		return nil, err
	case claim.Unkept != nil:
		g.Note(cmd, "warning: after an interruption the same command will not continue with its trials, because %s cannot keep the name of the workers: %v", claim.Dir, claim.Unkept)
	case claim.InUse != "":
		g.Note(cmd, "Logs are in %s, because another run uses %s.", claim.Dir, claim.InUse)
	}
	return claim, nil
}

// secondSignal returns a channel that is closed at the second Ctrl-C. The third
// ends the program at once.
func secondSignal() (second <-chan struct{}, stop func()) {
	signals, closed, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		signal.Stop(signals)
		close(closed)
	}()
	return closed, func() { signal.Stop(signals); close(done) }
}

func (r *running) conclude(g *cli.Globals, cmd *cobra.Command, s runner.Summary, err error) error {
	if err := NoteRun(g, cmd, r.claim, s, err); err != nil {
		return err
	}
	if len(s.Best) == 0 {
		return cli.Exit(cli.ExitFailure, fmt.Errorf("no trial has completed; the logs of the trials are in %s", r.options.LogDir))
	}
	if *r.form == "none" {
		return nil
	}
	return trials.PrintBest(g, cmd, *r.form, s.Study, s.Best, cli.TableWidth(cmd.OutOrStdout()))
}

// NoteRun notes how a run ended, and returns its error.
func NoteRun(g *cli.Globals, cmd *cobra.Command, claim *runner.Claim, s runner.Summary, err error) error {
	if s.Study.Name != "" {
		g.Note(cmd, "%s", runText(s))
	}
	if len(s.Left) > 0 {
		folder := ""
		if claim.InUse != "" {
			folder = " with --log-dir " + cli.ShellQuote(claim.Dir)
		}
		g.Note(cmd, "Left running: %s. The same command%s continues with %s.", cli.NumbersText(s.Left), folder, cli.Them(len(s.Left)))
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return err
}

// runText describes the state of the study and the trials of this run.
func runText(s runner.Summary) string {
	text := fmt.Sprintf("Study %s: %s, %s", s.Study.Name, trials.StatusText(s.Study), cli.TrialsText(s.Study.Trials))
	var words []string
	for state := study.Completed; state <= study.Pruned; state++ {
		if n := s.Counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(words) == 0 {
		if text += "; this run: none."; s.Study.Status == study.StatusFinished {
			text += " Continue it with tuner extend " + s.Study.Name + "."
		}
		return text
	}
	return text + "; this run: " + strings.Join(words, ", ") + "."
}
