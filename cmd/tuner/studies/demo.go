package studies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

const demoSpace = `version: 1
parameters:
  lr:        {type: float, low: 1e-5, high: 1, scale: log}
  batch:     {type: int, low: 8, high: 512, scale: log}
  optimizer: {type: categorical, values: [sgd, adam]}
  momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`

// runDemo tunes a simulated training run. It takes a few seconds and needs no network and
// no other program.
func runDemo(g *cli.Globals, cmd *cobra.Command, args []string, r *running) error {
	if len(args) > 0 || r.spec.given(cmd) {
		return cli.Usagef("--demo has its own study and command; leave them out")
	}
	if err := DemoFile(g); err != nil {
		return err
	}
	if r.options.LogDir == "" {
		r.options.LogDir = g.Db + ".logs"
	}
	sp, _, err := space.Parse([]byte(demoSpace))
	if err != nil {
		return err
	}
	spec := study.Spec{
		Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
		MaxTrials: 60, MaxRetries: study.DefaultMaxRetries, Seed: 1, Pruner: study.Component{Name: "median"},
	}
	o := &r.options
	o.Study, o.Func = "demo", simulate
	if !cmd.Flags().Changed("parallel") {
		o.Parallel = 4
	}
	g.Note(cmd, "Tuning a simulated training run with 60 trials, %d at a time.\nThe parameters are learning rate, batch size, optimizer and momentum.", o.Parallel)
	return g.With(cmd, cli.MayCreate, func(ctx context.Context, svc tuner.Service) error {
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

// DemoFile chooses the file for the study of a demonstration.
func DemoFile(g *cli.Globals) error {
	for _, f := range []struct{ flag, value string }{{"server", g.Server}, {"store", g.Store}} {
		if f.value != "" {
			return cli.Usagef("--demo works on a file; leave --%s out", f.flag)
		}
	}
	if g.Db != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "tuner-demo-")
	g.Db = filepath.Join(dir, "demo.db")
	return err
}

func demoNext(g *cli.Globals, cmd *cobra.Command, interrupted bool) {
	file := cli.ShellQuote(g.Db)
	g.Note(cmd, "\nThe optimum is loss=0.1 with adam, lr=0.003, batch=64.\nThe study is in %s.", file)
	next := [][2]string{
		{"every trial", "trials demo --db " + file},
		{"the best configuration, for a shell", "best demo --db " + file + " -f args"},
		{"a check that the log gives the same suggestions", "replay demo --db " + file},
		{"how to tune a program of your own", "run --help"},
	}
	if interrupted {
		next = append([][2]string{{"the rest of the demonstration", "run --demo --db " + file}}, next...)
	}
	g.NoteCommands(cmd, next)
}

// simulate is a training run whose loss is a formula. It reports nine epochs.
func simulate(ctx context.Context, t study.Trial, out io.Writer) error {
	const epochs = 9
	final := simulatedLoss(t.Config)
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

// simulatedLoss has its minimum 0.1 at adam, lr = 0.003, batch = 64.
func simulatedLoss(c space.Config) float64 {
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
