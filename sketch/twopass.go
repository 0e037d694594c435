package sketch

import (
	"context"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// TwoPass scores all rows by a uniform dictionary of q₁κ²/λ rows. It keeps each with
// probability p = min(1, q₂ℓ̃) and weight A = p (Carratino 2020, §5.1.3, after El
// Alaoui and Mahoney, 2015). It costs n·κ²/λ evaluations and n·(κ²/λ)² operations.
type TwoPass struct {
	// Oversampling is q₂ > 0, or 0 for 3.
	Oversampling float64
	// Uniform is q₁ > 0, or 0 for 2.
	Uniform float64
	// Bound is κ², or 0 for the bound of the kernel.
	Bound float64
	// Workers is the number of goroutines, or 0 for one per processor.
	Workers int
}

// Sample reads the source twice, and once more for the points, see [Sampler].
func (t TwoPass) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	if err := checkSampling("TwoPass", k, src, lambda); err != nil {
		return nil, err
	}
	q2, err := orDefault("TwoPass", "Oversampling", t.Oversampling, defaultOversampling, 0)
	if err != nil {
		return nil, err
	}
	q1, err := orDefault("TwoPass", "Uniform", t.Uniform, defaultUniform, 0)
	if err != nil {
		return nil, err
	}
	bound, err := boundOf("TwoPass", k, t.Bound)
	if err != nil {
		return nil, err
	}
	n := src.Len()
	first, err := dictionaryAt(ctx, k, src, uniformLevel(n, ceil(q1*bound/lambda, n), lambda, rng))
	if err != nil {
		return nil, err
	}
	scores, err := first.Scores(ctx, k, src, t.Workers)
	if err != nil {
		return nil, err
	}
	return byScores(ctx, k, src, lambda, scores, q2, rng)
}
