package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// demoSpace is what the demonstration searches.
const demoSpace = `version: 1
parameters:
  lr:        {type: float, low: 1e-5, high: 1, scale: log}
  batch:     {type: int, low: 8, high: 512, scale: log}
  optimizer: {type: categorical, values: [sgd, adam]}
  momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`

// runDemo tunes a training that is only pretended: no network, no other program,
// a few seconds.
func runDemo(g *globals, cmd *cobra.Command, args []string, r *running) error {
	if len(args) > 0 || r.spec.given(cmd) {
		return usagef("--demo brings its own study and command: give neither")
	}
	if g.server != "" {
		return usagef("--demo works on a file, not on a server")
	}
	if err := demoFile(g, r); err != nil {
		return err
	}
	sp, _, err := space.Parse([]byte(demoSpace))
	if err != nil {
		return err
	}
	spec := study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		MaxTrials: 60, MaxRetries: defaultMaxRetries, Seed: 1, Pruner: study.Component{Name: "median"},
	}
	o := &r.options
	o.Study, o.Func = "demo", pretend
	if !cmd.Flags().Changed("parallel") {
		o.Parallel = 4
	}
	g.note(cmd, "Tuning a pretended training: learning rate, batch size, optimizer, momentum; 60 trials, %d at a time.", o.Parallel)
	return g.with(cmd, mayCreate, func(ctx context.Context, svc tuner.Service) error {
		_, err := svc.CreateStudy(ctx, o.Study, study.Create{Spec: spec})
		if err != nil && tuner.CodeOf(err) != tuner.AlreadyExists {
			return err
		}
		err = r.run(ctx, g, cmd, svc)
		if interrupted := errors.Is(err, context.Canceled); err == nil || interrupted {
			demoNext(g, cmd, interrupted)
		}
		return err
	})
}

// demoFile chooses where the demonstration keeps its study.
func demoFile(g *globals, r *running) error {
	if g.db == "" {
		dir, err := os.MkdirTemp("", "tuner-demo-")
		if err != nil {
			return err
		}
		g.db = filepath.Join(dir, "demo.db")
	}
	if r.options.LogDir == "" {
		r.options.LogDir = g.db + ".logs"
	}
	return nil
}

// demoNext says what to do next.
func demoNext(g *globals, cmd *cobra.Command, interrupted bool) {
	file, program := shellQuote(g.db), programName()
	g.note(cmd, "\nThe best there is: loss=0.1 with adam, lr=0.003, batch=64.\nAll of it is in %s. Go on with\n", file)
	next := [][2]string{
		{"trials demo --db " + file, "every trial"},
		{"best demo --db " + file + " -f args", "the best, for a shell"},
		{"replay demo --db " + file, "recompute it from its log"},
		{"run --help", "tune a program of your own"},
	}
	if interrupted {
		next = append([][2]string{{"run --demo --db " + file, "the rest"}}, next...)
	}
	table := tabwriter.NewWriter(cmd.ErrOrStderr(), 0, 8, 2, ' ', 0)
	for _, n := range next {
		if !g.quiet {
			fmt.Fprintf(table, "  %s %s\t# %s\n", program, n[0], n[1])
		}
	}
	table.Flush()
}

// programName is how the program was called: go run leaves no file to call.
func programName() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/tuner"
	}
	return "tuner"
}

// pretend is a training whose loss is a formula. It reports nine epochs.
func pretend(ctx context.Context, t study.Trial, out io.Writer) error {
	const epochs = 9
	final := pretendedLoss(t.Config)
	for epoch := 1; epoch <= epochs; epoch++ {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		loss := final + 2.2*math.Exp(-float64(epoch)/2)
		if _, err := fmt.Fprintf(out, "step=%d loss=%.5f\n", epoch, loss); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "loss=%.5f\n", final)
	return err
}

// pretendedLoss is 0.1 at its least: adam, lr = 0.003, batch = 64.
func pretendedLoss(c space.Config) float64 {
	value := func(name string) float64 {
		v, _ := c.Get(name)
		x, _ := v.Number()
		return x
	}
	lr, batch := math.Log10(value("lr")/0.003), math.Log2(value("batch")/64)
	loss := 0.1 + 0.15*lr*lr + 0.01*batch*batch
	if v, _ := c.Get("optimizer"); v == space.String("sgd") {
		m := value("momentum") - 0.9
		loss += 0.05 + 0.3*m*m
	}
	return math.Min(loss, 2.3)
}
