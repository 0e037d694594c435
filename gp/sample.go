package gp

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Sample draws count functions from the posterior at the q rows of x, jointly, without
// observation noise. The result is count×q, row-major. The jitter is the addition to
// the covariance that made it possible to factor it. It costs O(qn² + q²n + q³ +
// count·q²). Its errors are those of [Exact.Predict].
func (g *Exact) Sample(x kernel.Rows, count int, rng *rand.Rand) ([]float64, Jitter, error) {
	mean, cov, err := g.Covariance(x)
	if err != nil {
		return nil, Jitter{}, err
	}
	return sampleNormal(mean, cov, count, rng)
}

// sampleNormal draws from N(mean, cov).
func sampleNormal(mean, cov []float64, count int, rng *rand.Rand) ([]float64, Jitter, error) {
	q := len(mean)
	l, jitter, err := NewCholesky("posterior covariance", cov, q)
	if err != nil {
		return nil, jitter, err
	}
	out, xi := make([]float64, count*q), make([]float64, q)
	for c := range count {
		for i := range xi {
			xi[i] = rng.NormFloat64()
		}
		for i := range q {
			out[c*q+i] = mean[i] + dot(l.row(i), xi[:i+1])
		}
	}
	return out, jitter, nil
}
