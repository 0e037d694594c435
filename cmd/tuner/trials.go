package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/optuna"
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
	flagGroup(cmd, group{title: "Flags"}, func(fs *pflag.FlagSet) {
		fs.StringSliceVar(&f.states, "state", nil, "`state` of the trials, one of "+strings.Join(record.States(), ", ")+" (repeatable)")
		fs.StringVar(&f.filter.Worker, "worker", "", "`name` of the worker that ran the trials last")
		fs.IntVar(&f.filter.First, "first", 0, "`number` of the first trial")
		fs.IntVar(&f.filter.Limit, "limit", 0, "`number` of trials, 0 for all")
	})
	register(cmd, "state", words(record.States()...))
}

func (f *filterFlags) parse() (tuner.Filter, error) {
	for _, word := range f.states {
		s, err := record.ParseState(word)
		if err != nil {
			return f.filter, usagef("--state: %w", err)
		}
		f.filter.States = append(f.filter.States, s)
	}
	if f.filter.Limit < 0 || f.filter.First < 0 {
		return f.filter, usagef("--first %d, --limit %d: must not be negative", f.filter.First, f.filter.Limit)
	}
	return f.filter, nil
}

func newTrials(g *globals) *cobra.Command {
	return newTrialList(g, &cobra.Command{
		Use:   "trials [STUDY]",
		Short: "List the trials of a study",
		Long: `Trials lists the trials of a study in the order of their numbers.

The table rounds numbers to six digits and fits the width of the terminal. With --wide it
has all columns. A ! marks a completed trial that breaks a constraint. All other formats
are exact. The formats json, jsonl and yaml also have reports and late results.`,
		Example: "  tuner trials digits\n  tuner trials digits --state running -f jsonl",
		Args:    between(0, 1),
	}, "table", "json", "jsonl", "csv", "yaml")
}

func newExport(g *globals) *cobra.Command {
	var storedName string
	cmd := newTrialList(g, &cobra.Command{
		Use:   "export [STUDY]",
		Short: "Write the trials of a study as CSV or JSON",
		Long: `Export writes the trials of a study to stdout as CSV, JSON (a list), JSON lines or YAML.
The command import reads all but YAML.

NaN and the infinities are the strings nan, inf and -inf. In CSV, text that a spreadsheet
would take for a formula has a ' before it. CSV has no late results, and import leaves
out those of JSON. Export reads page by page, so that large studies need no more memory.

A study of Optuna has the format optuna, which import reads with the search space. Name it
as tuner studies does, or give the address of its server, optuna+grpc://ADDRESS.`,
		Example: "  tuner export digits > digits.csv\n  tuner export digits -f jsonl | tuner --db other.db import digits -\n  tuner export optuna.digits > digits.json",
		Args:    between(0, 1),
	}, "csv", "json", "jsonl", "yaml", string(record.Optuna))
	cmd.Flags().StringVar(&storedName, "optuna-study", "", "`name` of the study at optuna+grpc://ADDRESS (default the only one)")
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stored := len(args) > 0 && strings.HasPrefix(args[0], optunaScheme)
		if !stored {
			if storedName != "" {
				return usagef("--optuna-study needs the address of a storage, such as %s127.0.0.1:13000", optunaScheme)
			}
			g.foreign = optuna.NewState
			return list(cmd, args)
		}
		if err := onlyOptunaForm(cmd, args[0]); err != nil {
			return err
		}
		data, err := readStorage(cmd.Context(), args[0], storedName)
		if err != nil {
			return err
		}
		return writeLine(cmd.OutOrStdout(), data)
	}
	return cmd
}

