// Program bandit finds the best of some points with BKB.
package main

import (
	"fmt"
	"log"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

func main() {
	arms := kernel.NewPoints(8, 2, []float64{0.1, 0.9, 0.3, 0.3, 0.3, 0.7, 0.5, 0.5, 0.5, 0.9, 0.7, 0.3, 0.7, 0.7, 0.9, 0.1})
	policy := must(bandit.NewBKB(bandit.BKBConfig{
		Config: bandit.Config{Kernel: must(kernel.NewMatern52(0.5)), NoiseVariance: 1e-4},
	}, arms))
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
