package runner_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Run asks, runs and tells until the study ends. Func takes the place of a command, and
// prints as a command does.
func ExampleRun() {
	ctx, service := context.Background(), engine.Open(memory.New(), engine.Options{})
	defer service.Close()
	sp, err := space.New(space.NewFloat("x", -1, 1))
	if err != nil {
		log.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, MaxTrials: 12}
	if _, err := service.CreateStudy(ctx, "bowl", study.Create{Spec: spec}); err != nil {
		log.Fatal(err)
	}
	summary, err := runner.Run(ctx, service, runner.Options{
		Study: "bowl", Parallel: 2, Worker: "example",
		Func: func(_ context.Context, t study.Trial, stdout io.Writer) error {
			x := t.Config.Number("x")
			_, err := fmt.Fprintf(stdout, "loss=%g\n", x*x)
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Counts[study.Completed])
	// Output: 12
}
