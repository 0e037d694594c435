package learners

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/internal/stream"
)

// LargestEigenvalue estimates the largest eigenvalue of a symmetric positive semi-definite n×n
// matrix by power iteration, with one call of apply, dst = A·v, for each step. It is a lower bound,
// within some per cent after 20 steps, and 0 only for A = 0. The start depends on seed alone.
func LargestEigenvalue(ctx context.Context, n, steps int, seed uint64, apply func(ctx context.Context, dst, v []float64) error) (float64, error) {
	rng := stream.New(stream.Derive(seed, "power iteration", 0))
	v, av := make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	normalise(v)
	largest := 0.0
	for range steps {
		if err := apply(ctx, av, v); err != nil {
			return 0, err
		}
		quotient := 0.0
		for i, a := range av {
			quotient += a * v[i]
		}
		largest = max(largest, quotient)
		v, av = av, v
		if !normalise(v) {
			break
		}
	}
	return largest, nil
}

// normalise divides v by its norm, unless that is 0.
func normalise(v []float64) bool {
	s := 0.0
	for _, x := range v {
		s += x * x
	}
	if s == 0 {
		return false
	}
	s = 1 / math.Sqrt(s)
	for i := range v {
		v[i] *= s
	}
	return true
}
