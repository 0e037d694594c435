package sgdrf

import (
	"cmp"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

// gradient computes the gradient of mini-batches.
type gradient struct {
	phi *sketch.FeatureOperator
	c   int
	loss
	r   []float64 // the residuals R = ΦW − Y, b×c
	sum []float64 // M×c
}

func newGradient(phi sketch.FeatureMap, l loss, c, b, workers int) *gradient {
	return &gradient{
		phi: sketch.NewFeatureOperator(phi, workers), c: c, loss: l,
		r: make([]float64, b*c), sum: make([]float64, phi.Features()*c),
	}
}

// at sets g.sum = ΦᵀSψ(Φw − y) for at most b rows x with targets y and weights s, where ψ
// is the slope of the loss. It returns the loss, which is ‖S^½(Φw − y)‖² for the squared
// loss. If s is nil, all weights are 1.
func (g *gradient) at(w []float64, x kernel.Rows, y, s []float64) (loss float64, err error) {
	err = g.phi.Gram(g.sum, x, w, func(row int, t []float64) {
		from := row * g.c
		for i, v := range y[from : from+len(t)] {
			t[i] -= v
		}
		copy(g.r[from:], t)
		for i := range t {
			t[i] = weight(s, row+i/g.c) * g.slope(t[i])
		}
	})
	if err != nil {
		return 0, err
	}
	for i, v := range g.r[:len(y)] {
		loss += weight(s, i/g.c) * g.value(v)
	}
	return loss, nil
}

// loss is a loss of the residual r = f − y.
type loss struct {
	kind       learners.Loss
	delta, tau float64
}

func (p Params) loss() loss {
	return loss{kind: p.Loss, delta: cmp.Or(p.Delta, 1), tau: cmp.Or(p.Quantile, 0.5)}
}

// value returns the loss. slope is its derivative, and half of it for the squared loss.
func (l loss) value(r float64) float64 {
	switch l.kind {
	case learners.HuberLoss:
		inner := min(math.Abs(r), l.delta)
		return inner * (math.Abs(r) - inner/2)
	case learners.QuantileLoss:
		return max((1-l.tau)*r, -l.tau*r)
	}
	return r * r
}

func (l loss) slope(r float64) float64 {
	switch l.kind {
	case learners.HuberLoss:
		return min(max(r, -l.delta), l.delta)
	case learners.QuantileLoss:
		if r > 0 {
			return 1 - l.tau
		}
		return -l.tau
	}
	return r
}

// weight returns s_i, or 1 if s is nil.
func weight(s []float64, i int) float64 {
	if s == nil {
		return 1
	}
	return s[i]
}
