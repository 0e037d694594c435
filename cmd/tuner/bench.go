package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/bench"
	"github.com/bkbtuner/bkb/bench/papers"
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/figure"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newBench(g *cli.Globals) *cobra.Command {
	var b benching
	cmd := &cobra.Command{
		Use:   "bench [EXPERIMENT...]",
		Short: "Repeat the experiments of the papers",
		Long: `Bench repeats figures and tables of the papers that this program is built on, and
measures its parts. Without EXPERIMENT it lists the experiments.

With EXPERIMENT and --help it describes the experiment. Tables go to stdout, and --csv and
--png write them and the plots to files. Experiments without their data are left out, and
the result says so. All results except times follow from --seed. Ctrl-C ends an experiment
and prints the completed parts.

` + benchList(),
		Example: `  tuner bench fig5.1 --quick
  tuner bench fig5.2 --full --csv figures --png figures`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return benchNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd.Context(), g, cmd, args) },
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Flags"}, func(fs *pflag.FlagSet) {
		fs.BoolVar(&b.quick, "quick", false, "a run of seconds, to show that it works")
		fs.BoolVar(&b.full, "full", false, "a run as close to the paper as this machine allows")
		fs.StringSliceVar(&b.env.Only, "only", nil, "`parts` of the experiment to run (default all)")
		fs.Uint64Var(&b.env.Seed, "seed", 1, "seed of random numbers")
		fs.IntVar(&b.env.Repeats, "repeats", 0, "number of repetitions (default the experiment's)")
		fs.IntVar(&b.env.Workers, "workers", 0, "number of threads (default one per processor)")
		fs.StringVar(&b.env.Data, "data", "", "`directory` of real data (default $BKB_DATA)")
		fs.StringVar(&b.csv, "csv", "", "`directory` for tables as CSV, or a file *.csv for one table")
		fs.StringVar(&b.png, "png", "", "`directory` for plots as PNG")
	})
	b.format = cli.FormatFlag(cmd, "table", "json")
	cmd.AddCommand(newBenchBO(g))
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if !b.describe(cmd, cmd.Flags().Args()) {
			cli.ShowHelp(cmd, args)
		}
	})
	return cmd
}

// benchList is the section of the help page that lists the experiments.
func benchList() string {
	var b strings.Builder
	b.WriteString("Experiments:")
	for _, e := range papers.All() {
		fmt.Fprintf(&b, "\n%s", cli.ListLine(e.Name, e.Title))
	}
	return b.String()
}

func benchNames() []string {
	var names []string
	for _, e := range papers.All() {
		names = append(names, e.Name)
	}
	return names
}

// benching holds the flags of bench.
type benching struct {
	env         bench.Env
	quick, full bool
	csv, png    string
	format      *cli.Format
}

func (b *benching) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return b.list(cmd)
	}
	experiments, err := b.chosen(args)
	if err != nil {
		return err
	}
	for i, e := range experiments {
		if i > 0 && b.format.Value == "table" {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := b.one(ctx, g, cmd, e); err != nil {
			return err
		}
	}
	return nil
}

