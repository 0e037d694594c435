package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Quantiles returns the p-quantiles of v, interpolated linearly. It does not change v.
func Quantiles(v []float64, p ...float64) []float64 {
	sorted := slices.Sorted(slices.Values(v))
	out := make([]float64, len(p))
	for i, q := range p {
		out[i] = math.NaN()
		if n := len(sorted); n > 0 {
			at := q * float64(n-1)
			low := min(int(at), n-1)
			high := min(low+1, n-1)
			out[i] = sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
		}
	}
	return out
}

// Bootstrap returns the ends of the two-sided 95 % percentile interval of a statistic of
// groups of numbers. Each group is resampled with replacement, draws times.
func Bootstrap(groups [][]float64, draws int, rng *rand.Rand, statistic func([][]float64) float64) (low, high float64) {
	values, again := make([]float64, draws), make([][]float64, len(groups))
	for g := range groups {
		again[g] = make([]float64, len(groups[g]))
	}
	for b := range values {
		for g, v := range groups {
			for i := range v {
				again[g][i] = v[rng.IntN(len(v))]
			}
		}
		values[b] = statistic(again)
	}
	q := Quantiles(values, 0.025, 0.975)
	return q[0], q[1]
}
