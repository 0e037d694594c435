// Program service tunes a function with the service in the process.
package main

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func main() {
	ctx, service := context.Background(), engine.Open(memory.New(), engine.Options{})
	defer service.Close()
	must(service.CreateStudy(ctx, "digits", study.Create{Spec: study.Spec{
		Space:      must(space.New(space.NewFloat("lr", 1e-5, 1).WithScale(space.Log))),
		Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}},
	}}))
	for range 30 {
		trial := must(service.Ask(ctx, "digits", study.Ask{Count: 1})).Trials[0]
		loss := math.Abs(math.Log10(trial.Config.Number("lr")) + 2) // train here
		must(service.Tell(ctx, "digits", study.Tell{Trial: trial.Number, Outcome: study.Measured("loss", loss)}))
	}
	fmt.Println(must(service.Best(ctx, "digits"))[0].Config)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
