package bandit_test

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// This runs BKB on 101 arms of a line, with each reward observed at once.
func Example() {
	arms := kernel.NewPoints[float64](101, 1, nil)
	for i := range 101 {
		arms.Row(i)[0] = float64(i) / 100
	}
	k, err := kernel.NewGaussian(0.1)
	if err != nil {
		panic(err)
	}
	policy, err := bandit.NewBKB(bandit.BKBConfig{Config: bandit.Config{Kernel: k, NoiseVariance: 0.01}}, arms)
	if err != nil {
		panic(err)
	}
	for range 60 {
		d, err := policy.Next()
		if err != nil {
			panic(err)
		}
		x := arms.Row(d.Arm)[0]
		if err := policy.Observe(d.Arm, math.Sin(5*x)*(1-x)); err != nil {
			panic(err)
		}
	}
	best, err := policy.Best()
	if err != nil {
		panic(err)
	}
	fmt.Printf("x = %.2f, %d inducing points\n", arms.Row(best.Arm)[0], best.InducingPoints)
	// Output: x = 0.26, 12 inducing points
}

// Four workers run at a time. Pulls are announced, and rewards come later.
func ExampleBBKB() {
	arms := kernel.NewPoints(5, 1, []float64{0, 0.25, 0.5, 0.75, 1})
	k, err := kernel.NewGaussian(0.3)
	if err != nil {
		panic(err)
	}
	policy, err := bandit.NewBBKB(bandit.BKBConfig{Config: bandit.Config{Kernel: k, NoiseVariance: 1}}, arms)
	if err != nil {
		panic(err)
	}
	for range 20 {
		var batch []int
		for range 4 {
			d, err := policy.Next()
			if err != nil { // bandit.ErrBatchFull, wait for rewards
				break
			}
			if err := policy.Pull(d.Arm); err != nil {
				panic(err)
			}
			batch = append(batch, d.Arm)
		}
		for _, arm := range batch {
			if err := policy.Observe(arm, float64(arm)); err != nil {
				panic(err)
			}
		}
	}
	best, err := policy.Best()
	if err != nil {
		panic(err)
	}
	fmt.Println("arm", best.Arm)
	// Output: arm 4
}
