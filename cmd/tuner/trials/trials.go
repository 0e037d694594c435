// Package trials has the commands on the trials of a study: ask, tell, report and what lists them.
package trials

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

type filterFlags struct {
	filter tuner.Filter
	states []string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&f.states, "state", nil, "`state` of the trials, one of "+strings.Join(study.States(), ", ")+" (repeatable)")
	fs.StringVar(&f.filter.Worker, "worker", "", "`name` of the worker that ran the trials last")
	fs.IntVar(&f.filter.First, "first", 0, "`number` of the first trial")
	fs.IntVar(&f.filter.Limit, "limit", 0, "`number` of trials, 0 for all")
	cli.Register(cmd, "state", cli.Words(study.States()...))
}

func (f *filterFlags) parse() (tuner.Filter, error) {
	for _, word := range f.states {
		s, err := study.ParseState(word)
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

// NewTrialList completes a command that lists trials in the given forms, the first by default.
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
		return g.WithView(cmd, args, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
			out, err := trialSink(g, cmd, *form, view.Spec, false, width(cmd.OutOrStdout()))
			if err != nil {
				return err
			}
			judge, broken := record.NewJudge(view.Spec), 0
			filter.Reports = *form != "table"
			for t, err := range cli.AllTrials(ctx, svc, view.Name, filter) {
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
			return g.WithView(cmd, args, func(ctx context.Context, svc tuner.Service, view tuner.Study) error {
				best, err := svc.Best(ctx, view.Name)
				if err != nil {
					return err
				}
				if whole := []string{"json", "jsonl", "csv", "yaml"}; slices.Contains(whole, *form) {
					for i := range best {
						if best[i].Reports, err = cli.AllReports(ctx, svc, view.Name, best[i].Number); err != nil {
							return err
						}
					}
				}
				if len(best) == 0 {
					return cli.Exit(cli.ExitNotFound, fmt.Errorf("study %s has no completed trial yet", view.Name))
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
		return printEnv(out, "", view.Spec.Space, best[0].Config)
	case form == "json" && one:
		return cli.WriteJSON(out, ofBest(view, best[0]))
	case form == "yaml" && one:
		return cli.WriteYAML(out, ofBest(view, best[0]))
	}
	s, err := trialSink(g, cmd, form, view.Spec, true, width)
	if err != nil {
		return err
	}
	for _, t := range best {
		if err := s.Put(ofBest(view, t)); err != nil {
			return err
		}
	}
	return s.End()
}

func ofBest(view tuner.Study, t study.Trial) record.Trial {
	r := record.NewJudge(view.Spec).OfTrial(t)
	r.Edges = record.OfEdges(autotune.Edges(view.Spec, t.Config))
	return r
}

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return cli.Connects(cli.ToService,
		newAsk(g), newTell(g), newReport(g), newHeartbeat(g), newEnqueue(g), newNote(g), newStop(g), newTrials(g), newBest(g), newWatch(g), newArtifacts(g))
}

type csvSink struct {
	w      *csv.Writer
	header []string
}

func (s *csvSink) Put(v any) error {
	row, err := v.(record.Trial).CSVRow(s.header)
	if err != nil {
		return err
	}
	return s.w.Write(row)
}

func (s *csvSink) End() error {
	s.w.Flush()
	return s.w.Error()
}

// breaksMark marks a completed trial that breaks a constraint.
const breaksMark = "!"

// parameterText is the value of a parameter, empty if it is inactive.
func parameterText(c space.Config, name string, of func(space.Value) string) string {
	v, ok := c.Get(name)
	if !ok {
		return ""
	}
	return of(v)
}

// MeanText is the value of an objective with at most six digits, and its standard error.
func MeanText(r record.Trial, name string) string {
	values, ok := r.Values[name]
	if !ok {
		return ""
	}
	m := study.Metric{Name: name, Values: values}
	if s, ok := r.StdErr[name]; ok {
		m.StdErr, m.HasStdErr = float64(s), true
	}
	text := metric.FormatNumber(m.Mean())
	if short := fmt.Sprintf("%.6g", m.Mean()); len(short) < len(text) {
		text = short
	}
	if s, ok := m.StandardError(); ok {
		text += fmt.Sprintf("±%.2g", s)
	}
	return text
}

// trialSink writes trials in a format. A table may be brief, and its width of 0 means no limit.
func trialSink(g *cli.Globals, cmd *cobra.Command, form string, spec study.Spec, brief bool, width int) (cli.Sink, error) {
	switch out := cmd.OutOrStdout(); form {
	case "csv":
		s := &csvSink{csv.NewWriter(out), record.CSVHeader(spec)}
		return s, s.w.Write(s.header)
	case "table":
		t := newTrialTable(out, spec, brief, width)
		t.left = func() { g.RemarkLeft(cmd, t.Table) }
		return t, nil
	default:
		return &cli.ListSink{Out: out, Format: form}, nil
	}
}

type trialTable struct {
	*cli.Table
	left    func() // notes the columns that were left out
	spec    study.Spec
	metrics []string // objectives, and metrics with a limit
	brief   bool     // without worker and message
}

// newTrialTable returns a table for trials. A width of 0 means no limit.
func newTrialTable(out io.Writer, spec study.Spec, brief bool, width int) *trialTable {
	const least = 6 // of a text
	header := []string{"TRIAL", "STATE"}
	t := &trialTable{spec: spec, brief: brief}
	for _, o := range spec.Objectives {
		t.metrics = append(t.metrics, o.Name)
	}
	for _, name := range propose.ConstrainedMetrics(spec.Proposer) {
		if !slices.Contains(t.metrics, name) {
			t.metrics = append(t.metrics, name)
		}
	}
	for _, name := range t.metrics {
		header = append(header, strings.ToUpper(name))
	}
	var drop []int
	cuts := map[int]int{}
	for _, p := range spec.Space.Parameters() {
		if drop = append(drop, len(header)); p.Type != space.TypeFloat && p.Type != space.TypeInt { // numbers are whole
			cuts[len(header)] = least
		}
		header = append(header, p.Name)
	}
	slices.Reverse(drop)
	if !brief {
		n := len(header)
		drop = slices.Concat([]int{n}, drop, []int{n + 1})
		cuts[n], cuts[n+1] = least, 2*least
		header = append(header, "WORKER", "MESSAGE")
	}
	t.Table = cli.NewTable(out, header...)
	t.Width, t.Record, t.Least, t.Drop, t.Colors = width, brief, cuts, drop, map[int]func(string) string{1: cli.StateColor}
	return t
}

func (t *trialTable) Put(v any) error {
	r := v.(record.Trial)
	state := r.State
	if r.Reason != "" {
		state += "(" + r.Reason + ")"
	}
	if r.Feasible != nil && !*r.Feasible && r.State == study.Completed.String() {
		state += " " + breaksMark
	}
	row := []string{fmt.Sprint(r.Trial), state}
	for _, name := range t.metrics {
		row = append(row, MeanText(r, name))
	}
	for _, p := range t.spec.Space.Parameters() {
		row = append(row, t.atMost(parameterText(r.Config, p.Name, space.Value.Short), 32))
	}
	if !t.brief {
		row = append(row, r.Worker, t.atMost(r.Message, 60))
	}
	t.Row(row...)
	return nil
}

func (t *trialTable) End() error {
	defer t.left()
	return t.Table.End()
}

// atMost cuts a text, unless the width of the table has no limit or it may be a list.
func (t *trialTable) atMost(text string, n int) string {
	if t.Width == 0 || t.Record {
		return text
	}
	return cli.Short(text, n)
}
