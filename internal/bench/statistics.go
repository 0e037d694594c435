package bench

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// mean returns the mean of v, NaN if there is none.
func mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return stat.Mean(v, nil)
}

// deviation returns the standard deviation of v (divisor n − 1), 0 for one number.
func deviation(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	return stat.StdDev(v, nil)
}

// Quantiles returns the p-quantiles of v, interpolated linearly; v is not changed.
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

// median returns the median of v.
func median(v []float64) float64 { return Quantiles(v, 0.5)[0] }

// slope returns the slope of log y over log x by least squares, NaN for fewer than
// two points. x and y are positive.
func slope(x, y []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	u, v := make([]float64, len(x)), make([]float64, len(y))
	for i := range x {
		u[i], v[i] = math.Log(x[i]), math.Log(y[i])
	}
	_, b := stat.LinearRegression(u, v, nil, false)
	return b
}

// logRatios returns log(a_i/b_i).
func logRatios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = math.Log(a[i] / b[i])
	}
	return out
}

// Bootstrap returns the ends of the two-sided 95 % percentile interval of a
// statistic of groups of numbers, each of which is drawn from anew with
// replacement, draws times.
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
