package falkon

import (
	"context"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// Every fact that the user should know of a fit is noted once, and nothing else.
func TestNotes(t *testing.T) {
	rng := kerneltest.Seeded(t, 31)
	train, smooth := regression(rng, 300, 2, 2), regression(rng, 300, 1, 1)
	labels := classes(rng, 200, 2, 1)
	rough := kerneltest.Gaussian(0.3)
	repeated := learnerstest.Fixed{1, 1, 2, 3}
	for name, c := range map[string]struct {
		e     learners.Estimator
		train data.Source
		want  []string // beginnings of the notes
	}{
		"converged":        {Params{Kernel: rough, Lambda: 1e-3, Centers: 30, Iterations: 200}, train, nil},
		"few iterations":   {Params{Kernel: rough, Lambda: 1e-3, Centers: 30, Iterations: 1}, train, []string{"not converged: after 1 iterations the relative residual is "}},
		"gradient":         {Params{Kernel: rough, Lambda: 1e-3, Centers: 30, Iterations: 2, Solver: Gradient}, train, []string{"not converged: after 2 "}},
		"beyond rounding":  {Params{Kernel: rough, Lambda: 1e-3, Centers: 30, Iterations: 300, Tolerance: 1e-300}, train, []string{"rounding ended the iteration at "}},
		"equal centres":    {Params{Kernel: rough, Lambda: 1e-3, Sampler: repeated, Iterations: 200}, train, []string{"the sampler chose 4 centres for λ = ", "of 4 centres, 1 are "}},
		"equal, Cholesky":  {Params{Kernel: rough, Lambda: 1e-3, Sampler: repeated, Iterations: 200, Factorization: FactorCholesky}, train, []string{"the sampler chose 4 centres for λ = ", "of 4 centres, 1 are "}},
		"raised":           {Params{Kernel: kerneltest.Gaussian(2), Lambda: 1e-4, Centers: 100, Factorization: FactorCholesky, Epsilon: 1e-22, Iterations: 200, Tolerance: 1e-3}, smooth, []string{"epsilon was raised from 1e-22 to "}},
		"logistic":         {LogisticParams{Params: Params{Kernel: rough, Lambda: 1e-3, Centers: 30}}, labels, nil},
		"logistic, short":  {LogisticParams{Params: Params{Kernel: rough, Lambda: 1e-6, Centers: 30, Iterations: 1}}, labels, []string{"not converged: after 1 Newton steps μ is "}},
		"logistic, strict": {LogisticParams{Params: Params{Kernel: rough, Lambda: 1, Centers: 30, Iterations: 1, Tolerance: 1e-300}, Steps: 1}, labels, []string{"not converged: after 1 Newton steps the gradient has norm "}},
	} {
		var notes []string
		_, err := c.e.Fit(context.Background(), c.train, learners.Options{Seed: 3, Progress: func(p learners.Progress) error {
			notes = append(notes, p.Notes...)
			return nil
		}})
		ok := err == nil && len(notes) == len(c.want)
		for i := 0; ok && i < len(notes); i++ {
			ok = strings.HasPrefix(notes[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: notes %q, %v; want %q", name, notes, err, c.want)
		}
	}
}
