package acquire

import (
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// width returns b of the confidence bounds μ ± b·σ of a surface, with a number of
// suggestions beyond those among the results.
func (c *Chooser) width(e *model.Engine, j, beyond int) float64 {
	if c.options.Theory {
		return theory(e, j)
	}
	t := float64(len(e.Results.List) + len(e.Results.Pending) + beyond)
	return math.Sqrt(c.options.Width * max(e.Event.Active, 1) * math.Log(2*t+1))
}

// theory returns b of [bandit.Theory] for F = 1 and δ = 0.1. While all points are inducing
// it is F + √(log det V + 2 log(1/δ)). Otherwise it is that of Theorem 21 of Carratino
// (2020) with ε = ½. It uses the effective dimension of the model event, and every later
// sample raises that by at most 1. The theorem needs more inducing points for
// each dimension than there are, so in this case b is no guarantee.
func theory(e *model.Engine, j int) float64 {
	s := e.State(j)
	return bandit.Theory{Norm: 1, Delta: 0.1, Epsilon: 0.5, ByDimension: !s.Exact}.Beta(s)
}
