package acquire

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// wish is the target of one suggestion.
type wish struct {
	exploit bool
	gather  bool // may be as close to pending trials as one that exploits
	explore bool
	repeat  bool      // the best trial
	far     bool      // another basin, by the far model
	evolve  bool      // a sample of the evolution
	width   float64   // of the confidence bounds, in units of beta
	weights []float64 // of several objectives
	ideal   []float64
	feature bool    // feasibility or a limit is modelled
	trusted *box    // nil for everywhere
	thrift  *thrift // nil if costs do not count
}

// gatherEvery is the period of suggestions that may be as close to pending trials as those that
// exploit, in trials, where failures or limits are modelled. With the default of exploit_every these
// are other ones. An optimum is often at the edge of what succeeds, and many steps along it lead
// there. Elsewhere the other suggestions look for other basins.
const gatherEvery = 2

// wish returns the target of the next suggestion.
func (a *acquisition) wish(trial int, rng *rand.Rand) wish {
	every, k := a.options.ExploitEvery, len(a.spec.Objectives)
	w := wish{
		exploit: every > 0 && trial%every == every-1,
		feature: a.outlook.Doubts(),
		width:   1,
	}
	w.gather = w.feature && trial%gatherEvery == 0
	if n := a.options.ExploreEvery; n > 0 && trial%n == n/2 {
		w.explore = !w.exploit
	}
	switch {
	case w.exploit:
		w.width = 0
	case w.explore:
		w.width = 3
	}
	if !w.exploit {
		w.thrift = a.spend()
	}
	if !w.explore {
		w.trusted = a.trusted()
	}
	if k > 1 {
		w.weights, w.ideal = weights(k, rng), a.ideal()
	}
	return w
}

// phase returns the suggestion's phase.
func (w *wish) phase() string {
	switch {
	case w.repeat:
		return model.PhaseRepeat
	case w.evolve:
		return model.PhaseEvolve
	case w.exploit:
		return model.PhaseExploit
	case w.explore, w.far:
		return model.PhaseExplore
	default:
		return model.PhaseModel
	}
}

// weights draws the weights of k objectives. They add up to 1.
func weights(k int, rng *rand.Rand) []float64 {
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
	if len(a.elite.members) == 0 {
		clear(out)
	}
	for _, i := range a.elite.members {
		for j, m := range a.engine.Results.List[i].Y {
			out[j] = max(out[j], a.engine.Event.Surfaces[j].Target.Of(m.Value))
		}
	}
	return out
}

// chebyshev is the augmented Chebyshev scalarisation (Knowles 2006). Larger is better.
func (w *wish) chebyshev(u []float64) float64 {
	worst, sum := math.Inf(1), 0.0
	for j, v := range u {
		d := w.weights[j] * (v - w.ideal[j])
		worst = min(worst, d)
		sum += d
	}
	return worst + 0.05*sum
}
