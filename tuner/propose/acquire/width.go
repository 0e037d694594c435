package acquire

import (
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// width is b of the confidence bounds μ ± b·σ of a surface, with so many suggestions
// beyond those that the results know of.
func (c *Chooser) width(e *model.Engine, j, beyond int) float64 {
	if c.options.Theory {
		return theory(e, j)
	}
	t := float64(len(e.Results.List) + len(e.Results.Pending) + beyond)
	return math.Sqrt(c.options.Width * max(e.Event.Active, 1) * math.Log(2*t+1))
}

// theory is b of [bandit.Theory] for F = 1 and δ = 0.1. While all points are inducing
// that is F + √(log det V + 2 log(1/δ)). Else it is thesis Theorem 21's with ε = ½,
// by the effective dimension, which a sample more raises by at most 1 since the model
// event that it was found at. The theorem wants 6α log(4T/δ)/ε² inducing
// points of each dimension, and there are fewer: so then it is no guarantee.
func theory(e *model.Engine, j int) float64 {
	s := e.State(j)
	return bandit.Theory{Norm: 1, Delta: 0.1, Epsilon: 0.5, ByDimension: !s.Exact}.Beta(s)
}

// wider is how much wider confidence bounds are than usual: where many
// suggestions in a row were no improvement, the model is surer than it should be
// of what it does not know.
func (c *Chooser) wider() float64 {
	if c.options.Patience == 0 {
		return 1
	}
	return math.Pow(2, min(float64(c.region.stale/c.options.Patience), 3))
}
