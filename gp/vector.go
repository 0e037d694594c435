package gp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

func vec(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Inc: 1, Data: x} }

func dot(x, y []float64) float64 { return floats.Dot(x, y) }

// axpy adds a·x to y.
func axpy(a float64, x, y []float64) { blas64.Axpy(a, vec(x), vec(y)) }

// square returns ‖x‖².
func square(x []float64) float64 {
	return dot(x, x)
}

func norm(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return blas64.Nrm2(vec(x))
}

// log2Pi is log 2π.
var log2Pi = math.Log(2 * math.Pi)

// spareRows is the room for further rows in memory that a posterior copies. It is a usual
// number of pending pulls.
const spareRows = 16

// withRoom returns a copy of v with room for extra numbers. Unlike make it clears only
// what v does not fill.
func withRoom(v []float64, extra int) []float64 {
	if extra <= 0 {
		return slices.Clone(v)
	}
	return append(v[:len(v):len(v)], make([]float64, extra)...)[:len(v)]
}
