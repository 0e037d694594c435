// Program bandit maximises a function on the points of a grid with BKB.
package main

import (
	"fmt"
	"log"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

func main() {
	arms := kernel.NewPoints[float64](441, 2, nil)
	for i := range arms.Len() {
		copy(arms.Row(i), []float64{float64(i%21) / 20, float64(i/21) / 20})
	}
	config := bandit.Config{Kernel: must(kernel.NewMatern52(0.5)), NoiseVariance: 1e-4}
	policy := must(bandit.NewBKB(bandit.BKBConfig{Config: config}, arms))
	for range 40 {
		arm := must(policy.Next()).Arm
		if err := policy.Observe(arm, -math.Hypot(arms.Row(arm)[0]-0.3, arms.Row(arm)[1]-0.7)); err != nil {
			log.Fatal(err)
		}
	}
	best := arms.Row(must(policy.Best()).Arm)
	fmt.Printf("x = (%.1f, %.1f)\n", best[0], best[1])
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
