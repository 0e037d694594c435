package sgdrf

import (
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/sketch"
)

// gradient computes the gradient of mini-batches.
type gradient struct {
	phi *sketch.FeatureOperator
	c   int
	r   []float64 // the residuals R = ΦW − Y, b×c
	sum []float64 // M×c
}

func newGradient(phi sketch.FeatureMap, c, b, workers int) *gradient {
	return &gradient{
		phi: sketch.NewFeatureOperator(phi, workers), c: c,
		r: make([]float64, b*c), sum: make([]float64, phi.Features()*c),
	}
}

// at sets g.sum = ΦᵀS(Φw − y) for at most b rows x with targets y and weights s, and
// returns ‖S^½(Φw − y)‖². If s is nil, all weights are 1.
func (g *gradient) at(w []float64, x kernel.Rows, y, s []float64) (loss float64, err error) {
	err = g.phi.Gram(g.sum, x, w, func(row int, t []float64) {
		from := row * g.c
		for i, v := range y[from : from+len(t)] {
			t[i] -= v
		}
		copy(g.r[from:], t)
		for i := range t {
			t[i] *= weight(s, row+i/g.c)
		}
	})
	if err != nil {
		return 0, err
	}
	for i, v := range g.r[:len(y)] {
		loss += weight(s, i/g.c) * v * v
	}
	return loss, nil
}

// weight returns s_i, or 1 if s is nil.
func weight(s []float64, i int) float64 {
	if s == nil {
		return 1
	}
	return s[i]
}
