package bandit

import "math"

// argmaxUCB returns the arm with the largest μ + b·σ, the lowest of equals. It takes a
// root only where an arm may have the largest.
func argmaxUCB(mean, variance []float64, b float64) int {
	best, arm, b2 := math.Inf(-1), 0, b*b
	for i, m := range mean {
		d := best - m
		if d >= 0 && b2*variance[i] < d*d*(1-1e-12) {
			continue
		}
		if u := m + b*math.Sqrt(variance[i]); u > best {
			best, arm = u, i
		}
	}
	return arm
}

// argmax returns the index of the largest number, the lowest of equals.
func argmax(v []float64) int {
	arm := 0
	for i, m := range v {
		if m > v[arm] {
			arm = i
		}
	}
	return arm
}
