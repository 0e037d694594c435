package trials

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// target is the trial of a command, with its epoch if that is known and the other arguments.
type target struct {
	study        string
	trial, epoch int
	rest         []string
}

// parseTarget takes STUDY and TRIAL from the arguments. If both are missing, it takes
// them and the epoch from the environment that tuner run gives a command. An epoch that a
// flag gave counts more.
func parseTarget(args []string, epoch int) (t target, err error) {
	if len(args) == 0 || strings.Contains(args[0], "=") {
		if os.Getenv("TUNER_STUDY") == "" || os.Getenv("TUNER_TRIAL") == "" {
			return t, cli.Usagef("name the study and the trial, as arguments or in TUNER_STUDY and TUNER_TRIAL")
		}
		args = append([]string{os.Getenv("TUNER_STUDY"), os.Getenv("TUNER_TRIAL")}, args...)
		if epoch == 0 {
			epoch, _ = strconv.Atoi(os.Getenv("TUNER_EPOCH"))
		}
	}
	if len(args) < 2 {
		return t, cli.Usagef("there is no trial; give its number after the study, as in %s 3", args[0])
	}
	n, err := strconv.Atoi(args[1])
	if _, no := strconv.Atoi(args[0]); err != nil && no == nil {
		return t, cli.Usagef("the study is missing; name it before trial %s, as in STUDY %[1]s", args[0])
	}
	if err != nil || n < 0 {
		return t, cli.Usagef("trial %q: must be a whole number of at least 0", args[1])
	}
	return target{args[0], n, epoch, args[2:]}, nil
}

// lease is the lease of the run that started this process, if t is its trial, else 0.
func (t target) lease() time.Duration {
	if os.Getenv("TUNER_STUDY") != t.study || os.Getenv("TUNER_TRIAL") != strconv.Itoa(t.trial) {
		return 0
	}
	lease, _ := time.ParseDuration(os.Getenv("TUNER_LEASE"))
	return lease
}

// onlyObjective is the name of the only objective, or empty if there are several.
func onlyObjective(spec study.Spec) string {
	if len(spec.Objectives) == 1 {
		return spec.Objectives[0].Name
	}
	return ""
}

