package theory_test

import (
	"fmt"

	"github.com/bkbtuner/bkb/learners/theory"
)

// This is the result of the theory of SGD with random features for a million rows.
func ExampleSchedule_Settings() {
	for _, g := range []theory.Regularity{theory.WorstCase(), {R: 0.75, Alpha: 0.5}} {
		s, err := theory.MiniBatches.Settings(1_000_000, g)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("b = %d, γ = %g/κ², %d steps, %.1f passes, M = %d\n", s.BatchSize, s.StepSize, s.Iterations, s.Passes, s.Features)
	}
	// Output:
	// b = 1000, γ = 1/κ², 1000 steps, 1.0 passes, M = 4000
	// b = 31623, γ = 1/κ², 1000 steps, 31.6 passes, M = 22494
}

func ExampleLambda() {
	_, err := theory.Lambda(1000, theory.Regularity{R: 2, Alpha: 0.5})
	fmt.Println(err)
	// Output:
	// theory: r is 2, want in [1/2, 1] (Assumption 5); use 1/2 if nothing is known
}
