package data

import (
	"math"
	"slices"
)

// Copies are rows as often as their weights say. Whole weights, such as 3, are numbers of
// copies. Of other weights only ratios count, and there are as many copies as rows with a
// weight above 0. Copies of a row stand together.
type Copies struct {
	n    int
	ends []float64 // Σ_{j≤i} s_j in copies, or nil if each row is there once
}

// mostCopies limits the sum of whole weights. Beyond, only their ratios count.
const mostCopies = math.MaxInt32

// NewCopies returns the copies of n rows with weights ≥ 0, of which one is positive, or nil
// for 1 each.
func NewCopies(weights []float64, n int) *Copies {
	if weights == nil {
		return &Copies{n: n}
	}
	c := &Copies{ends: make([]float64, len(weights))}
	whole, counted := true, 0
	for _, s := range weights {
		whole = whole && s == math.Trunc(s)
		if s > 0 {
			counted++
		}
	}
	sums := func(unit float64) (sum float64) {
		for i, s := range weights {
			sum += s / unit
			c.ends[i] = sum
		}
		return sum
	}
	if sum := sums(1); whole && sum <= mostCopies {
		c.n = int(sum)
		return c
	}
	c.n = counted
	scale := float64(counted) / sums(slices.Max(weights)) // the sum of the weights may overflow
	for i := range c.ends {
		c.ends[i] *= scale
	}
	return c
}

// Len returns the number of copies.
func (c *Copies) Len() int { return c.n }

// Row returns the row of copy v. Of weights that are not whole it is the one in which the
// middle of the copy lies.
func (c *Copies) Row(v int) int {
	if c.ends == nil {
		return v
	}
	i, _ := slices.BinarySearch(c.ends, float64(v)+0.5)
	return i
}

// Counted returns the rows with a weight above 0, or nil if all have one.
func Counted(weights []float64) []int {
	if !slices.Contains(weights, 0) {
		return nil
	}
	rows := []int{}
	for i, s := range weights {
		if s != 0 {
			rows = append(rows, i)
		}
	}
	return rows
}

// Pick returns the numbers at the given places. It is nil for nil numbers.
func Pick[T any](from []T, at []int) []T {
	if from == nil {
		return nil
	}
	out := make([]T, len(at))
	for k, i := range at {
		out[k] = from[i]
	}
	return out
}
