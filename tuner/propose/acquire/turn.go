package acquire

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/study"
)

// turn is what the suggestion for one trial is meant to do.
type turn struct {
	trial   int
	seed    uint64
	rng     *rand.Rand
	phase   string
	exploit bool                // maximises the mean
	close   bool                // may be as close to pending trials as one that exploits
	width   float64             // of the confidence bounds, in units of beta, 0 for the mean
	volume  *bandit.Hypervolume // that several objectives have reached, nil for one
	doubts  bool                // failures or limits are modelled
	cost    *costWeight         // nil if costs do not count
}

// closeEvery is the period of suggestions that may be as close to pending trials as those that
// exploit, in trials, where failures or limits are modelled. With the default of exploit_every these
// are other ones. An optimum is often at the edge of what succeeds, and many steps along it lead
// there. Elsewhere the other suggestions look for other basins.
const closeEvery = 2

// turn returns the turn of a trial.
func (a *acquisition) turn(trial int, seed uint64, rng *rand.Rand) turn {
	every := a.options.ExploitEvery
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
	if len(a.spec.Objectives) > 1 {
		t.volume = a.volume(rng.Float64())
	}
	return t
}
