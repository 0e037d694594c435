//go:build linux

package main

import (
	"log"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// These are the sizes of an ask of BKB, which computes means and variances of all arms,
// here of a fresh set.
const (
	scoreScale = 0.3  // length of the Gaussian kernel, on [0, 1]ᵈ
	scoreNoise = 0.01 // variance
	inducing   = 200  // points of BKB where exact inference is the peer
	observed   = 1000 // by BKB, if the name does not have it
)

func uniform(rng *rand.Rand, n, d int) *kernel.Points[float64] {
	x := make([]float64, n*d)
	for i := range x {
		x[i] = rng.Float64()
	}
	return kernel.NewPoints(n, d, x)
}

// score is BKB with m inducing points and t observations on n arms in d dimensions.
func score(n, m, t, d int) comparison {
	rng := rand.New(rand.NewPCG(1, 2))
	k, err := kernel.NewGaussian(scoreScale)
	if err != nil {
		log.Fatal(err)
	}
	arms, dict := uniform(rng, n, d), uniform(rng, m, d)
	data := gp.Data{X: uniform(rng, t, d), Y: make([]float64, t)}
	for i := range data.Y {
		data.Y[i] = rng.NormFloat64()
	}
	s, err := gp.NewSparse(k, dict, data, gp.SparseOptions{NoiseVariance: scoreNoise, Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	return comparison{
		// Two triangular solutions count, and the kernel and sums do not.
		flops: 2 * float64(n) * float64(m) * float64(m),
		ours: func() {
			if _, _, err := s.Predict(arms); err != nil {
				log.Fatal(err)
			}
		},
		gonum: plainScore(arms, dict),
	}
}

// plainScore is the same in loops, with math.Exp and gonum's triangular solutions. The
// factors stand for those of a posterior.
func plainScore(arms, dict *kernel.Points[float64]) func() {
	n, m := arms.Len(), dict.Len()
	factor := func(shift float64) blas64.Triangular {
		l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m, Stride: m, Data: make([]float64, m*m)}
		for i := range m {
			for j := range i {
				l.Data[i*m+j] = 0.5 * math.Sin(float64(i*j)) / math.Sqrt(float64(m))
			}
			l.Data[i*m+i] = shift
		}
		return l
	}
	ld, lv, alpha := factor(1), factor(2), make([]float64, m)
	b, mean, variance := make([]float64, m*n), make([]float64, n), make([]float64, n)
	solve := func(l blas64.Triangular, factor float64) {
		blas64.Trsm(blas.Left, blas.NoTrans, 1, l, blas64.General{Rows: m, Cols: n, Stride: n, Data: b})
		for j := range m {
			for i, v := range b[j*n : (j+1)*n] {
				variance[i] += factor * v * v
			}
		}
	}
	return func() {
		for j := range m {
			c := dict.Row(j)
			for i := range n {
				r := 0.0
				for l, v := range arms.Row(i) {
					r += (v - c[l]) * (v - c[l])
				}
				b[j*n+i] = math.Exp(-r / (2 * scoreScale * scoreScale))
			}
		}
		for i := range variance {
			variance[i] = 1
		}
		blas64.Gemv(blas.Trans, 1, blas64.General{Rows: m, Cols: n, Stride: n, Data: b}, blas64.Vector{N: m, Inc: 1, Data: alpha}, 0, blas64.Vector{N: n, Inc: 1, Data: mean})
		solve(ld, -1)
		solve(lv, scoreNoise)
	}
}
