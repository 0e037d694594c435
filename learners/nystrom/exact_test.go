package nystrom

import (
	"math/big"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// precision is the precision of the oracle in bits, which is 77 decimal digits.
const precision = 256

func bf(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }
func bn() *big.Float          { return new(big.Float).SetPrec(precision) }

// exactGaussian is exp(−‖x − y‖²/(2ℓ²)).
func exactGaussian(x, y []float64, l float64) *big.Float {
	s := bn()
	for i := range x {
		d := bn().Sub(bf(x[i]), bf(y[i]))
		s.Add(s, d.Mul(d, d))
	}
	s.Quo(s, bf(2*l*l))
	s.Quo(s, bf(1024))
	sum, term := bf(1), bf(1)
	for i := 1; i < 40; i++ {
		term.Mul(term, s)
		term.Quo(term, bf(float64(i)))
		sum.Add(sum, term)
	}
	for range 10 {
		sum.Mul(sum, sum)
	}
	return bn().Quo(bf(1), sum)
}

// exactPrediction returns the predictions for test of the solution of (4.5) with a
// Gaussian kernel. It uses elimination with numbers of the given precision, so
// conditioning does not matter.
func exactPrediction(data, centers, test *kernel.Points[float64], y []float64, l, lambda float64) []float64 {
	n, m := data.Len(), centers.Len()
	k := func(a, b *kernel.Points[float64]) [][]*big.Float {
		out := make([][]*big.Float, a.Len())
		for i := range out {
			out[i] = make([]*big.Float, b.Len())
			for j := range out[i] {
				out[i][j] = exactGaussian(a.Row(i), b.Row(j), l)
			}
		}
		return out
	}
	knm, kmm, kt := k(data, centers), k(centers, centers), k(test, centers)
	h := make([][]*big.Float, m)
	for i := range h {
		h[i] = make([]*big.Float, m+1)
		for j := range m {
			s := bn().Mul(kmm[i][j], bf(lambda*float64(n)))
			for r := range n {
				s.Add(s, bn().Mul(knm[r][i], knm[r][j]))
			}
			h[i][j] = s
		}
		s := bn()
		for r := range n {
			s.Add(s, bn().Mul(knm[r][i], bf(y[r])))
		}
		h[i][m] = s
	}
	for i := range m {
		for r := i + 1; r < m; r++ {
			f := bn().Quo(h[r][i], h[i][i])
			for c := i; c <= m; c++ {
				h[r][c] = bn().Sub(h[r][c], bn().Mul(f, h[i][c]))
			}
		}
	}
	c := make([]*big.Float, m)
	for i := m - 1; i >= 0; i-- {
		s := bn().Set(h[i][m])
		for j := i + 1; j < m; j++ {
			s.Sub(s, bn().Mul(h[i][j], c[j]))
		}
		c[i] = s.Quo(s, h[i][i])
	}
	out := make([]float64, test.Len())
	for i := range out {
		s := bn()
		for j := range m {
			s.Add(s, bn().Mul(kt[i][j], c[j]))
		}
		out[i], _ = s.Float64()
	}
	return out
}
