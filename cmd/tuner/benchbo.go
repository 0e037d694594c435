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
	"github.com/bkbtuner/bkb/figure"
	"github.com/spf13/cobra"
)

func newBenchBO(g *globals) *cobra.Command {
	var b benchingBO
	cmd := &cobra.Command{
		Use:   "bo",
		Short: "Compare optimisers on suites of problems",
		Long: `Bo runs optimisers on problems, from several seeds each, and compares them: normalised
regret, mean ranks, wins and losses with a test, an interval against random, and the
seconds of an ask. Every run is a file below --out. What is there is not run again, so
a comparison may be interrupted with Ctrl-C and goes on where it was, and a report
(--report) may be had at any time. --list lists suites, problems and optimisers.

Problems may be patterns (f08-*); one that is named in full is run whatever its tier.
Optimisers may be kinds: ours, ablation, baseline, peer. Peers are in Python, and want
--python; what is not installed is left out, and the result says so. --variant adds
BKB with other options under a name of your own.

With --latency it measures instead how long an ask takes after so many trials, with
how much memory, on a function of 8 inputs.`,
		Example: `  tuner bench bo --tier smoke
  tuner bench bo --suite bbob --optimiser bkb,random,sobol --seeds 5
  tuner bench bo --problem 'f08-*' --optimiser bkb --variant 'bold={"width": 0.2}'
  tuner bench bo --optimiser bkb --redo
  tuner bench bo --report --page docs/benchmarks.md`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context(), g, cmd) },
	}
	b.format = formatFlag(cmd, "table", "json")
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar((*string)(&b.c.Tier), "tier", string(bo.Standard), "how much: smoke (seconds), standard (hours) or full (days)")
	fs.StringSliceVar(&b.c.Suites, "suite", nil, "only these `suites`")
	fs.StringSliceVar(&b.c.Problems, "problem", nil, "only these `problems`, or patterns of them")
	fs.StringSliceVar(&b.c.Optimisers, "optimiser", nil, "only these `optimisers`, or kinds of them (default: ours, baselines, peers if --python is given)")
	fs.StringArrayVar(&b.variants, "variant", nil, "also BKB with other options, as `NAME=JSON`; may be given again")
	fs.IntVar(&b.c.Seeds, "seeds", 0, "seeds for each problem (0: the tier's; slow peers have half)")
	fs.IntVar(&b.c.Trials, "trials", 0, "trials of each run (0: the tier's)")
	fs.IntVar(&b.c.Jobs, "jobs", 1, "runs at a time; with more than one, asks are timed by the clock on the wall")
	fs.StringVar(&b.c.Out, "out", "bench-bo", "the `folder` of the runs")
	fs.StringVar(&b.c.Data, "data", "", "the `folder` of real data (default: $BKB_DATA, else ../shared/data)")
	fs.StringVar(&b.c.Python, "python", "", "the Python `interpreter` that has the peers, or the folder of make bench-bo-peers")
	fs.BoolVar(&b.redo, "redo", false, "delete the runs that are chosen first")
	fs.BoolVar(&b.report, "report", false, "run nothing: report on what is there")
	fs.BoolVar(&b.latency, "latency", false, "measure asks after many trials instead")
	fs.IntSliceVar(&b.sizes, "sizes", nil, "for --latency: after these numbers of `trials` (default: 100,1000,10000,100000)")
	fs.IntVar(&b.asks, "asks", 0, "for --latency: asks of each (0: 300; peers a fifteenth)")
	fs.BoolVar(&b.list, "list", false, "list suites, problems and optimisers")
	fs.StringVar(&b.page, "page", "", "write all tables as a page of Markdown into this `file`")
	fs.StringVar(&b.csv, "csv", "", "write each table as CSV into this `folder`")
	fs.StringVar(&b.png, "png", "", "draw each plot as PNG into this `folder`")
	return cmd
}

