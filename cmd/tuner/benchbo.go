package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bkbtuner/bkb/bench"
	"github.com/bkbtuner/bkb/bench/bo"
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/figure"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newBenchBO(g *cli.Globals) *cobra.Command {
	var b benchingBO
	cmd := &cobra.Command{
		Use:   "bo",
		Short: "Compare optimisers on suites of problems",
		Long: `Bo runs optimisers on problems with several seeds each, and compares normalised regret,
mean ranks, wins and losses with a test, and the seconds of an ask.

Every run is a file below --out. Existing runs are not repeated, so that an interrupted
comparison continues, and --report works at any time. With --list it lists suites,
problems and optimisers.

A problem may be a pattern such as f08-*. A problem with its full name runs in every tier.
An optimiser may be a kind, which is ours, ablation, baseline or peer. Peers need --python.
Peers that are not installed are left out, and the result says so. With --latency it
measures the time and memory of an ask after many trials instead.`,
		Example: `  tuner bench bo --tier smoke
  tuner bench bo --suite bbob --optimiser bkb,random,sobol --seeds 5
  tuner bench bo --problem 'f08-*' --optimiser bkb --variant 'b={"width": 0.2}'`,
		Args: cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context(), g, cmd) },
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Selection"}, func(fs *pflag.FlagSet) {
		fs.StringVar((*string)(&b.c.Tier), "tier", string(bo.Standard), "`tier`, smoke (seconds), standard (hours), full (days)")
		fs.StringSliceVar(&b.c.Suites, "suite", nil, "`suites` (default all)")
		fs.StringSliceVar(&b.c.Problems, "problem", nil, "`problems` or patterns (default all)")
		fs.StringSliceVar(&b.c.Optimisers, "optimiser", nil, "`optimisers` or kinds (default ours, baselines, peers)")
		fs.StringArrayVar(&b.variants, "variant", nil, "BKB with other options, `NAME=JSON` (repeatable)")
		fs.BoolVar(&b.list, "list", false, "list of suites, problems and optimisers")
	})
	cli.FlagGroup(cmd, cli.Group{Title: "Runs"}, func(fs *pflag.FlagSet) {
		fs.IntVar(&b.c.Seeds, "seeds", 0, "seeds of each problem (default the tier's)")
		fs.IntVar(&b.c.SkipSeeds, "skip-seeds", 0, "`number` of seeds to leave out, such as those that settings were chosen on")
		fs.IntVar(&b.c.Trials, "trials", 0, "trials of each run (default the tier's)")
		fs.IntVar(&b.c.Jobs, "jobs", 1, "runs at a time")
		fs.StringVar(&b.c.Out, "out", "bench-bo", "`directory` of the runs")
		fs.StringVar(&b.c.Data, "data", "", "`directory` of real data (default $BKB_DATA)")
		fs.StringVar(&b.c.Python, "python", "", "`interpreter` of the peers, or a directory of them")
		fs.BoolVar(&b.redo, "redo", false, "deletion of the selected runs first")
	})
	cli.FlagGroup(cmd, cli.Group{Title: "Asks"}, func(fs *pflag.FlagSet) {
		fs.BoolVar(&b.latency, "latency", false, "time and memory of asks instead")
		fs.IntSliceVar(&b.sizes, "sizes", nil, "`numbers` of trials for --latency (default 100,1000,10000,100000)")
		fs.IntVar(&b.asks, "asks", 0, "asks for --latency (default 300, and 20 for peers)")
	})
	cli.FlagGroup(cmd, cli.Output, func(fs *pflag.FlagSet) {
		fs.BoolVar(&b.report, "report", false, "report on existing runs only")
		fs.StringVar(&b.page, "page", "", "Markdown `file` for all tables")
		fs.StringVar(&b.csv, "csv", "", "`directory` for tables as CSV")
		fs.StringVar(&b.png, "png", "", "`directory` for plots as PNG")
	})
	b.format = cli.FormatFlag(cmd, "table", "json")
	cli.Assign(cmd.Flag("format"), cli.Output)
	cli.Register(cmd, "tier", cli.Words(string(bo.Smoke), string(bo.Standard), string(bo.Full)))
	return cmd
}

// benchingBO holds the flags of bench bo.
type benchingBO struct {
	c                           bo.Comparison
	variants                    []string
	redo, report, latency, list bool
	sizes                       []int
	asks                        int
	page, csv, png              string
	format                      *cli.Format
}

