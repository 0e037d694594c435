package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bkbtuner/bkb/bench/bo"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/spf13/cobra"
)

func newBO() *cobra.Command {
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
		Example: `  bench bo --tier smoke
  bench bo --suite bbob --optimiser bkb,random,sobol --seeds 5
  bench bo --problem 'f08-*' --optimiser bkb --variant 'b={"width": 0.2}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context(), cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar((*string)(&b.c.Tier), "tier", string(bo.Standard), "`tier`, smoke (seconds), standard (hours), full (days)")
	fs.StringSliceVar(&b.c.Suites, "suite", nil, "`suites` (default all)")
	fs.StringSliceVar(&b.c.Problems, "problem", nil, "`problems` or patterns (default all)")
	fs.StringSliceVar(&b.c.Optimisers, "optimiser", nil, "`optimisers` or kinds (default ours, baselines, peers)")
	fs.StringArrayVar(&b.variants, "variant", nil, "BKB with other options, `NAME=JSON` (repeatable)")
	fs.BoolVar(&b.list, "list", false, "list of suites, problems and optimisers")
	fs.IntVar(&b.c.Seeds, "seeds", 0, "seeds of each problem (default the tier's)")
	fs.IntVar(&b.c.SkipSeeds, "skip-seeds", 0, "`number` of seeds to leave out, such as those that settings were chosen on")
	fs.IntVar(&b.c.Trials, "trials", 0, "trials of each run (default the tier's)")
	fs.IntVar(&b.c.Jobs, "jobs", 1, "runs at a time")
	fs.StringVar(&b.c.Out, "out", "bench-bo", "`directory` of the runs")
	fs.StringVar(&b.c.Data, "data", "", "`directory` of real data (default $BKB_DATA)")
	fs.StringVar(&b.c.Python, "python", "", "`interpreter` of the peers, or a directory of them")
	fs.BoolVar(&b.redo, "redo", false, "deletion of the selected runs first")
	fs.BoolVar(&b.latency, "latency", false, "time and memory of asks instead")
	fs.IntSliceVar(&b.sizes, "sizes", nil, "`numbers` of trials for --latency (default 100,1000,10000,100000)")
	fs.IntVar(&b.asks, "asks", 0, "asks for --latency (default 300, and 20 for peers)")
	fs.BoolVar(&b.report, "report", false, "report on existing runs only")
	fs.StringVar(&b.page, "page", "", "Markdown `file` for all tables")
	fs.StringVar(&b.csv, "csv", "", "`directory` for tables as CSV")
	fs.StringVar(&b.png, "png", "", "`directory` for plots as PNG")
	b.console.flags(cmd)
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
	console
}

func (b *benchingBO) run(ctx context.Context, cmd *cobra.Command) error {
	if err := b.check(); err != nil {
		return err
	}
	for _, text := range b.variants {
		name, options, found := strings.Cut(text, "=")
		if !found || name == "" {
			return usagef("--variant %q: must be NAME=JSON, such as bold={\"width\": 0.2}", text)
		}
		v, err := bo.Variant(name, options)
		if err != nil {
			return usagef("--variant %s: %w", name, err)
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
		return usagef("--redo, --report, --latency and --list exclude each other")
	case b.list:
		return b.lists(cmd.OutOrStdout())
	case b.latency:
		return b.latencies(ctx, cmd)
	case b.redo:
		n, err := b.c.Forget()
		if err != nil {
			return boError(err)
		}
		b.note(cmd, "bo: deleted %d runs", n)
	}
	var broken error
	if !b.report {
		var err error
		if broken, err = b.execute(ctx, cmd); err != nil {
			return err
		}
	}
	result, err := b.c.Report()
	if err != nil {
		return boError(err)
	}
	return errors.Join(broken, b.write(cmd, result))
}

// execute does the runs and notes their number. A broken run or an interruption still
// leaves a report.
func (b *benchingBO) execute(ctx context.Context, cmd *cobra.Command) (broken, err error) {
	progress := b.progress(cmd, "bo")
	b.c.Progress = progress.report
	done, err := b.c.Execute(ctx)
	progress.end()
	if err != nil && ctx.Err() == nil {
		return nil, boError(err)
	}
	b.note(cmd, "bo: %d runs now, %d before, of %d", done.Ran, done.Had, done.Of)
	for _, reason := range done.LeftOut {
		b.note(cmd, "Left out: %s.", reason)
	}
	for _, failed := range done.Failed {
		b.note(cmd, "Failed: %v.", failed)
	}
	if err == nil && len(done.Failed) > 0 {
		err = fmt.Errorf("%d of %d runs failed; repeat the command to try them again", len(done.Failed), done.Of)
	}
	return err, nil
}

func (b *benchingBO) latencies(ctx context.Context, cmd *cobra.Command) error {
	progress := b.progress(cmd, "bo")
	b.c.Progress = progress.report
	result, err := b.c.Latency(ctx, b.sizes, b.asks)
	progress.end()
	if err != nil && (result == nil || len(result.Tables) == 0) {
		return boError(err)
	}
	return errors.Join(boError(err), b.write(cmd, result))
}

// write prints the result and writes the files.
func (b *benchingBO) write(cmd *cobra.Command, r *report.Result) error {
	if b.format == "json" {
		if err := writeJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else if err := r.WriteText(cmd.OutOrStdout(), widthOf(cmd.OutOrStdout())); err != nil {
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
			b.note(cmd, "Wrote %s.", file)
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
	b.note(cmd, "Wrote %s.", b.page)
	return nil
}

// lists prints the suites, problems and optimisers.
func (b *benchingBO) lists(out io.Writer) error {
	column := func(name string) report.Column { return report.Column{Name: name} }
	r := &report.Result{}
	problems := r.Table("problems", "", column("problem"), column("tier"), column("suite"))
	for _, s := range bo.Suites() {
		for _, l := range s.Problems {
			problems.Add(l.Name, string(l.Tier), s.Title)
		}
	}
	optimisers := r.Table("optimisers", "", column("optimiser"), column("kind"), column("title"))
	for _, k := range bo.Contestants() {
		optimisers.Add(k.Name, string(k.Kind), k.Title)
	}
	return r.WriteText(out, widthOf(out))
}

// boError gives errors of comparisons their exit status.
func boError(err error) error {
	var selection *bo.SelectionError
	if errors.As(err, &selection) {
		return unknown(selection.What, selection.Name, selection.Known, "bench bo --list")
	}
	return err
}
