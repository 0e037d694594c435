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
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// filterFlags choose trials.
type filterFlags struct {
	filter tuner.Filter
	states []string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.states, "state", nil, "only trials in this `state`: queued, running, completed, failed, infeasible, pruned; repeat for more")
	fs.StringVar(&f.filter.Worker, "worker", "", "only trials that this worker has or had last")
	fs.IntVar(&f.filter.First, "first", 0, "only trials from this number on")
	fs.IntVar(&f.filter.Limit, "limit", 0, "at most so many (0: all)")
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
		return f.filter, usagef("--first and --limit must not be negative")
	}
	return f.filter, nil
}

func newTrials(g *globals) *cobra.Command {
	return newTrialList(g, &cobra.Command{
		Use:   "trials [STUDY]",
		Short: "List the trials of a study",
		Long: `Trials lists the trials of a study in order of number. The table rounds to six digits,
and marks with ! what breaks a constraint of the proposer; all other forms are exact, and
json, jsonl and yaml have everything that is known of a trial, late results too.`,
		Example: "  tuner trials digits\n  tuner trials digits --state running -f jsonl\n  tuner trials digits -f json | jq '.[].config.lr'",
		Args:    between(0, 1),
	}, "table", "json", "jsonl", "csv", "yaml")
}

func newExport(g *globals) *cobra.Command {
	return newTrialList(g, &cobra.Command{
		Use:   "export [STUDY]",
		Short: "Write the trials of a study for other programs, or for import",
		Long: `Export writes the trials of a study to stdout: CSV for spreadsheets, JSON (a list), or
JSON lines. Import reads all three. NaN and the infinities are the strings nan, inf
and -inf; in CSV, text that a spreadsheet would take for a formula has a ' before it.
CSV has no late results, and import leaves those of JSON out.

It reads page by page: large studies take no more memory than small ones.`,
		Example: "  tuner export digits > digits.csv\n  tuner export digits -f jsonl | tuner --db other.db import digits -",
		Args:    between(0, 1),
	}, "csv", "json", "jsonl", "yaml")
}

func newTrialList(g *globals, cmd *cobra.Command, forms ...string) *cobra.Command {
	var flags filterFlags
	flags.add(cmd)
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
			out, err := trialSink(cmd.OutOrStdout(), form.value, view.Spec)
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
			if broken > 0 && form.value == "table" {
				g.note(cmd, "%s breaks a constraint (%s): not the best, whatever it measured.", breaksMark, judge.Constraints())
			}
			return nil
		})
	}
	return cmd
}

func newBest(g *globals) *cobra.Command {
	var form *format
	cmd := &cobra.Command{
		Use:   "best [STUDY]",
		Short: "Show the best trial, or the Pareto front",
		Long: `Best shows the completed trial with the best objective, or with several objectives all
that no other beats in every one. Trials are compared by what the model of the
proposer bkb expects of them, which a lucky measurement does not deceive; without a
model, by the means of their replicates. Where another trial measured better, stderr says
which. If none completed yet it is exit status 3.

Where it lies at an end of a parameter's range, stderr says that too, and how to go on
with a wider one; json, jsonl and yaml have it in edges. That is the first or the last
value, or within 1 % of the range on its scale. Not meant are ranges of at most four
values, and ends with nothing beyond: 0, a count of 1, and 1 of a range of shares that
is not logarithmic.

The forms args and env write only its configuration, for shells.`,
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
				if err := printBest(cmd.OutOrStdout(), form.value, view, best); err != nil || form.value != "table" {
					return err
				}
				return g.remarkBest(ctx, cmd, svc, view, best)
			})
		},
	}
	form = formatFlag(cmd, "table", "json", "jsonl", "csv", "yaml", "args", "env")
	return cmd
}

func printBest(out io.Writer, form string, view tuner.Study, best []study.Trial) error {
	one := len(view.Spec.Objectives) == 1
	switch {
	case form == "args":
		return printArgs(out, best)
	case form == "env" && !one:
		return usagef("-f env is for one objective: this study has several, and %d best trials", len(best))
	case form == "env":
		return printConfigEnv(out, view.Spec.Space, best[0].Config)
	case form == "json" && one:
		return writeJSON(out, ofBest(view, best[0]))
	case form == "yaml" && one:
		return writeYAML(out, ofBest(view, best[0]))
	}
	s, err := trialSink(out, form, view.Spec)
	if form == "table" {
		s = newTrialTable(out, view.Spec, true)
	}
	if err != nil {
		return err
	}
	for _, t := range best {
		if err := s.put(ofBest(view, t)); err != nil {
			return err
		}
	}
	return s.end()
}

// ofBest is the written form of a trial that is recommended.
func ofBest(view tuner.Study, t study.Trial) record.Trial {
	r := record.NewJudge(view.Spec).OfTrial(t)
	r.Edges = record.OfEdges(autotune.Edges(view.Spec, t.Config))
	return r
}

// configText is a configuration in a few words, for people.
func configText(t study.Trial) string {
	words := make([]string, 0, t.Config.Len())
	for name, v := range t.Config.All() {
		words = append(words, name+"="+short(valueText(v), 32))
	}
	return clean(strings.Join(words, " "))
}
