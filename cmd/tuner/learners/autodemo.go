package learners

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/spf13/cobra"
)

// The demonstration is Friedman's first problem, which has five inputs that matter and
// five that do not.
const (
	demoRows   = 800
	demoTrials = 15 // as long as 30 without learned length scales, and with less error
	demoNoise  = 1
)

// runDemo tunes FALKON on generated data.
func (a *autoRun) runDemo(g *cli.Globals, cmd *cobra.Command, args []string) error {
	if len(args) > 0 || len(a.data.paths) > 0 {
		return cli.Usagef("--demo has its own data and algorithm; leave them out")
	}
	if g.Server != "" {
		return cli.Usagef("--demo works on a file; leave --server out")
	}
	if g.Store != "" {
		return cli.Usagef("--demo works on a file; leave --store out")
	}
	if g.Db == "" {
		dir, err := os.MkdirTemp("", "tuner-demo-")
		if err != nil {
			return err
		}
		g.Db = filepath.Join(dir, "demo.db")
	}
	file := g.Db + ".csv"
	if err := writeDemoData(file); err != nil {
		return err
	}
	a.data.paths, a.data.options.Target = []string{file}, []string{"y"}
	a.study, a.logDir = "demo", g.Db+".logs"
	if a.out == "" {
		a.out = g.Db + ".model"
	}
	if !cmd.Flags().Changed("trials") {
		a.trials = demoTrials
	}
	if !cmd.Flags().Changed("folds") {
		a.folds = 1 // five folds take five times as long, and one is enough to show
	}
	g.Note(cmd, "Tuning FALKON on %d generated rows in\n%s.\nTheir noise has the standard deviation %d, so the rmse cannot be lower.", demoRows, file, demoNoise)
	err := a.run(cmd.Context(), g, cmd, "falkon")
	if errors.Is(err, context.Canceled) {
		g.NoteCommands(cmd, [][2]string{{"the rest of the demonstration", "auto --demo --db " + cli.ShellQuote(g.Db)}})
	}
	return err
}

// writeDemoData writes generated rows, the same each time.
func writeDemoData(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	problem := data.Friedman{Kind: 1, Noise: demoNoise, Seed: 1}
	rows, x := problem.Sampler(), make([]float64, problem.Dim())
	for j := range x {
		fmt.Fprintf(w, "x%d,", j+1)
	}
	fmt.Fprintln(w, "y")
	for i := range uint64(demoRows) {
		y := rows.At(i, x)
		for _, v := range x {
			fmt.Fprintf(w, "%s,", strconv.FormatFloat(v, 'g', 8, 64))
		}
		fmt.Fprintln(w, strconv.FormatFloat(y, 'g', 8, 64))
	}
	return w.Flush()
}
