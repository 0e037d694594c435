package sgdrf_test

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/sgdrf"
)

// This fits two classes and 20,000 rows that are generated while they are read. Only a
// chunk and the features of a mini-batch are in memory.
func Example() {
	ctx := context.Background()
	problem := data.SUSYLike{Seed: 1}
	train, err := data.Generate[float32](problem, 0, 20000)
	if err != nil {
		fmt.Println(err)
		return
	}
	test, err := data.Generate[float32](problem, 1<<20, 5000)
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err := kernel.NewGaussian(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = sgdrf.Params{Kernel: k, Passes: 3}.Fit(ctx, train, learners.Options{
		Seed:       1,
		Validation: test,
		Measure:    learners.ClassError,
		Progress: func(p learners.Progress) error {
			fmt.Printf("pass %d of %d: below 0.17 is %v\n", p.Iteration, p.Iterations, p.ValidationError < 0.17)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// pass 1 of 3: below 0.17 is true
	// pass 2 of 3: below 0.17 is true
	// pass 3 of 3: below 0.17 is true
}