// benchingBO is the flags of bench bo.
type benchingBO struct {
	c                           bo.Comparison
	variants                    []string
	redo, report, latency, list bool
	sizes                       []int
	asks                        int
	page, csv, png              string
	format                      *format
}

func (b *benchingBO) run(ctx context.Context, g *globals, cmd *cobra.Command) error {
	for _, text := range b.variants {
		name, options, found := strings.Cut(text, "=")
		if !found || name == "" {
			return usagef("--variant %q: must be NAME=JSON, as bold={\"width\": 0.2}", text)
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
		return usagef("--redo, --report, --latency and --list exclude one another")
	case b.list:
		return b.lists(cmd.OutOrStdout())
	case b.latency:
		return b.latencies(ctx, g, cmd)
	case b.redo:
		n, err := b.c.Forget()
		if err != nil {
			return boError(err)
		}
		g.note(cmd, "bo: deleted %d runs", n)
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

// execute does the runs and says what became of them. What is broken, an
// interruption among it, leaves something to report on.
func (b *benchingBO) execute(ctx context.Context, g *globals, cmd *cobra.Command) (broken, err error) {
	progress := newBenchProgress(g, cmd, "bo")
	b.c.Progress = progress.report
	done, err := b.c.Execute(ctx)
	progress.end()
	if err != nil && ctx.Err() == nil {
		return nil, boError(err)
	}
	g.note(cmd, "bo: %d runs now, %d before, of %d", done.Ran, done.Had, done.Of)
	for _, reason := range done.LeftOut {
		g.note(cmd, "left out: %s", reason)
	}
	for _, failed := range done.Failed {
		g.note(cmd, "broke: %v", failed)
	}
	if err == nil && len(done.Failed) > 0 {
		err = fmt.Errorf("%d of %d runs broke; they are tried again next time", len(done.Failed), done.Of)
	}
	return err, nil
}

func (b *benchingBO) latencies(ctx context.Context, g *globals, cmd *cobra.Command) error {
	progress := newBenchProgress(g, cmd, "bo")
	b.c.Progress = progress.report
	result, err := b.c.Latency(ctx, b.sizes, b.asks)
	progress.end()
	if err != nil && (result == nil || len(result.Tables) == 0) {
		return boError(err)
	}
	return errors.Join(boError(err), b.write(g, cmd, result))
}

// write prints the result and writes the files that are wanted.
func (b *benchingBO) write(g *globals, cmd *cobra.Command, r *figure.Result) error {
	if b.format.value == "json" {
		if err := writeJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else if err := r.WriteText(cmd.OutOrStdout()); err != nil {
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
			g.note(cmd, "wrote %s", file)
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
	g.note(cmd, "wrote %s", b.page)
	return nil
}

// lists prints what there is to choose from.
func (b *benchingBO) lists(out io.Writer) error {
	t := newTable(out, "PROBLEM", "TIER", "SUITE")
	for _, s := range bo.Suites() {
		for _, l := range s.Problems {
			t.row(l.Name, string(l.Tier), s.Title)
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t = newTable(out, "OPTIMISER", "KIND", "WHAT IT IS")
	for _, k := range bo.Contestants() {
		t.row(k.Name, string(k.Kind), k.Title)
	}
	return t.end()
}

// boError gives errors of comparisons their exit status.
func boError(err error) error {
	selection, value := (*bo.SelectionError)(nil), (*bench.ValueError)(nil)
	switch {
	case errors.As(err, &selection):
		near := similar(selection.Name, selection.Known)
		if near == "" {
			return &statusError{exitNotFound, fmt.Errorf("there is no %s %q; list them with: tuner bench bo --list", selection.What, selection.Name)}
		}
		return &statusError{exitNotFound, fmt.Errorf("there is no %s %q; did you mean %s?", selection.What, selection.Name, near)}
	case errors.As(err, &value) && value.In == "bench":
		return usagef("%w", value)
	}
	return err
}