func (b *benchingBO) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command) error {
	for _, text := range b.variants {
		name, options, found := strings.Cut(text, "=")
		if !found || name == "" {
			return cli.Usagef("--variant %q: must be NAME=JSON, such as bold={\"width\": 0.2}", text)
		}
		v, err := bo.Variant(name, options)
		if err != nil {
			return cli.Usagef("--variant %s: %w", name, err)
		}
		b.c.Variants = append(b.c.Variants, v)
	}
	b.c.Data = dataFolder(b.c.Data)
	chosen := 0
	for _, flag := range []bool{b.redo, b.report, b.latency, b.list} {
		if flag {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return cli.Usagef("--redo, --report, --latency and --list exclude each other")
	case b.list:
		return b.lists(cmd.OutOrStdout())
	case b.latency:
		return b.latencies(ctx, g, cmd)
	case b.redo:
		n, err := b.c.Forget()
		if err != nil {
			return boError(err)
		}
		g.Note(cmd, "bo: deleted %d runs", n)
	}
	var broken error
	if !b.report {
		var err error
		if broken, err = b.execute(ctx, g, cmd); err != nil {
			return err
		}
	}
	result, err := b.c.Report()
	if err != nil {
		return boError(err)
	}
	return errors.Join(broken, b.write(g, cmd, result))
}

// execute does the runs and notes their number. A broken run or an interruption still
// leaves a report.
func (b *benchingBO) execute(ctx context.Context, g *cli.Globals, cmd *cobra.Command) (broken, err error) {
	progress := newBenchProgress(g, cmd, "bo")
	b.c.Progress = progress.report
	done, err := b.c.Execute(ctx)
	progress.End()
	if err != nil && ctx.Err() == nil {
		return nil, boError(err)
	}
	g.Note(cmd, "bo: %d runs now, %d before, of %d", done.Ran, done.Had, done.Of)
	for _, reason := range done.LeftOut {
		g.Note(cmd, "Left out: %s.", reason)
	}
	for _, failed := range done.Failed {
		g.Note(cmd, "Failed: %v.", failed)
	}
	if err == nil && len(done.Failed) > 0 {
		err = fmt.Errorf("%d of %d runs failed; repeat the command to try them again", len(done.Failed), done.Of)
	}
	return err, nil
}

func (b *benchingBO) latencies(ctx context.Context, g *cli.Globals, cmd *cobra.Command) error {
	progress := newBenchProgress(g, cmd, "bo")
	b.c.Progress = progress.report
	result, err := b.c.Latency(ctx, b.sizes, b.asks)
	progress.End()
	if err != nil && (result == nil || len(result.Tables) == 0) {
		return boError(err)
	}
	return errors.Join(boError(err), b.write(g, cmd, result))
}

// write prints the result and writes the files.
func (b *benchingBO) write(g *cli.Globals, cmd *cobra.Command, r *figure.Result) error {
	if b.format.Value == "json" {
		if err := cli.WriteJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else if err := r.WriteText(cmd.OutOrStdout(), cli.OutputWidth(cmd.OutOrStdout())); err != nil {
		return err
	}
	for _, w := range []struct {
		folder string
		write  func(name, folder string) ([]string, error)
	}{{b.csv, r.WriteCSVFiles}, {b.png, r.WritePNGFiles}} {
		if w.folder == "" {
			continue
		}
		files, err := w.write("bo", w.folder)
		if err != nil {
			return err
		}
		for _, file := range files {
			g.Note(cmd, "Wrote %s.", file)
		}
	}
	if b.page == "" {
		return nil
	}
	text, err := b.c.Page(r)
	if err != nil {
		return boError(err)
	}
	if err := os.WriteFile(b.page, text, 0o644); err != nil {
		return err
	}
	g.Note(cmd, "Wrote %s.", b.page)
	return nil
}

// lists prints the suites, problems and optimisers.
func (b *benchingBO) lists(out io.Writer) error {
	t := cli.NewTable(out, "PROBLEM", "TIER", "SUITE")
	t.Width, t.Least = cli.OutputWidth(out), map[int]int{2: 20}
	t.Wrap = true
	for _, s := range bo.Suites() {
		for _, l := range s.Problems {
			t.Row(l.Name, string(l.Tier), s.Title)
		}
	}
	if err := t.End(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t = cli.NewTable(out, "OPTIMISER", "KIND", "TITLE")
	t.Width, t.Least = cli.OutputWidth(out), map[int]int{2: 20}
	t.Wrap = true
	for _, k := range bo.Contestants() {
		t.Row(k.Name, string(k.Kind), k.Title)
	}
	return t.End()
}

// boError gives errors of comparisons their exit status.
func boError(err error) error {
	selection, value := (*bo.SelectionError)(nil), (*bench.ValueError)(nil)
	switch {
	case errors.As(err, &selection):
		near := cli.Similar(selection.Name, selection.Known)
		if near == "" {
			return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no %s %q; list them with tuner bench bo --list", selection.What, selection.Name))
		}
		return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no %s %q; did you mean %s?", selection.What, selection.Name, near))
	case errors.As(err, &value) && value.In == "bench":
		return cli.Usagef("%w", value)
	}
	return err
}
