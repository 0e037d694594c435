// Bench repeats the experiments of the papers, and compares optimisers.
//
//	go -C bench run . fig5.1 --quick
//	go -C bench run . bo --tier smoke
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/papers"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/spf13/cobra"
)

func main() { os.Exit(program()) }

// program runs this process's command line.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := simd.Check()
	if err != nil {
		err = usagef("%w", err)
	} else {
		cmd := newBench()
		cmd.SetArgs(args)
		cmd.SetOut(stdout)
		cmd.SetErr(stderr)
		err = cmd.ExecuteContext(ctx)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = &statusError{exitInterrupted, errors.New("interrupted")}
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	return statusOf(err)
}

func newBench() *cobra.Command {
	var b benching
	cmd := &cobra.Command{
		Use:   "bench [EXPERIMENT...]",
		Short: "Repeat the experiments of the papers",
		Long: `Bench repeats figures and tables of the papers that BKB Tuner is built on, and measures
its parts. Without EXPERIMENT it lists the experiments.

With EXPERIMENT and --help it describes the experiment. Tables go to stdout, and --csv and
--png write them and the plots to files. Experiments without their data are left out, and
the result says so. All results except times follow from --seed. Ctrl-C ends an experiment
and prints the completed parts.`,
		Example: `  bench fig5.1 --quick
  bench fig5.2 --full --csv figures --png figures`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, args []string) error { return b.run(cmd.Context(), cmd, args) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&b.quick, "quick", false, "a run of seconds, to show that it works")
	fs.BoolVar(&b.full, "full", false, "a run as close to the paper as this machine allows")
	fs.StringSliceVar(&b.env.Only, "only", nil, "`parts` of the experiment to run (default all)")
	fs.Uint64Var(&b.env.Seed, "seed", 1, "seed of random numbers")
	fs.IntVar(&b.env.Repeats, "repeats", 0, "number of repetitions (default the experiment's)")
	fs.IntVar(&b.env.Workers, "workers", 0, "number of threads (default one per processor)")
	fs.StringVar(&b.env.Data, "data", "", "`directory` of real data (default $BKB_DATA)")
	fs.StringVar(&b.csv, "csv", "", "`directory` for tables as CSV, or a file *.csv for one table")
	fs.StringVar(&b.png, "png", "", "`directory` for plots as PNG")
	b.console.flags(cmd)
	cmd.AddCommand(newBO())
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if !b.describe(cmd, cmd.Flags().Args()) {
			help(cmd, args)
		}
	})
	return cmd
}

func experimentNames() []string {
	var names []string
	for _, e := range papers.All() {
		names = append(names, e.Name)
	}
	return names
}

// benching holds the flags of bench.
type benching struct {
	env         experiment.Env
	quick, full bool
	csv, png    string
	console
}

func (b *benching) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if err := b.check(); err != nil {
		return err
	}
	if len(args) == 0 {
		return b.list(cmd)
	}
	experiments, err := b.chosen(args)
	if err != nil {
		return err
	}
	for i, e := range experiments {
		if i > 0 && b.format == "table" {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := b.one(ctx, cmd, e); err != nil {
			return err
		}
	}
	return nil
}

// list prints the experiments.
func (b *benching) list(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if b.format == "json" {
		for _, e := range papers.All() {
			if err := writeJSON(out, experimentRecord(e)); err != nil {
				return err
			}
		}
		return nil
	}
	r := &report.Result{}
	t := r.Table("experiments", "", report.Column{Name: "experiment"}, report.Column{Name: "title and source"})
	for _, e := range papers.All() {
		t.Add(e.Name, e.Title+" ("+e.Source+")")
	}
	return r.WriteText(out, widthOf(out))
}

// described is an experiment in JSON.
type described struct {
	Experiment string   `json:"experiment"`
	Title      string   `json:"title"`
	Source     string   `json:"source"`
	Parts      []string `json:"parts,omitempty"`
}

func experimentRecord(e experiment.Experiment) described {
	return described{e.Name, e.Title, e.Source, e.Parts}
}

