package acquire

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// turn is what the suggestion for one trial is meant to do.
type turn struct {
	trial   int
	seed    uint64
	rng     *rand.Rand
	phase   string
	exploit bool                // maximises the mean
	width   float64             // of the confidence bounds, in units of beta, 0 for the mean
	volume  *bandit.Hypervolume // that several objectives have reached, nil for one
	doubts  bool                // failures or limits are modelled
	cost    *costWeight         // nil if costs do not count
	best    *float64            // the mean to improve on in expectation, nil for the bound
	pool    *bandit.Pool        // candidates
}

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
	if t.exploit {
		t.phase, t.width = study.PhaseExploit, 0
	} else {
		t.cost = a.costWeight()
	}
	if len(a.spec.Objectives) > 1 {
		t.volume = a.volume(rng.Float64())
	}
	if a.engine.Limited() && a.improves(t) {
		a.improve(&t)
	}
	return t
}

// widest is the number of coordinates from which on bounds do not become wider.
const widest = 10

// width returns b of the confidence bounds μ ± b·σ of a surface, with a number of
// suggestions beyond those among the results.
func (c *Chooser) width(e *model.Engine, j, beyond int) float64 {
	if c.options.Theory {
		return theory(e, j)
	}
	t := float64(len(e.Results.List) + len(e.Results.Pending) + beyond)
	return math.Sqrt(c.options.Width * min(max(e.Event.Active, 1), widest) * math.Log(2*t+1))
}

// theory returns b of [bandit.Theory] for F = 1 and δ = 0.1. While all points are inducing it is
// F + √(log det V + 2 log(1/δ)). Otherwise it is that of Theorem 21 of Carratino (2020) with ε =
// ½. It uses the effective dimension of the model event, and every later sample raises that by at
// most 1.
func theory(e *model.Engine, j int) float64 {
	s := e.State(j)
	return bandit.Theory{Norm: 1, Delta: 0.1, Epsilon: 0.5, ByDimension: !s.Exact}.Beta(s)
}

// usefulWorkers returns how many trials may run at once by the rule of BBKB, which is 1 + Σ
// σ²/ξ² ≤ 2 with the variances without pending trials. It is at least one.
func (a *acquisition) usefulWorkers() int {
	rows := a.running()
	if len(rows) == 0 {
		return 1
	}
	x := pointsOf(rows)
	noise := a.engine.Event.Surfaces[0].Noise
	_, variance := a.engine.Predict(0, x)
	sum := 0.0
	for i, v := range variance {
		if sum += v / noise; sum > 1 {
			return max(i, 1)
		}
	}
	last := variance[len(variance)-1] / noise
	return min(len(rows)+int((1-sum)/max(last, 1e-3)), 1000)
}
