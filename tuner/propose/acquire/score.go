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
	w := &s.turn
	var out bandit.Scores
	out.Mean, out.Variance = s.outlook.Predict(0, x)
	switch {
	case w.volume != nil:
		out.Score = s.gains(x, out)
	case w.best != nil:
		out.Score = make([]float64, x.Len())
		for i, m := range out.Mean {
			out.Score[i], _, _ = bandit.LogImprovement(*w.best, m, out.Variance[i])
		}
	default:
		out.Score = slices.Clone(out.Mean)
		for i, v := range out.Variance {
			if !w.exploit {
				out.Score[i] += w.width * (s.beta[0] * math.Sqrt(v))
			}
		}
	}
	if w.cost != nil {
		w.cost.weigh(out.Score, s.engine.LogCost(x))
	}
	if w.doubts {
		s.avoid(out.Score, x, w.best != nil)
	}
	return out, nil
}

// gains returns the logarithms of the expected gains in hypervolume, in turns that exploit of the
// gains of the means. The prediction of the first objective is given.
func (s *scorer) gains(x *kernel.Points[float64], first bandit.Scores) []float64 {
	mean, variance := [][]float64{first.Mean}, [][]float64{first.Variance}
	for j := 1; j < len(s.spec.Objectives); j++ {
		m, v := s.outlook.Predict(j, x)
		mean, variance = append(mean, m), append(variance, v)
	}
	if s.turn.exploit {
		for j := range variance {
			variance[j] = make([]float64, x.Len())
		}
	}
	return s.turn.volume.LogGain(mean, variance)
}

// avoid adds the logarithm of the probability that configurations are feasible. A strict score refuses those
// that are more likely to fail than not.
func (a *acquisition) avoid(score []float64, x *kernel.Points[float64], strict bool) {
	for i, l := range a.outlook.LogFeasible(x) {
		if score[i] += l; strict && l < -math.Ln2 {
			score[i] -= refused
		}
	}
}

// Probe implements [bandit.Surface]. It returns a probe where the score is μ + b·σ of one
// objective or its expected improvement, or that and the logarithms of probabilities to keep limits.
func (s *scorer) Probe() *bandit.Probe {
	labels := s.turn.doubts && !s.engine.Limited()
	if len(s.spec.Objectives) > 1 || labels || s.turn.cost != nil {
		return nil
	}
	return &bandit.Probe{Slope: s.outlook.Probe(s.turn.best), Width: s.turn.width * s.beta[0]}
}

// costWeight determines how a suggestion weighs costs. In place of a bound u it uses the score
// log(u − reference) − power·log cost, for u above the reference, the best posterior mean.
type costWeight struct {
	reference float64
	power     float64
}

// costWeight returns how the next suggestion weighs costs, nil if it does not. If the study has
// a MaxCost, the power falls from 1 to 0 while it is spent (Lee, Perrone, Archambeau and
// Seeger, Cost-aware Bayesian optimization, 2020).
func (a *acquisition) costWeight() *costWeight {
	if a.engine.Event.Expense == nil || len(a.eliteOf(a.engine)) == 0 {
		return nil
	}
	t := &costWeight{reference: a.standing(a.engine).best(), power: 1}
	if all := a.spec.MaxCost; all > 0 {
		t.power = min(max(1-a.engine.Results.Spent/all, 0), 1)
	}
	return t
}

// weigh replaces bounds by scores, given the logarithms of the costs.
func (t *costWeight) weigh(bounds, logs []float64) {
	for i, u := range bounds {
		gain := u - t.reference
		score := math.Log(max(gain, 1e-9))
		if gain < 1e-9 {
			score += gain // no improvement, ordered by how much is missing
		}
		bounds[i] = score - t.power*logs[i]
	}
}
