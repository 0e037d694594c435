package papers

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/bkbtuner/bkb/bench/experiment"
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

// median returns the median of v.
func median(v []float64) float64 { return experiment.Quantiles(v, 0.5)[0] }

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
