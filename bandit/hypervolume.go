package bandit

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/sobol"
)

const (
	frontProbes = 2048 // points for comparing volumes of more than two objectives
	frontMargin = 0.1  // how far below the front volumes begin, relative to its extent
)

// HypervolumeSubset returns which keep of the points stay, ascending. It removes one point after
// another, the one that adds least to the dominated volume (SMS-EMOA: Beume, Naujoks and
// Emmerich 2007), and of equal ones the first. Larger is better. Volumes begin frontMargin
// below the least value of each objective, in units of its extent. The first best of each
// objective stays. Volumes are exact for two objectives, O(n²). For more they are shares of
// frontProbes points, O(n) each.
func HypervolumeSubset(points [][]float64, keep int) []int {
	left := make([]int, len(points))
	for i := range left {
		left[i] = i
	}
	if len(points) <= keep {
		return left
	}
	unit, best := toUnit(points)
	shares := sharesByProbes
	if len(unit[0]) == 2 {
		shares = sharesOfPlane
	}
	next := shares(unit)
	for len(left) > keep {
		least, drop := math.Inf(1), -1
		volume := next(left)
		for at, i := range left {
			if volume[at] < least && !slices.Contains(best, i) {
				least, drop = volume[at], at
			}
		}
		if drop < 0 {
			break // each is best at something
		}
		left = slices.Delete(left, drop, drop+1)
	}
	return left
}

// toUnit maps each objective onto [0, 1], where 0 is the point at which volumes begin. It
// also returns the points that are best at something.
func toUnit(points [][]float64) (unit [][]float64, best []int) {
	k := len(points[0])
	unit = make([][]float64, len(points))
	for i := range unit {
		unit[i] = make([]float64, k)
	}
	for j := range k {
		low, high, at := math.Inf(1), math.Inf(-1), 0
		for i, p := range points {
			low = min(low, p[j])
			if p[j] > high {
				high, at = p[j], i
			}
		}
		best = append(best, at)
		extent := high - low
		if extent == 0 {
			extent = 1
		}
		low -= frontMargin * extent
		for i, p := range points {
			unit[i][j] = (p[j] - low) / (high - low)
		}
	}
	return unit, best
}

// sharesOfPlane returns a function that computes, for two objectives, the area that each of
// the left points alone dominates.
func sharesOfPlane(unit [][]float64) func(left []int) []float64 {
	return func(left []int) []float64 {
		order := make([]int, len(left)) // by the first objective, descending
		for at := range order {
			order[at] = at
		}
		slices.SortStableFunc(order, func(a, b int) int {
			p, q := unit[left[a]], unit[left[b]]
			switch {
			case p[0] > q[0] || p[0] == q[0] && p[1] > q[1]:
				return -1
			case p[0] == q[0] && p[1] == q[1]:
				return 0
			}
			return 1
		})
		out := make([]float64, len(left))
		for n, at := range order {
			right, below := 0.0, 0.0 // neighbours' values, which bound the rectangle
			if n+1 < len(order) {
				right = unit[left[order[n+1]]][0]
			}
			if n > 0 {
				below = unit[left[order[n-1]]][1]
			}
			p := unit[left[at]]
			out[at] = max(p[0]-right, 0) * max(p[1]-below, 0)
		}
		return out
	}
}

// sharesByProbes is sharesOfPlane for any number of objectives. It counts how many probes
// each of the left points alone dominates.
func sharesByProbes(unit [][]float64) func(left []int) []float64 {
	k := len(unit[0])
	sequence, u := sobol.New(k, 0), make([]float64, k)
	above := make([][]int, frontProbes) // the points that dominate each probe
	for s := range above {
		sequence.At(uint32(s), u)
		for i, p := range unit {
			dominates := true
			for j, v := range u {
				dominates = dominates && p[j] >= v
			}
			if dominates {
				above[s] = append(above[s], i)
			}
		}
	}
	place := make([]int, len(unit)) // among those left, −1 for removed
	return func(left []int) []float64 {
		for i := range place {
			place[i] = -1
		}
		for at, i := range left {
			place[i] = at
		}
		out := make([]float64, len(left))
		for s, all := range above {
			here := all[:0]
			for _, i := range all {
				if place[i] >= 0 {
					here = append(here, i)
				}
			}
			if above[s] = here; len(here) == 1 {
				out[place[here[0]]] += 1.0 / frontProbes
			}
		}
		return out
	}
}
