package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// waitPoll is how often ask --wait asks.
const waitPoll = time.Second

func newAsk(g *globals) *cobra.Command {
	var a asking
	var count string
	cmd := &cobra.Command{
		Use:   "ask [STUDY]",
		Short: "Get a trial to run",
		Long: `Ask hands out a trial: a number and a configuration to run it with. Whoever ran it
tells what came of it, with tell; who runs longer than the lease sends a heartbeat
now and then.

On a file, every ask makes the model anew from the study's trials. Where that takes longer
than --propose-timeout, in a very large study or on a busy machine, the suggestion is a
random one (phase fallback, and a warning). A server keeps its models.

A worker with a name that asks again gets the trial back that it is running, unless
--new. A finished study is exit status 10, so that loops end; with nothing to hand
out now it is 11, or 12 for a paused study, unless --wait.

FORMS
  json   {"trial":0,"epoch":1,"config":{"lr":0.01},…}; with --count a list of them
  yaml   the same
  env    for eval in a shell: TUNER_TRIAL, TUNER_EPOCH, TUNER_CONFIG (JSON) and a
         TUNER_PARAM_NAME for each parameter; inactive parameters are unset
  args   --lr=0.01 --batch=32, quoted for a shell, a line for each trial
  table  for people`,
		Example: `  tuner ask digits
  while trial=$(tuner ask digits --wait -f env); do
    eval "$trial"
    tuner tell digits "$TUNER_TRIAL" "$(./train --lr "$TUNER_PARAM_LR")"
  done
  tuner ask digits --worker "$(hostname)" --count 4 --wait`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.parseCount(count); err != nil {
				return err
			}
			return g.withStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				if a.form.value == "env" { // before there is a trial that nobody can run
					if err := checkVariables(view.Spec.Space); err != nil {
						return err
					}
				}
				asked, err := a.ask(ctx, svc, name)
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
	fs.SortFlags = false
	fs.StringVar(&a.Worker, "worker", "", "the worker's `name`")
	fs.StringVar(&count, "count", "1", "how many trials; auto: as many as are useful in parallel")
	fs.BoolVar(&a.New, "new", false, "a new trial, even if the worker is running one")
	fs.DurationVar(&a.Lease, "lease", 0, "how long the trial is held without a sign of life (default: the study's)")
	fs.StringVar(&a.RequestID, "request-id", "", "an `id` that makes it safe to send the same again")
	g.proposeFlag(cmd)
	fs.BoolVar(&a.wait, "wait", false, "wait until there is a trial, or the study has finished")
	a.form = formatFlag(cmd, "json", "env", "args", "yaml", "table")
	return cmd
}

// asking is an ask with how it is printed.
type asking struct {
	study.Ask
	wait bool
	form *format
	list bool // print a list
}

func (a *asking) parseCount(text string) error {
	a.list = text != "1"
	if text == "auto" {
		a.Count = tuner.AutoCount
	} else {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return usagef("--count %s: must be a number from 1 on, or auto", text)
		}
		a.Count = n
	}
	if a.list && a.form.value == "env" {
		return usagef("-f env is for one trial: leave --count out")
	}
	return nil
}

func (a *asking) ask(ctx context.Context, svc tuner.Service, name string) (tuner.Asked, error) {
	for {
		asked, err := svc.Ask(ctx, name, a.Ask)
		code := tuner.CodeOf(err)
		if !a.wait || code != tuner.NoneLeft && code != tuner.Paused {
			return asked, err
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
	Mean     []float64    `json:"mean,omitempty"`   // what the model expects, for each objective
	StdDev   []float64    `json:"stddev,omitempty"` // and how sure it is
	Bound    []float64    `json:"bound,omitempty"`  // the optimistic confidence bound
	Beta     []float64    `json:"beta,omitempty"`   // and its width, in standard deviations
	// What the answer says besides its trials is the same in each of them.
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
			UsefulWorkers: asked.UsefulWorkers, Warnings: asked.Warnings,
		})
	}
	var v any = trials
	if !a.list {
		if len(trials) != 1 {
			return fmt.Errorf("an ask for 1 trial gave %d", len(trials))
		}
		v = trials[0]
	}
	switch a.form.value {
	case "yaml":
		return writeYAML(out, v)
	case "env":
		return printEnv(out, view, asked.Trials[0])
	case "args":
		return printArgs(out, asked.Trials)
	case "table":
		return printAsked(out, view.Spec, asked.Trials)
	default:
		return writeJSON(out, v)
	}
}

