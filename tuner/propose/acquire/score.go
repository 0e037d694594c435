package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// scorer is the acquisition function of one suggestion. It has no errors.
type scorer struct {
	*acquisition
	turn turn
}

// Score implements [bandit.Surface]. The prediction is that of the first objective.
func (s *scorer) Score(x *kernel.Points[float64]) (bandit.Scores, error) {
	w, k := &s.turn, len(s.spec.Objectives)
	var out bandit.Scores
	bounds := make([][]float64, k)
	for j := range k {
		mean, variance := s.outlook.Predict(j, x)
		if j == 0 {
			out.Mean, out.Variance = slices.Clone(mean), variance
		}
		if !w.exploit {
			for i := range mean {
				mean[i] += w.width * (s.beta[j] * math.Sqrt(variance[i]))
			}
		}
		bounds[j] = mean
	}
	out.Score = bounds[0]
	if k > 1 {
		out.Score = make([]float64, x.Len())
		u := make([]float64, k)
		for i := range out.Score {
			for j := range u {
				u[j] = bounds[j][i]
			}
			out.Score[i] = w.chebyshev(u)
		}
	}
	if w.cost != nil {
		w.cost.weigh(out.Score, s.engine.LogCost(x))
	}
	if w.doubts {
		s.avoid(out.Score, x)
	}
	return out, nil
}

// avoid adds the logarithm of the probability that configurations are feasible.
func (a *acquisition) avoid(score []float64, x *kernel.Points[float64]) {
	for i, l := range a.outlook.LogFeasible(x) {
		score[i] += l
	}
}

// Probe implements [bandit.Surface]. It returns a probe where the score is μ + b·σ of one
// objective, or that and the logarithms of probabilities to keep limits.
func (s *scorer) Probe() *bandit.Probe {
	labels := s.turn.doubts && !s.engine.Limited()
	if len(s.spec.Objectives) > 1 || labels || s.turn.cost != nil {
		return nil
	}
	return &bandit.Probe{Slope: s.outlook.Probe(), Width: s.turn.width * s.beta[0]}
}
