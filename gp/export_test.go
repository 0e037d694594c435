package gp

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// SetAnchorEvery changes the number of updates between anchors.
func (s *Sparse) SetAnchorEvery(n int) { s.every = n }

// AddInducing makes the only row of x an inducing point of a posterior that grows.
func (s *Sparse) AddInducing(x kernel.Rows) (bool, error) {
	z, prior, res, err := s.emb.one(x)
	if err != nil || !s.worthwhile(prior, res) {
		return false, err
	}
	return true, s.grow(x, z, math.Sqrt(res))
}

// Evidence is evidence in fresh memory.
func (g *Exact) Evidence() Evidence { return g.evidence(new(workspace)) }

// Jitter returns the addition to the diagonal of K + Λ.
func (g *Exact) Jitter() float64 { return g.jitter }

// NewCholesky returns the factor of a as rows.
func NewCholesky(what string, a []float64, n int) (rows [][]float64, jitter float64, err error) {
	c, jitter, err := newCholesky(what, a, n, new(workspace))
	for i := 0; err == nil && i < n; i++ {
		rows = append(rows, c.row(i))
	}
	return rows, jitter, err
}

// Slope is a prediction with its gradient with respect to the input.
type Slope struct {
	Mean, SD                 float64
	MeanGradient, SDGradient []float64
}

// PredictSlope predicts with a probe.
func (s *Sparse) PredictSlope(x kernel.Rows, i int) (Slope, error) {
	t := s.Probe()
	mean, _, err := t.at(x.Slice(i, i+1))
	if err != nil {
		return Slope{}, err
	}
	sd := t.sd
	dMean, dSD := t.Gradient()
	return Slope{Mean: mean, SD: sd, MeanGradient: dMean, SDGradient: dSD}, nil
}
