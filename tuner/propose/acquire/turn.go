package acquire

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// turn is what the suggestion for one trial is meant to do.
type turn struct {
	trial   int
	seed    uint64
	rng     *rand.Rand
	phase   string
	exploit bool        // maximises the mean
	close   bool        // may be as close to pending trials as one that exploits
	width   float64     // of the confidence bounds, in units of beta, 0 for the mean
	weights []float64   // of several objectives
	ideal   []float64   // the best of each of them
	doubts  bool        // failures or limits are modelled
	cost    *costWeight // nil if costs do not count
}

// closeEvery is the period of suggestions that may be as close to pending trials as those that
// exploit, in trials, where failures or limits are modelled. With the default of exploit_every these
// are other ones. An optimum is often at the edge of what succeeds, and many steps along it lead
// there. Elsewhere the other suggestions look for other basins.
const closeEvery = 2

// turn returns the turn of a trial.
func (a *acquisition) turn(trial int, seed uint64, rng *rand.Rand) turn {
	every, k := a.options.ExploitEvery, len(a.spec.Objectives)
	t := turn{
		trial: trial, seed: seed, rng: rng, phase: study.PhaseModel,
		exploit: every > 0 && trial%every == every-1,
		doubts:  a.outlook.Doubts(),
		width:   1,
	}
	if a.pulls() {
		t.exploit, t.width = false, a.armWidth()
	}
	t.close = t.doubts && trial%closeEvery == 0
	if t.exploit {
		t.phase, t.width = study.PhaseExploit, 0
	} else {
		t.cost = a.costWeight()
	}
	if k > 1 {
		t.weights, t.ideal = drawWeights(k, rng), a.ideal()
	}
	return t
}

// drawWeights draws the weights of k objectives. They add up to 1.
func drawWeights(k int, rng *rand.Rand) []float64 {
	out, sum := make([]float64, k), 0.0
	for j := range out {
		out[j] = rng.ExpFloat64()
		sum += out[j]
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

// ideal returns the best of each objective among the elite, or 0 if no result keeps the
// constraints.
func (a *acquisition) ideal() []float64 {
	out := slices.Repeat([]float64{math.Inf(-1)}, len(a.spec.Objectives))
	members := a.eliteOf(a.engine)
	if len(members) == 0 {
		clear(out)
	}
	for _, i := range members {
		for j, m := range a.engine.Results.List[i].Y {
			out[j] = max(out[j], a.engine.Event.Surfaces[j].Target.Of(m.Value))
		}
	}
	return out
}

// chebyshev is the augmented Chebyshev scalarisation (Knowles 2006). Larger is better.
func (t *turn) chebyshev(u []float64) float64 {
	worst, sum := math.Inf(1), 0.0
	for j, v := range u {
		d := t.weights[j] * (v - t.ideal[j])
		worst = min(worst, d)
		sum += d
	}
	return worst + 0.05*sum
}
