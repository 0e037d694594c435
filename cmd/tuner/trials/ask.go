package trials

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
	"github.com/spf13/cobra"
)

// waitPoll is the time between two asks of ask --wait.
const waitPoll = time.Second

func newAsk(g *cli.Globals) *cobra.Command {
	var a asking
	var count string
	cmd := &cobra.Command{
		Use:               "ask [STUDY]",
		Short:             "Get a trial to run",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Ask hands out a trial, which is a number and a configuration to run. Run it and send
the result with tuner tell. Send a heartbeat if it runs longer than the lease.

A named worker that asks again gets the trial that it is running. Ask fails if the study
is paused, if it has finished, or if no trial is left, each with an exit code of its own
(see tuner help exit-codes). On a file every ask makes the model anew, and a server keeps
its models. If the model is not ready in time, the suggestion is random.

Formats:
  json   {"trial":0,"epoch":1,"config":{"lr":0.01},…}, or a list with --count
  env    assignments for eval in a shell: TUNER_TRIAL, TUNER_EPOCH, TUNER_CONFIG
         (JSON) and TUNER_PARAM_NAME for each parameter
  args   --lr=0.01 --batch=32, quoted for a shell, one line for each trial`,
		Example: `  tuner ask digits
  while trial=$(tuner ask digits --wait -f env); do
    eval "$trial"
    tuner tell digits "$TUNER_TRIAL" "$(./train --lr "$TUNER_PARAM_LR")"
  done`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.parseCount(count); err != nil {
				return err
			}
			return g.WithView(cmd, args, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				if *a.form == "env" { // before a trial is handed out that cannot run
					if err := checkVariables(view.Spec.Space); err != nil {
						return err
					}
				}
				asked, err := a.ask(ctx, svc, view.Name, func(format string, args ...any) { g.Note(cmd, format, args...) })
				if err != nil {
					return err
				}
				if err := a.print(cmd.OutOrStdout(), view, asked); err != nil {
					return err
				}
				a.remark(g, cmd, asked)
				return nil
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&a.Worker, "worker", "", "`name` of the worker")
	fs.StringVar(&count, "count", "1", "`number` of trials, or auto for what is useful")
	fs.BoolVar(&a.New, "new", false, "a new trial, even if one is running")
	fs.BoolVar(&a.wait, "wait", false, "wait for a trial or the end of the study")
	fs.DurationVar(&a.Lease, "lease", 0, "time without a heartbeat (default the study's)")
	g.ProposeFlag(fs)
	fs.StringVar(&a.RequestID, "request-id", "", "`id` that makes it safe to repeat the request")
	a.form = cli.FormatFlag(cmd, "json", "env", "args", "yaml", "table")
	return cmd
}

// asking is an ask with the format of its output.
type asking struct {
	study.Ask
	wait bool
	form *string
	list bool // print a list
}

func (a *asking) parseCount(text string) error {
	a.list = text != "1"
	if text == "auto" {
		a.Count = tuner.AutoCount
	} else {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return cli.Usagef("--count %s: must be a number of at least 1, or auto", text)
		}
		a.Count = n
	}
	if a.list && *a.form == "env" {
		return cli.Usagef("-f env: must be used for one trial; leave --count out")
	}
	return nil
}

func (a *asking) ask(ctx context.Context, svc tuner.Service, name string, say func(format string, args ...any)) (tuner.Asked, error) {
	for try := 1; ; try++ {
		asked, err := svc.Ask(ctx, name, a.Ask)
		code := tuner.CodeOf(err)
		if !a.wait || code != tuner.NoneLeft && code != tuner.Paused {
			return asked, err
		}
		if try == 2 && code == tuner.NoneLeft {
			say("Waiting: %s.", HeldText(ctx, svc, name, err))
		}
		select {
		case <-time.After(waitPoll):
		case <-ctx.Done():
			return tuner.Asked{}, ctx.Err()
		}
	}
}

// askedTrial is a trial as ask prints it.
type askedTrial struct {
	Trial    int          `json:"trial"`
	Epoch    int          `json:"epoch"`
	Config   space.Config `json:"config"`
	Worker   string       `json:"worker,omitempty"`
	Deadline time.Time    `json:"deadline"`
	Phase    string       `json:"phase,omitempty"`
	Mean     []float64    `json:"mean,omitempty"`   // predicted, for each objective
	StdDev   []float64    `json:"stddev,omitempty"` // of the mean
	Bound    []float64    `json:"bound,omitempty"`  // the optimistic confidence bound
	Beta     []float64    `json:"beta,omitempty"`   // its width in standard deviations
	Noise    []float64    `json:"noise,omitempty"`  // standard deviation of an outcome's noise
	// The rest of the answer is the same in each trial.
	UsefulWorkers int      `json:"useful_workers,omitempty"`
	Warnings      []string `json:"warnings,omitempty"`
}

func (a *asking) print(out io.Writer, view tuner.Study, asked tuner.Asked) error {
	var trials []askedTrial
	for _, t := range asked.Trials {
		s := t.Suggestion
		trials = append(trials, askedTrial{
			Trial: t.Number, Epoch: t.Epoch, Config: t.Config, Worker: t.Worker, Deadline: t.Deadline,
			Phase: s.Phase, Mean: s.Mean, StdDev: s.StdDev, Bound: s.Bound, Beta: s.Beta,
			Noise: asked.Noise, UsefulWorkers: asked.UsefulWorkers, Warnings: asked.Warnings,
		})
	}
	var v any = trials
	if !a.list {
		if len(trials) != 1 {
			return fmt.Errorf("an ask for 1 trial returned %d", len(trials))
		}
		v = trials[0]
	}
	switch *a.form {
	case "yaml":
		return cli.WriteYAML(out, v)
	case "env":
		t := asked.Trials[0]
		start := fmt.Sprintf("TUNER_STUDY=%s\nTUNER_TRIAL=%d\nTUNER_EPOCH=%d\n", cli.ShellQuote(view.Name), t.Number, t.Epoch)
		return printEnv(out, start, view.Spec.Space, t.Config)
	case "args":
		return printArgs(out, asked.Trials)
	case "table":
		return printAsked(out, view.Spec, asked)
	default:
		return cli.WriteJSON(out, v)
	}
}

// remark writes to stderr what the format of an answer has no place for.
func (a *asking) remark(g *cli.Globals, cmd *cobra.Command, asked tuner.Asked) {
	form := *a.form
	if form == "json" || form == "yaml" {
		return
	}
	for _, text := range asked.Warnings {
		g.Note(cmd, "warning: %s", text)
	}
	if len(asked.Noise) > 0 && form == "table" {
		g.Note(cmd, "%s", ExplainOutcome)
	}
	if n := asked.UsefulWorkers; n > 0 && form == "table" {
		g.Note(cmd, "Useful in parallel now: %s.", cli.TrialsText(n))
	}
}

// checkVariables refuses two parameters with the same variable.
func checkVariables(sp *space.Space) error {
	if err := runner.CheckVariables(sp); err != nil {
		return cli.Exit(cli.ExitInvalid, fmt.Errorf("-f env: %w, or use -f json", err))
	}
	return nil
}

// printEnv writes assignments for a shell, after a text that starts them.
func printEnv(out io.Writer, start string, sp *space.Space, c space.Config) error {
	if err := checkVariables(sp); err != nil {
		return err
	}
	config, err := cli.JsonLine(c)
	if err != nil {
		return err
	}
	lines := []string{start + "TUNER_CONFIG=" + cli.ShellQuote(string(config))}
	for _, p := range sp.Parameters() {
		if v, ok := c.Get(p.Name); ok {
			lines = append(lines, runner.Variable(p.Name)+"="+cli.ShellQuote(v.String()))
		} else {
			lines = append(lines, "unset "+runner.Variable(p.Name))
		}
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

func printArgs(out io.Writer, trials []study.Trial) error {
	for _, t := range trials {
		words := runner.Flags(t.Config)
		for i := range words {
			words[i] = cli.ShellQuote(words[i])
		}
		if _, err := fmt.Fprintln(out, strings.Join(words, " ")); err != nil {
			return err
		}
	}
	return nil
}

// printAsked writes trials as a table, with the predictions of the model if there is one.
func printAsked(out io.Writer, spec study.Spec, asked tuner.Asked) error {
	predicted := slices.ContainsFunc(asked.Trials, func(t study.Trial) bool { return len(t.Suggestion.Mean) == len(spec.Objectives) })
	header := []string{"TRIAL", "EPOCH", "PHASE"}
	for _, o := range spec.Objectives {
		if predicted {
			header = append(header, "predicted "+o.Name, "bound")
		}
	}
	for _, p := range spec.Space.Parameters() {
		header = append(header, p.Name)
	}
	t := cli.NewTable(out, header...)
	t.Width, t.Record = cli.TableWidth(out), true
	for _, trial := range asked.Trials {
		s := trial.Suggestion
		row := []string{strconv.Itoa(trial.Number), strconv.Itoa(trial.Epoch), s.Phase}
		for j := range spec.Objectives {
			switch {
			case !predicted:
			case j < min(len(s.Mean), len(s.StdDev), len(s.Bound), len(asked.Noise)):
				row = append(row, surrogate.OutcomeText(s.Mean[j], s.StdDev[j], asked.Noise[j]), fmt.Sprintf("%.4g", s.Bound[j]))
			default:
				row = append(row, "", "")
			}
		}
		for _, p := range spec.Space.Parameters() {
			row = append(row, parameterText(trial.Config, p.Name, space.Value.String))
		}
		t.Row(row...)
	}
	return t.End()
}

// ExplainOutcome explains outcomeText.
const ExplainOutcome = "A prediction is ± the standard deviation of an outcome, noise included."
