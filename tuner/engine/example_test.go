package engine_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A service in the process tunes a function. Take bolt.Open in place of memory.New to
// keep the study in a file.
func Example() {
	ctx, service := context.Background(), engine.Open(memory.New(), engine.Options{})
	defer service.Close()
	sp, err := space.New(space.NewFloat("lr", 1e-5, 1).WithScale(space.Log))
	if err != nil {
		log.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	if _, err := service.CreateStudy(ctx, "digits", study.Create{Spec: spec}); err != nil {
		log.Fatal(err)
	}
	for range 25 {
		asked, err := service.Ask(ctx, "digits", study.Ask{Count: 1})
		if err != nil {
			log.Fatal(err)
		}
		trial := asked.Trials[0]
		loss := math.Abs(math.Log10(trial.Config.Number("lr")) + 2) // least at 0.01
		if _, err := service.Tell(ctx, "digits", study.Tell{Trial: trial.Number, Outcome: study.Measured("loss", loss)}); err != nil {
			log.Fatal(err)
		}
	}
	best, err := service.Best(ctx, "digits")
	if err != nil {
		log.Fatal(err)
	}
	lr := best[0].Config.Number("lr")
	fmt.Println(lr > 0.005 && lr < 0.02)
	// Output: true
}