func newTrialList(g *globals, cmd *cobra.Command, forms ...string) *cobra.Command {
	var flags filterFlags
	flags.add(cmd)
	width := func(io.Writer) int { return 0 }
	if forms[0] == "table" {
		width = wideFlag(cmd)
	}
	form := formatFlag(cmd, forms...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := flags.parse()
		if err != nil {
			return err
		}
		return g.withStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
			view, err := svc.Study(ctx, name)
			if err != nil {
				return err
			}
			if view.Spec.Foreign() && g.foreign != nil {
				return g.exportOptuna(ctx, cmd, svc, name)
			}
			if form.value == string(record.Optuna) {
				return usagef("-f %s: only studies of Optuna have this format, and %s is none; use another one", form.value, name)
			}
			out, err := trialSink(cmd.OutOrStdout(), form.value, view.Spec, width(cmd.OutOrStdout()))
			if err != nil {
				return err
			}
			judge, broken := record.NewJudge(view.Spec), 0
			filter.Reports = form.value != "table"
			for t, err := range allTrials(ctx, svc, name, filter) {
				if err != nil {
					return err
				}
				if err := out.put(judge.OfTrial(t)); err != nil {
					return err
				}
				if judge.Breaks(t) {
					broken++
				}
			}
			if err := out.end(); err != nil {
				return err
			}
			if t, ok := out.(*trialTable); ok {
				g.remarkLeft(cmd, t.table)
			}
			if broken > 0 && form.value == "table" {
				g.note(cmd, "%s breaks a constraint (%s) and cannot be the best.", breaksMark, judge.Constraints())
			}
			return nil
		})
	}
	return cmd
}

func newBest(g *globals) *cobra.Command {
	var form *format
	var width func(io.Writer) int
	cmd := &cobra.Command{
		Use:   "best [STUDY]",
		Short: "Show the best trial, or the Pareto front",
		Long: `Best shows the completed trial with the best objective value. With several objectives it
shows the Pareto front.

The proposer bkb compares trials by the predictions of its model, because a single
measurement can be lucky. Without a model the mean of the measured values decides. If
another trial measured better, stderr names it. Best fails if no trial has completed.

If a best value lies at an end of the range of its parameter, the optimum may lie beyond.
Stderr then says how to continue in a wider range, and json, jsonl and yaml have edges.
The formats args and env write only the configuration, for shells.`,
		Example: "  tuner best digits\n  python train.py $(tuner best digits -f args) --epochs 100",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withStudy(cmd, args, func(ctx context.Context, svc tuner.Service, name string) error {
				view, err := svc.Study(ctx, name)
				if err != nil {
					return err
				}
				best, err := svc.Best(ctx, name)
				if err != nil {
					return err
				}
				if whole := []string{"json", "jsonl", "csv", "yaml"}; slices.Contains(whole, form.value) {
					for i := range best {
						if best[i].Reports, err = allReports(ctx, svc, name, best[i].Number); err != nil {
							return err
						}
					}
				}
				if len(best) == 0 {
					return &statusError{exitNotFound, fmt.Errorf("study %s has no completed trial yet", name)}
				}
				if err := g.printBest(cmd, form.value, view, best, width(cmd.OutOrStdout())); err != nil || form.value != "table" {
					return err
				}
				return g.remarkBest(ctx, cmd, svc, view, best)
			})
		},
	}
	width = wideFlag(cmd)
	form = formatFlag(cmd, "table", "json", "jsonl", "csv", "yaml", "args", "env")
	return cmd
}

// printBest writes the recommended trials. A width of 0 means no limit.
func (g *globals) printBest(cmd *cobra.Command, form string, view tuner.Study, best []study.Trial, width int) error {
	out := cmd.OutOrStdout()
	one := len(view.Spec.Objectives) == 1
	switch {
	case form == "args":
		return printArgs(out, best)
	case form == "env" && !one:
		return usagef("-f env: must be used with one objective, and this study has several with %d best trials; use -f json", len(best))
	case form == "env":
		return printConfigEnv(out, view.Spec.Space, best[0].Config)
	case form == "json" && one:
		return writeJSON(out, ofBest(view, best[0]))
	case form == "yaml" && one:
		return writeYAML(out, ofBest(view, best[0]))
	}
	s, err := trialSink(out, form, view.Spec, width)
	if form == "table" {
		s = newTrialTable(out, view.Spec, true, width)
	}
	if err != nil {
		return err
	}
	for _, t := range best {
		if err := s.put(ofBest(view, t)); err != nil {
			return err
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	if t, ok := s.(*trialTable); ok {
		g.remarkLeft(cmd, t.table)
	}
	return nil
}

// ofBest is the record of a recommended trial.
func ofBest(view tuner.Study, t study.Trial) record.Trial {
	r := record.NewJudge(view.Spec).OfTrial(t)
	r.Edges = record.OfEdges(autotune.Edges(view.Spec, t.Config))
	return r
}

// configText is a configuration as one line of text.
func configText(t study.Trial) string {
	words := make([]string, 0, t.Config.Len())
	for name, v := range t.Config.All() {
		words = append(words, name+"="+short(valueText(v), 32))
	}
	return clean(strings.Join(words, " "))
}
