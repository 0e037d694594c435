package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func newRun(g *globals) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "run STUDY [flags] -- COMMAND [ARG…]",
		Short: "Run a command as the trials of a study",
		Long: `Run asks for trials, runs the command for each, and tells what came of it, until the
study has finished. With --space and the other flags of create-study it makes the
study if there is none.

THE COMMAND
  {lr} in an argument is the value of parameter lr; {trial}, {epoch}, {study} are what
  they say; {args} stands for all parameters as --name=value; {{ and }} are braces. An
  argument that names an inactive parameter is left out, and an option before it.
  The environment has TUNER_PARAM_LR and so on, TUNER_CONFIG (JSON), TUNER_TRIAL,
  TUNER_EPOCH, TUNER_STUDY and TUNER_LEASE, and TUNER_DB or TUNER_SERVER, so that a script
  can call tuner report or tuner heartbeat itself; it need not: run sends signs of life.

WHAT IT PRINTS, on stdout
  loss=0.31 accuracy=0.9     the result; the last such line counts. JSON will do too:
  {"loss": 0.31}
  step=3 loss=0.51           an intermediate value; a pruner may end the trial
  infeasible=REASON          the configuration cannot work; so does exit status 66
  Other lines only go to the log. With --result the result is read from a file.
  Exit status 14, that of tuner report --exit-code, says that it was told to stop: the
  trial is pruned. Any other but 0 is a failure; its last line on stderr says why.

CTRL-C ends the running commands (SIGTERM, after --grace SIGKILL) and asks for no more.
Their trials stay with this run: the same command, in the same directory, starts them
again, and goes on. A second Ctrl-C does not wait for the grace.

The log of each trial is in --log-dir, which also remembers this run's name: two runs
at a time need two directories.`,
		Example: `  tuner run --demo
  tuner run digits --parallel 4 -- python train.py --lr {lr} --batch {batch}
  tuner run digits --space space.yaml --minimize loss --max-trials 50 -- ./train {args}`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.demo {
				return runDemo(g, cmd, args, &r)
			}
			if err := r.parse(cmd, args); err != nil {
				return err
			}
			return g.with(cmd, existing(r.spec.space == ""), func(ctx context.Context, svc tuner.Service) error {
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

// running is a run with its flags.
type running struct {
	options runner.Options
	spec    specFlags
	form    *format
	demo    bool
}

func (r *running) flags(g *globals, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	o := &r.options
	fs.IntVarP(&o.Parallel, "parallel", "j", 1, "how many trials at a time")
	fs.IntVar(&o.Limit, "limit", 0, "end this run after so many trials (0: no limit)")
	fs.StringVar(&o.LogDir, "log-dir", "", "where the logs of trials go (default: STUDY.logs)")
	fs.StringVar(&o.Worker, "worker", "", "the `name` of this run's workers (default: one that --log-dir remembers)")
	fs.StringVar(&o.Result, "result", "", "the `file` that the command writes its result to, with placeholders")
	fs.DurationVar(&o.Timeout, "trial-timeout", 0, "end a trial that runs longer, as a failure (0: never)")
	fs.DurationVar(&o.Grace, "grace", runner.DefaultGrace, "the time between SIGTERM and SIGKILL")
	fs.DurationVar(&o.Patience, "patience", runner.DefaultPatience, "how long to try again when the server or file cannot be reached")
	fs.IntVar(&o.MaxFailures, "max-failures", 10, "end the run when so many trials in a row crashed (0: never)")
	fs.StringVar(&o.CostMetric, "cost", "", "what a trial costs: seconds, or the `metric` of this name")
	g.proposeFlag(cmd)
	fs.BoolVar(&r.demo, "demo", false, "run a small built-in example")
	r.form = formatFlag(cmd, "table", "json", "yaml", "args", "none")
	cmd.Flag("format").Usage = "the form in which the best trial is written at the end: table, json, yaml, args, none"
	r.spec.add(cmd)
	cmd.Flag("lease").Usage = "how long a trial is held without a sign of life (default 5m, or what the study was made with)"
}

// parse takes the study and the command from the arguments.
func (r *running) parse(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return usagef("put the command behind --: tuner run STUDY -- COMMAND; or see: tuner run --demo")
	}
	if dash > 1 {
		return usagef("%q before the -- is too much: tuner run STUDY -- COMMAND", args[1])
	}
	var err error
	if r.options.Study, err = studyName(args[:dash]); err != nil {
		return err
	}
	if r.options.Command = args[dash:]; len(r.options.Command) == 0 {
		return usagef("there is no command behind the --")
	}
	r.options.Lease = r.spec.lease
	return nil
}

// ensure makes the study if there is none and the flags describe one. A study
// that exists must be as the flags say.
func (r *running) ensure(ctx context.Context, g *globals, cmd *cobra.Command, svc tuner.Service) error {
	name := r.options.Study
	view, err := svc.Study(ctx, name)
	if tuner.CodeOf(err) == tuner.NotFound && r.spec.space != "" {
		spec := newSpec()
		if err := r.spec.apply(g, cmd, &spec); err != nil {
			return err
		}
		if _, err := svc.CreateStudy(ctx, name, study.Create{Spec: spec}); err != nil {
			return err
		}
		g.note(cmd, "Made study %s.", name)
		return nil
	}
	if tuner.CodeOf(err) == tuner.NotFound {
		return explain(ctx, svc, name, err)
	}
	if err != nil || !r.spec.given(cmd) {
		return err
	}
	want := view.Spec
	if err := r.spec.apply(g, cmd, &want); err != nil {
		return err
	}
	if what := difference(view.Spec, want); what != "" {
		return &statusError{
			statusOf(&tuner.RemoteError{Code: tuner.AlreadyExists}),
			fmt.Errorf("study %s exists with another %s; leave the flag out, or make a new study (create-study --from %s)", name, what, name),
		}
	}
	return nil
}

// difference names something in which two specs differ.
func difference(a, b study.Spec) string {
	switch {
	case !a.Space.Equal(b.Space):
		return "--space"
	case !slices.Equal(a.Objectives, b.Objectives):
		return "--minimize or --maximize"
	case a.MaxTrials != b.MaxTrials:
		return "--max-trials"
	case a.Timeout != b.Timeout:
		return "--timeout"
	case a.MaxCost != b.MaxCost:
		return "--max-cost"
	case a.MaxRetries != b.MaxRetries:
		return "--max-retries"
	case a.Seed != b.Seed:
		return "--seed"
	case a.Proposer != b.Proposer:
		return "--proposer"
	case a.Pruner != b.Pruner:
		return "--pruner"
	}
	return ""
}

// run runs trials and says how it went.
func (r *running) run(ctx context.Context, g *globals, cmd *cobra.Command, svc tuner.Service) error {
	o := &r.options
	if o.LogDir == "" {
		o.LogDir = o.Study + ".logs"
	}
	claim, err := runner.ClaimDir(o.LogDir, o.Worker)
	if err != nil {
		return err
	}
	defer claim.Release()
	o.Worker = claim.Worker
	kill, unlisten := secondSignal()
	defer unlisten()
	o.KillNow = kill
	view, err := svc.Study(ctx, o.Study)
	if err != nil {
		return err
	}
	p := newProgress(ctx, cmd.ErrOrStderr(), g, svc, view)
	o.OnEvent, o.Env = p.event, g.environment()
	summary, err := runner.Run(ctx, svc, *o)
	p.end()
	if err := r.conclude(g, cmd, summary, err); err != nil || r.form.value != "table" {
		return err
	}
	return g.remarkBest(ctx, cmd, svc, summary.Study, summary.Best)
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

// conclude says how a run ended.
func (r *running) conclude(g *globals, cmd *cobra.Command, s runner.Summary, err error) error {
	if s.Study.Name != "" {
		g.note(cmd, "%s", runText(s))
	}
	if len(s.Left) > 0 {
		g.note(cmd, "Left running: %s. The same command goes on with %s.", numbersText(s.Left), them(len(s.Left)))
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	} else if err != nil {
		return err
	}
	if len(s.Best) == 0 {
		return &statusError{exitFailure, fmt.Errorf("no trial has completed; their logs are in %s", r.options.LogDir)}
	}
	switch r.form.value {
	case "none":
		return nil
	default:
		return printBest(cmd.OutOrStdout(), r.form.value, s.Study, s.Best)
	}
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// trialsText is 1 trial, 2 trials, ….
func trialsText(n int) string {
	if n == 1 {
		return "1 trial"
	}
	return fmt.Sprintf("%d trials", n)
}

func numbersText(trials []int) string {
	words := make([]string, len(trials))
	for i, n := range trials {
		words[i] = fmt.Sprint(n)
	}
	if len(words) == 1 {
		return "trial " + words[0]
	}
	return "trials " + strings.Join(words, ", ")
}

// runText says how the study stands and what this run did.
func runText(s runner.Summary) string {
	text := fmt.Sprintf("Study %s: %s, %s", s.Study.Name, statusText(s.Study), trialsText(s.Study.Trials))
	var words []string
	for state := study.Completed; state <= study.Pruned; state++ {
		if n := s.Counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(words) == 0 {
		return text + "; this run: none."
	}
	return text + "; this run: " + strings.Join(words, ", ") + "."
}

// bestText says what the best trial is.
func bestText(t study.Trial, o study.Objective) string {
	return fmt.Sprintf("%s=%s (trial %d)", o.Name, meanText(record.OfTrial(t), o.Name), t.Number)
}
