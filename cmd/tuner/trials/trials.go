package trials

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// filterFlags select trials.
type filterFlags struct {
	filter tuner.Filter
	states []string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	cli.FlagGroup(cmd, cli.Group{Title: "Flags"}, func(fs *pflag.FlagSet) {
		fs.StringSliceVar(&f.states, "state", nil, "`state` of the trials, one of "+strings.Join(record.States(), ", ")+" (repeatable)")
		fs.StringVar(&f.filter.Worker, "worker", "", "`name` of the worker that ran the trials last")
		fs.IntVar(&f.filter.First, "first", 0, "`number` of the first trial")
		fs.IntVar(&f.filter.Limit, "limit", 0, "`number` of trials, 0 for all")
	})
	cli.Register(cmd, "state", cli.Words(record.States()...))
}

func (f *filterFlags) parse() (tuner.Filter, error) {
	for _, word := range f.states {
		s, err := record.ParseState(word)
		if err != nil {
			return f.filter, cli.Usagef("--state: %w", err)
		}
		f.filter.States = append(f.filter.States, s)
	}
	if f.filter.Limit < 0 || f.filter.First < 0 {
		return f.filter, cli.Usagef("--first %d, --limit %d: must not be negative", f.filter.First, f.filter.Limit)
	}
	return f.filter, nil
}

func newTrials(g *cli.Globals) *cobra.Command {
	return NewTrialList(g, &cobra.Command{
		Use:               "trials [STUDY]",
		Short:             "List the trials of a study",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Trials lists the trials of a study in the order of their numbers.

The table rounds numbers to six digits and fits the width of the terminal. With --wide it
has all columns. A ! marks a completed trial that breaks a constraint. All other formats
are exact. The formats json, jsonl and yaml also have reports and late results.`,
		Example: "  tuner trials digits\n  tuner trials digits --state running -f jsonl",
		Args:    cli.Between(0, 1),
	}, "table", "json", "jsonl", "csv", "yaml")
}

// NewTrialList completes a command that lists trials in the given forms, the first by
// default.
func NewTrialList(g *cli.Globals, cmd *cobra.Command, forms ...string) *cobra.Command {
	var flags filterFlags
	flags.add(cmd)
	width := func(io.Writer) int { return 0 }
	if forms[0] == "table" {
		width = cli.WideFlag(cmd)
	}
	form := cli.FormatFlag(cmd, forms...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := flags.parse()
		if err != nil {
			return err
		}
		return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
			view, err := svc.Study(ctx, name)
			if err != nil {
				return err
			}
			out, err := trialSink(cmd.OutOrStdout(), *form, view.Spec, width(cmd.OutOrStdout()))
			if err != nil {
				return err
			}
			judge, broken := record.NewJudge(view.Spec), 0
			filter.Reports = *form != "table"
			for t, err := range cli.AllTrials(ctx, svc, name, filter) {
				if err != nil {
					return err
				}
				if err := out.Put(judge.OfTrial(t)); err != nil {
					return err
				}
				if judge.Breaks(t) {
					broken++
				}
			}
			if err := out.End(); err != nil {
				return err
			}
			if t, ok := out.(*trialTable); ok {
				g.RemarkLeft(cmd, t.Table)
			}
			if broken > 0 && *form == "table" {
				g.Note(cmd, "%s breaks a constraint (%s) and cannot be the best.", breaksMark, judge.Constraints())
			}
			return nil
		})
	}
	return cmd
}

func newBest(g *cli.Globals) *cobra.Command {
	var form *string
	var width func(io.Writer) int
	cmd := &cobra.Command{
		Use:               "best [STUDY]",
		Short:             "Show the best trial, or the Pareto front",
		ValidArgsFunction: cli.Args(g.Studies),
		Long: `Best shows the completed trial with the best objective value. With several objectives it
shows the Pareto front.

The proposer bkb compares trials by the predictions of its model, because a single
measurement can be lucky. Without a model the mean of the measured values decides. If
another trial measured better, stderr names it. Best fails if no trial has completed.

If a best value lies at an end of the range of its parameter, the optimum may lie beyond.
Stderr then says how to continue in a wider range, and json, jsonl and yaml have edges.
The formats args and env write only the configuration, for shells.`,
		Example: "  tuner best digits\n  python train.py $(tuner best digits -f args) --epochs 100",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				best, err := svc.Best(ctx, name)
				if err != nil {
					return err
				}
				if whole := []string{"json", "jsonl", "csv", "yaml"}; slices.Contains(whole, *form) {
					for i := range best {
						if best[i].Reports, err = cli.AllReports(ctx, svc, name, best[i].Number); err != nil {
							return err
						}
					}
				}
				if len(best) == 0 {
					return cli.Exit(cli.ExitNotFound, fmt.Errorf("study %s has no completed trial yet", name))
				}
				if err := PrintBest(g, cmd, *form, view, best, width(cmd.OutOrStdout())); err != nil || *form != "table" {
					return err
				}
				return RemarkBest(ctx, g, cmd, svc, view, best)
			})
		},
	}
	width = cli.WideFlag(cmd)
	form = cli.FormatFlag(cmd, "table", "json", "jsonl", "csv", "yaml", "args", "env")
	return cmd
}

// PrintBest writes the recommended trials. A width of 0 means no limit.
func PrintBest(g *cli.Globals, cmd *cobra.Command, form string, view tuner.Study, best []study.Trial, width int) error {
	out := cmd.OutOrStdout()
	one := len(view.Spec.Objectives) == 1
	switch {
	case form == "args":
		return printArgs(out, best)
	case form == "env" && !one:
		return cli.Usagef("-f env: must be used with one objective, and this study has several with %d best trials; use -f json", len(best))
	case form == "env":
		return printConfigEnv(out, view.Spec.Space, best[0].Config)
	case form == "json" && one:
		return cli.WriteJSON(out, ofBest(view, best[0]))
	case form == "yaml" && one:
		return cli.WriteYAML(out, ofBest(view, best[0]))
	}
	s, err := trialSink(out, form, view.Spec, width)
	if form == "table" {
		s = newTrialTable(out, view.Spec, true, width)
	}
	if err != nil {
		return err
	}
	for _, t := range best {
		if err := s.Put(ofBest(view, t)); err != nil {
			return err
		}
	}
	if err := s.End(); err != nil {
		return err
	}
	if t, ok := s.(*trialTable); ok {
		g.RemarkLeft(cmd, t.Table)
	}
	return nil
}

// ofBest is the record of a recommended trial.
func ofBest(view tuner.Study, t study.Trial) record.Trial {
	r := record.NewJudge(view.Spec).OfTrial(t)
	r.Edges = record.OfEdges(autotune.Edges(view.Spec, t.Config))
	return r
}

// ConfigText is a configuration as one line of text.
func ConfigText(t study.Trial) string {
	words := make([]string, 0, t.Config.Len())
	for name, v := range t.Config.All() {
		words = append(words, name+"="+cli.Short(valueText(v), 32))
	}
	return cli.Clean(strings.Join(words, " "))
}
