// Program bandit maximises a function on a box with BKB.
package main

import (
	"fmt"
	"log"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

func main() {
	config := bandit.Config{Kernel: must(kernel.NewMatern52(0.5)), NoiseVariance: 1e-4}
	policy := must(bandit.NewContinuous(bandit.ContinuousConfig{
		BKBConfig: bandit.BKBConfig{Config: config}, Lo: []float64{0, 0}, Hi: []float64{1, 1},
	}))
	for range 40 {
		next := must(policy.Next())
		if err := policy.Observe(next.X, -math.Hypot(next.X[0]-0.3, next.X[1]-0.7)); err != nil {
			log.Fatal(err)
		}
	}
	best := must(policy.Best())
	fmt.Printf("x = (%.1f, %.1f)\n", best.X[0], best.X[1])
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