// describe describes an experiment, if one is named.
func (b *benching) describe(cmd *cobra.Command, args []string) bool {
	if len(args) != 1 {
		return false
	}
	e, err := papers.Find(args[0])
	if err != nil {
		return false
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s (%s)\n\n%s\n", e.Title, e.Source, strings.TrimSpace(e.About))
	if len(e.Parts) > 0 {
		fmt.Fprintf(out, "\nParts (for --only): %s\n", strings.Join(e.Parts, ", "))
	}
	if e.Repeats > 0 {
		fmt.Fprintf(out, "Repeats: %d, fewer with --quick\n", e.Repeats)
	}
	fmt.Fprintf(out, "\nUsage:\n  %s %s [flags]\n", cmd.CommandPath(), e.Name)
	fmt.Fprintf(out, "\nFlags:\n%s", cmd.LocalFlags().FlagUsages())
	return true
}

// chosen returns the named experiments and prepares their environment.
func (b *benching) chosen(args []string) ([]experiment.Experiment, error) {
	var out []experiment.Experiment
	for _, name := range args {
		e, err := papers.Find(name)
		if err != nil {
			return nil, unknown("experiment", name, experimentNames(), "bench")
		}
		out = append(out, e)
	}
	switch {
	case b.quick && b.full:
		return nil, usagef("--quick and --full exclude each other")
	case b.quick:
		b.env.Scale = experiment.Quick
	case b.full:
		b.env.Scale = experiment.Full
	}
	if strings.HasSuffix(b.csv, ".csv") && len(out) > 1 {
		return nil, usagef("--csv %s: is one file for %d experiments; name a directory", b.csv, len(out))
	}
	b.env.Data = dataFolder(b.env.Data)
	return out, b.prepare()
}

// prepare creates the directories before time is spent.
func (b *benching) prepare() error {
	csv := b.csv
	if strings.HasSuffix(csv, ".csv") {
		csv = filepath.Dir(csv)
	}
	for _, folder := range []string{csv, b.png} {
		if folder == "" {
			continue
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// dataFolder is the folder of real data, empty if there is none.
func dataFolder(flag string) string {
	if flag != "" {
		return flag
	}
	return os.Getenv("BKB_DATA")
}

// measured is a result in JSON, with its origin.
type measured struct {
	described
	Scale      experiment.Scale `json:"scale"`
	Seed       uint64           `json:"seed"`
	Complete   bool             `json:"complete"`
	Seconds    float64          `json:"seconds"`
	CPUSeconds float64          `json:"cpu_seconds"`
	Version    string           `json:"version"`
	Go         string           `json:"go"`
	System     string           `json:"system"`
	Processors int              `json:"processors"`
	*report.Result
}

// one runs one experiment and writes its result, or the completed part of it.
func (b *benching) one(ctx context.Context, cmd *cobra.Command, e experiment.Experiment) error {
	env, watch := b.env, experiment.StartWatch()
	progress := b.progress(cmd, e.Name)
	env.Progress = progress.report
	result, err := e.Run(ctx, &env)
	progress.end()
	if err != nil && (result == nil || len(result.Tables) == 0) {
		return benchError(err)
	}
	m := measured{
		experimentRecord(e), env.Scale, env.Seed, err == nil, watch.Wall(), watch.CPU(),
		version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.GOMAXPROCS(0), result,
	}
	return errors.Join(benchError(err), b.write(cmd, m))
}

func (b *benching) write(cmd *cobra.Command, m measured) error {
	out := cmd.OutOrStdout()
	if b.format == "json" {
		if err := writeJSON(out, m); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s\n\n", report.Wrap(m.Title+" ("+m.Source+")", widthOf(out), ""))
		if err := m.WriteText(out, widthOf(out)); err != nil {
			return err
		}
	}
	state := ""
	if !m.Complete {
		state = ", not complete"
	}
	b.note(cmd, "%s: %s, seed %d, %d processors, %.1f s (%.1f s of CPU)%s", m.Experiment, m.Scale, m.Seed, m.Processors, m.Seconds, m.CPUSeconds, state)
	return b.writeFiles(cmd, m)
}

func (b *benching) writeFiles(cmd *cobra.Command, m measured) error {
	for _, w := range []struct {
		path  string
		write func(name, path string) ([]string, error)
	}{{b.csv, m.WriteCSVFiles}, {b.png, m.WritePNGFiles}} {
		if w.path == "" {
			continue
		}
		files, err := w.write(m.Experiment, w.path)
		if err != nil {
			return err
		}
		for _, file := range files {
			b.note(cmd, "Wrote %s.", file)
		}
	}
	return nil
}

// benchError gives errors of experiments their exit status.
func benchError(err error) error {
	part, value, data := (*experiment.PartError)(nil), (*experiment.ValueError)(nil), (*experiment.DataError)(nil)
	switch {
	case errors.As(err, &part):
		return usagef("--only: %w", part)
	case errors.As(err, &value) && value.In == "bench":
		return usagef("%w", value)
	case errors.As(err, &data):
		return &statusError{exitNotFound, data}
	}
	return err
}

// progressLine is a line on a terminal with the progress.
type progressLine struct {
	terminal *os.File // nil if there is none
	name     string
	began    time.Time
}

func (c *console) progress(cmd *cobra.Command, name string) *progressLine {
	p := &progressLine{name: name, began: time.Now()}
	if !c.quiet {
		p.terminal = terminalOf(cmd.ErrOrStderr())
	}
	return p
}

func (p *progressLine) report(at experiment.Progress) {
	if p.terminal == nil {
		return
	}
	line := []rune(p.line(at, time.Since(p.began)))
	fmt.Fprintf(p.terminal, "\r\x1b[K%s", string(line[:min(len(line), widthOf(p.terminal)-1)]))
}

// line is the text of the line after so much time.
func (p *progressLine) line(at experiment.Progress, elapsed time.Duration) string {
	text := p.name
	if at.Of > 0 {
		text += fmt.Sprintf("  %d/%d", at.Done, at.Of)
	}
	return text + "  " + elapsed.Round(time.Second).String() + "  " + at.What
}

// end removes the line.
func (p *progressLine) end() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
}