// remark says on stderr what of an answer its form has no place for.
func (a *asking) remark(g *globals, cmd *cobra.Command, asked tuner.Asked) {
	form := a.form.value
	if form == "json" || form == "yaml" {
		return
	}
	for _, text := range asked.Warnings {
		g.note(cmd, "warning: %s", text)
	}
	if n := asked.UsefulWorkers; n > 0 && form == "table" {
		g.note(cmd, "Useful in parallel now: %s.", trialsText(n))
	}
}

// printEnv writes assignments for a shell.
func printEnv(out io.Writer, view tuner.Study, t study.Trial) error {
	if err := printStart(out, view.Name, t); err != nil {
		return err
	}
	return printConfigEnv(out, view.Spec.Space, t.Config)
}

func printStart(out io.Writer, name string, t study.Trial) error {
	_, err := fmt.Fprintf(out, "TUNER_STUDY=%s\nTUNER_TRIAL=%d\nTUNER_EPOCH=%d\n", shellQuote(name), t.Number, t.Epoch)
	return err
}

// checkVariables refuses to write two parameters as one variable.
func checkVariables(sp *space.Space) error {
	if err := runner.CheckVariables(sp); err != nil {
		return &statusError{statusInvalid(), fmt.Errorf("-f env: %w, or use -f json", err)}
	}
	return nil
}

func printConfigEnv(out io.Writer, sp *space.Space, c space.Config) error {
	if err := checkVariables(sp); err != nil {
		return err
	}
	config, err := jsonLine(c)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "TUNER_CONFIG=%s\n", shellQuote(string(config))); err != nil {
		return err
	}
	for _, p := range sp.Parameters() {
		line := "unset " + runner.Variable(p.Name)
		if v, ok := c.Get(p.Name); ok {
			line = runner.Variable(p.Name) + "=" + shellQuote(v.String())
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

func printArgs(out io.Writer, trials []study.Trial) error {
	for _, t := range trials {
		words := runner.Flags(t.Config)
		for i := range words {
			words[i] = shellQuote(words[i])
		}
		if _, err := fmt.Fprintln(out, strings.Join(words, " ")); err != nil {
			return err
		}
	}
	return nil
}

// printAsked writes trials for people: what to try, and what the proposer thinks of it,
// where it has a model.
func printAsked(out io.Writer, spec study.Spec, trials []study.Trial) error {
	thought := slices.ContainsFunc(trials, func(t study.Trial) bool { return len(t.Suggestion.Mean) == len(spec.Objectives) })
	header := []string{"TRIAL", "EPOCH", "PHASE"}
	for _, o := range spec.Objectives {
		if thought {
			header = append(header, "expected "+o.Name, "bound")
		}
	}
	for _, p := range spec.Space.Parameters() {
		header = append(header, p.Name)
	}
	t := newTable(out, header...)
	for _, trial := range trials {
		s := trial.Suggestion
		row := []string{strconv.Itoa(trial.Number), strconv.Itoa(trial.Epoch), s.Phase}
		for j := range spec.Objectives {
			switch {
			case !thought:
			case j < len(s.Mean) && j < len(s.StdDev) && j < len(s.Bound):
				row = append(row, fmt.Sprintf("%.4g±%.2g", s.Mean[j], s.StdDev[j]), fmt.Sprintf("%.4g", s.Bound[j]))
			default:
				row = append(row, "", "")
			}
		}
		for _, p := range spec.Space.Parameters() {
			text := ""
			if v, ok := trial.Config.Get(p.Name); ok {
				text = v.String()
			}
			row = append(row, text)
		}
		t.row(row...)
	}
	return t.end()
}