func newTell(g *cli.Globals) *cobra.Command {
	var t telling
	cmd := &cobra.Command{
		Use:               "tell STUDY TRIAL [VALUE | name=value…]",
		Short:             "Record the result of a trial",
		ValidArgsFunction: cli.Args(g.Studies, g.Running, g.Metrics),
		Long: `Tell records the outcome of a trial. Give a bare VALUE for the only objective, or
name=value for each objective and other metrics.

The same outcome may be told again. Another outcome is refused.

Numbers are plain decimal, or nan, inf, -inf. Write replicates as name=0.3,0.5,0.4, or
repeat the name. Write a standard error as name=0.3±0.01 or name=0.3+-0.01. A value of
nan makes the trial failed.

In a command of tuner run, STUDY and TRIAL can be left out. They come from TUNER_STUDY and
TUNER_TRIAL then, and a bare value needs = before it.`,
		Example: `  tuner tell digits 3 0.251
  tuner tell digits 3 loss=-0.2±0.01 seconds=12.5
  tuner tell digits 4 --state failed --message "out of memory"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := parseTarget(args, t.command.Epoch)
			if err != nil {
				return err
			}
			t.command.Trial, t.command.Epoch = to.trial, to.epoch
			return g.WithStudy(cmd, []string{to.study}, func(ctx context.Context, svc tuner.Service, name string) error {
				return t.run(ctx, g, cmd, svc, name, to.rest)
			})
		},
	}
	fs := cmd.Flags()
	cli.ChoiceVar(fs, &t.state, "state", "", "`state`", "completed", "failed", "infeasible", "pruned")
	cli.ChoiceVar(fs, &t.reason, "reason", "", "`reason` of a failure", "crash", "cancelled", "nan")
	fs.StringVar(&t.command.Outcome.Message, "message", "", "`text` that explains the outcome")
	fs.StringVar(&t.cost, "cost", "", "`cost` of the trial, in the unit of --max-cost")
	fs.IntVar(&t.command.Epoch, "epoch", 0, "epoch of the trial, as ask printed it (default the current one)")
	fs.StringArrayVar(&t.attributes, "attr", nil, "note on the trial, `key=value` (repeatable)")
	fs.StringVar(&t.command.RequestID, "request-id", "", "`id` that makes it safe to repeat the request")
	return cmd
}

// telling is a tell with its flags as text.
type telling struct {
	command             study.Tell
	state, reason, cost string
	attributes          []string
}

func (t *telling) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, name string, words []string) error {
	view, err := svc.Study(ctx, name)
	if err != nil {
		return err
	}
	if err := t.outcome(view.Spec, words, cmd.Flags().Changed("reason")); err != nil {
		return err
	}
	told, err := svc.Tell(ctx, name, t.command)
	if err != nil {
		return err
	}
	if told.Late {
		g.Note(cmd, "Trial %d has been handed out again. This outcome is kept beside it as a late result.", t.command.Trial)
		return nil
	}
	g.Note(cmd, "Trial %d: %s.", t.command.Trial, told.Trial.Outcome)
	return nil
}

func (t *telling) outcome(spec study.Spec, words []string, reasoned bool) (err error) {
	o := &t.command.Outcome
	if o.Metrics, err = metric.Parse(words, onlyObjective(spec)); err != nil {
		return cli.Usage(err)
	}
	if o.State, err = study.ParseState(t.state); err != nil {
		return err
	}
	if o.State == study.Failed || reasoned {
		if o.Reason, err = study.ParseReason(t.reason); err != nil {
			return err
		}
	}
	if o.State == study.Completed && len(words) == 0 {
		return cli.Usagef("there is no value; give one, or --state failed, infeasible or pruned")
	}
	if t.cost != "" {
		if o.Cost, err = metric.ParseNumber(t.cost); err != nil {
			return cli.Usagef("--cost: %w", err)
		}
	}
	o.Attributes, err = cli.ParseAttributes(t.attributes)
	return err
}

func newReport(g *cli.Globals) *cobra.Command {
	var c study.ReportValues
	var step int64
	var exitCode *bool
	cmd := &cobra.Command{
		Use:               "report STUDY TRIAL --step N name=value…",
		Short:             "Report intermediate values of a running trial",
		ValidArgsFunction: cli.Args(g.Studies, g.Running, g.Metrics),
		Long: `Report adds intermediate values to a running trial, and prints continue or stop.

Stop means that a pruner, the end of the study or tuner stop wants the trial to stop. With
--exit-code the exit code says so too. Report does not renew the lease, a heartbeat
does. STUDY and TRIAL can be left out as in tuner tell.`,
		Example: `  tuner report digits 3 --step 10 loss=0.4
  tuner report digits 3 --step 20 loss=0.3 --exit-code || exit`,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := parseTarget(args, c.Epoch)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("step") {
				return cli.Usagef("--step is missing; give the step at which the values were measured")
			}
			c.Trial, c.Epoch = to.trial, to.epoch
			return g.WithView(cmd, []string{to.study}, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				if c.Reports, err = parseReport(step, to.rest, view.Spec); err != nil {
					return err
				}
				verdict, err := svc.Report(ctx, view.Name, c)
				if err != nil {
					return err
				}
				return printVerdict(g, cmd, verdict, *exitCode)
			})
		},
	}
	fs := cmd.Flags()
	fs.Int64Var(&step, "step", 0, "step at which the values were measured")
	fs.IntVar(&c.Epoch, "epoch", 0, "epoch of the trial, as ask printed it (default the current one)")
	exitCode = exitCodeFlag(fs)
	fs.StringVar(&c.RequestID, "request-id", "", "`id` that makes it safe to repeat the request")
	return cmd
}

func parseReport(step int64, words []string, spec study.Spec) ([]study.Report, error) {
	metrics, err := metric.Parse(words, onlyObjective(spec))
	if err != nil {
		return nil, cli.Usage(err)
	}
	if len(metrics) == 0 {
		return nil, cli.Usagef("there is no value; give name=value")
	}
	r := study.Report{Step: step}
	for _, m := range metrics {
		if len(m.Values) != 1 || m.HasStdErr {
			return nil, cli.Usagef("%s: a report has one value of each metric", m.Name)
		}
		r.Values = append(r.Values, study.NamedValue{Name: m.Name, Value: m.Values[0]})
	}
	return []study.Report{r}, nil
}

// exitCodeFlag adds the flag of commands that print a verdict.
func exitCodeFlag(fs *pflag.FlagSet) *bool {
	return fs.Bool("exit-code", false, "exit code 14 if the trial should stop")
}

func printVerdict(g *cli.Globals, cmd *cobra.Command, verdict tuner.Verdict, exitCode bool) error {
	word, title := "continue", "Continue"
	if verdict.Stop {
		word, title = "stop", "Stop"
	}
	if verdict.Reason != "" {
		g.Note(cmd, "%s: %s.", title, verdict.Reason)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), word); err != nil || !verdict.Stop || !exitCode {
		return err
	}
	return cli.Exit(cli.ExitStop, nil)
}

func newHeartbeat(g *cli.Globals) *cobra.Command {
	var c study.Heartbeat
	var exitCode *bool
	cmd := &cobra.Command{
		Use:               "heartbeat STUDY TRIAL",
		Short:             "Renew the lease on a running trial",
		ValidArgsFunction: cli.Args(g.Studies, g.Running),
		Long: `Heartbeat renews the lease on a running trial, and prints continue or stop.

Stop means that a pruner, the end of the study or tuner stop wants the trial to stop. With
--exit-code the exit code says so too. Heartbeat fails if another worker has the trial
now. STUDY and TRIAL can be left out as in tuner tell.`,
		Example: "  tuner heartbeat digits 3 --epoch 1\n  while sleep 60; do tuner heartbeat digits 3 --exit-code || break; done",
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := parseTarget(args, c.Epoch)
			if err != nil {
				return err
			}
			if len(to.rest) > 0 {
				return cli.Usagef("%q is one argument too many: %s", to.rest[0], cmd.UseLine())
			}
			c.Trial, c.Epoch = to.trial, to.epoch
			if c.Lease == 0 {
				c.Lease = to.lease()
			}
			return g.WithStudy(cmd, []string{to.study}, func(ctx context.Context, svc tuner.Service, name string) error {
				verdict, err := svc.Heartbeat(ctx, name, c)
				if err != nil {
					return err
				}
				return printVerdict(g, cmd, verdict, *exitCode)
			})
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&c.Epoch, "epoch", 0, "epoch of the trial, as ask printed it (default the current one)")
	fs.DurationVar(&c.Lease, "lease", 0, "length of the lease from now on (default $TUNER_LEASE in tuner run, else the study's)")
	exitCode = exitCodeFlag(fs)
	return cmd
}
