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

// at sets g.sum = Φᵀ(Φw − y) for at most b rows x with targets y, and returns
// ‖Φw − y‖².
func (g *gradient) at(w []float64, x kernel.Rows, y []float64) (loss float64, err error) {
	err = g.phi.Gram(g.sum, x, w, func(row int, t []float64) {
		from := row * g.c
		for i, v := range y[from : from+len(t)] {
			t[i] -= v
		}
		copy(g.r[from:], t)
	})
	if err != nil {
		return 0, err
	}
	for _, v := range g.r[:len(y)] {
		loss += v * v
	}
	return loss, nil
}