// list prints the experiments.
func (b *benching) list(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if b.format.Value == "json" {
		for _, e := range papers.All() {
			if err := cli.WriteJSON(out, experimentRecord(e)); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(out, "EXPERIMENT", "TITLE AND SOURCE")
	t.Width, t.Least, t.Wrap = cli.OutputWidth(out), map[int]int{1: 20}, true
	for _, e := range papers.All() {
		t.Row(e.Name, e.Title+" ("+e.Source+")")
	}
	return t.End()
}

// described is an experiment in JSON.
type described struct {
	Experiment string   `json:"experiment"`
	Title      string   `json:"title"`
	Source     string   `json:"source"`
	Parts      []string `json:"parts,omitempty"`
}

func experimentRecord(e bench.Experiment) described {
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
	groups, _ := cli.FlagsOf(cmd)
	for _, fs := range groups {
		fmt.Fprintf(out, "\n%s:\n%s", fs.Name(), cli.FlagLines(fs))
	}
	return true
}

// chosen returns the named experiments and prepares their environment.
func (b *benching) chosen(args []string) ([]bench.Experiment, error) {
	var out []bench.Experiment
	for _, name := range args {
		e, err := papers.Find(name)
		if err != nil {
			near := "list them with tuner bench"
			if n := cli.Similar(name, benchNames()); n != "" {
				near = fmt.Sprintf("did you mean %s?", n)
			}
			return nil, cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no experiment %q; %s", name, near))
		}
		out = append(out, e)
	}
	switch {
	case b.quick && b.full:
		return nil, cli.Usagef("--quick and --full exclude each other")
	case b.quick:
		b.env.Scale = bench.Quick
	case b.full:
		b.env.Scale = bench.Full
	}
	if strings.HasSuffix(b.csv, ".csv") && len(out) > 1 {
		return nil, cli.Usagef("--csv %s: is one file for %d experiments; name a directory", b.csv, len(out))
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
	Scale      bench.Scale `json:"scale"`
	Seed       uint64      `json:"seed"`
	Complete   bool        `json:"complete"`
	Seconds    float64     `json:"seconds"`
	CPUSeconds float64     `json:"cpu_seconds"`
	Version    string      `json:"version"`
	Go         string      `json:"go"`
	System     string      `json:"system"`
	Processors int         `json:"processors"`
	*figure.Result
}

// one runs one experiment and writes its result, or the completed part of it.
func (b *benching) one(ctx context.Context, g *cli.Globals, cmd *cobra.Command, e bench.Experiment) error {
	env, watch := b.env, bench.StartWatch()
	progress := newBenchProgress(g, cmd, e.Name)
	env.Progress = progress.report
	result, err := e.Run(ctx, &env)
	progress.End()
	if err != nil && (result == nil || len(result.Tables) == 0) {
		return benchError(err)
	}
	m := measured{
		experimentRecord(e), env.Scale, env.Seed, err == nil, watch.Wall(), watch.CPU(),
		cli.Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.GOMAXPROCS(0), result,
	}
	return errors.Join(benchError(err), b.write(g, cmd, m))
}

func (b *benching) write(g *cli.Globals, cmd *cobra.Command, m measured) error {
	out := cmd.OutOrStdout()
	if b.format.Value == "json" {
		if err := cli.WriteJSON(out, m); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s\n\n", figure.Wrap(m.Title+" ("+m.Source+")", cli.OutputWidth(out), ""))
		if err := m.WriteText(out, cli.OutputWidth(out)); err != nil {
			return err
		}
	}
	state := ""
	if !m.Complete {
		state = ", not complete"
	}
	g.Note(cmd, "%s: %s, seed %d, %d processors, %.1f s (%.1f s of CPU)%s", m.Experiment, m.Scale, m.Seed, m.Processors, m.Seconds, m.CPUSeconds, state)
	return b.writeFiles(g, cmd, m)
}

func (b *benching) writeFiles(g *cli.Globals, cmd *cobra.Command, m measured) error {
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
			g.Note(cmd, "Wrote %s.", file)
		}
	}
	return nil
}

// benchError gives errors of experiments their exit status.
func benchError(err error) error {
	part, value, data := (*bench.PartError)(nil), (*bench.ValueError)(nil), (*bench.DataError)(nil)
	switch {
	case errors.As(err, &part):
		return cli.Usagef("--only: %w", part)
	case errors.As(err, &value) && value.In == "bench":
		return cli.Usagef("%w", value)
	case errors.As(err, &data):
		return cli.Exit(cli.ExitNotFound, data)
	}
	return err
}

// benchProgress is a line on a terminal with the progress.
type benchProgress struct {
	terminal *os.File // nil if there is none
	name     string
	began    time.Time
}

func newBenchProgress(g *cli.Globals, cmd *cobra.Command, name string) *benchProgress {
	p := &benchProgress{name: name, began: time.Now()}
	if !g.Quiet {
		p.terminal = cli.TerminalOf(cmd.ErrOrStderr())
	}
	return p
}

func (p *benchProgress) report(at bench.Progress) {
	if p.terminal == nil {
		return
	}
	fmt.Fprintf(p.terminal, "\r\x1b[K%s", cli.Short(p.line(at, time.Since(p.began)), cli.OutputWidth(p.terminal)-1))
}

// line is the text of the line after so much time.
func (p *benchProgress) line(at bench.Progress, elapsed time.Duration) string {
	text := p.name
	if at.Of > 0 {
		text += fmt.Sprintf("  %d/%d", at.Done, at.Of)
	}
	return text + "  " + elapsed.Round(time.Second).String() + "  " + at.What
}

// End removes the line.
func (p *benchProgress) End() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
}
