package avgsgd_test

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/learners/avgsgd"
	"github.com/bkbtuner/bkb/learners/data"
)

// The best number of steps grows faster than n on a hard problem.
func ExampleStudy() {
	curve, err := avgsgd.Study{
		Problem:     data.Spline{Alpha: 3, R: 1.0 / 6, Sigma: 1, Terms: 100},
		Sizes:       []int{32, 64},
		Repetitions: 8,
		Passes:      300,
	}.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("more passes for more rows:", curve.Slope > 1)
	// Output:
	// more passes for more rows: true
}
