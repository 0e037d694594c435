package gp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/internal/blocked"
)

func vec(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Inc: 1, Data: x} }

func dot(x, y []float64) float64 { return blas64.Dot(vec(x), vec(y)) }

// axpy adds a·x to y.
func axpy(a float64, x, y []float64) { blas64.Axpy(a, vec(x), vec(y)) }

// square returns ‖x‖².
func square(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
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

const trans = blas.Trans

// gemv sets dst = A·x for A r×c.
func gemv(dst, a, x []float64, r, c int) {
	blocked.Gemv(1, false, blocked.New(r, c, a[:r*c]), x[:c], 1, 0, dst[:r])
}

// addTo adds x to dst.
func addTo(dst, x []float64) {
	for i, v := range x {
		dst[i] += v
	}
}

// transpose transposes a, n×n, in place.
func transpose(a []float64, n int) {
	for i := range n {
		for j := range i {
			a[i*n+j], a[j*n+i] = a[j*n+i], a[i*n+j]
		}
	}
}
