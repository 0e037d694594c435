package acquire

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The suggestions of the model since an improvement are those of the definition, from the whole history.
func TestProgress(t *testing.T) {
	const seed = 21
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		fold, r := elite{most: eliteSize}, new(model.Results)
		var values []float64 // descending
		stale, rise := 0, rng.Float64()
		for n := range 80 {
			one := model.Result{Guided: rng.IntN(4) > 0, Feasible: rng.IntN(8) > 0}
			improved := false
			if rng.IntN(10) > 0 {
				y := math.Round(rng.NormFloat64()*4) / 4 // ties happen
				if rng.Float64() < rise {
					y += float64(n) / 8
				}
				one.Y = []model.Measure{{Value: y}}
				if one.Feasible {
					top := values[:min(len(values), 8)]
					improved = len(top) == 0 || y > top[0] && y-top[0] > (top[0]-top[len(top)-1])/1000
					values = append(values, y)
					slices.Sort(values)
					slices.Reverse(values)
				}
			}
			r.List = append(r.List, one)
			fold.follow(r)
			if one.Guided {
				if stale++; improved {
					stale = 0
				}
			}
			if fold.stale != stale {
				t.Fatalf("seed %d: after %d results: stale %d, want %d", seed, n+1, fold.stale, stale)
			}
		}
	}
}

// A suggestion that is told both late and by its new holder counts once, by the
// result that came first.
func TestLateCountsOnce(t *testing.T) {
	for _, lateFirst := range []bool{false, true} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 3)
		l := newSubject(t, spec, nil)
		guided, late := 0, 0
		for i := range 20 {
			proposal := l.propose(1)
			l.Start(proposal.Suggestions...)
			if phase := proposal.Suggestions[0].Phase; phase == study.PhaseModel || phase == study.PhaseExploit {
				guided++
			}
			l.Do(study.Expire{Trial: i, Epoch: 1})
			l.Do(study.Ask{Count: 1})
			for epoch := 1; epoch <= 2; epoch++ {
				now := epoch
				if !lateFirst {
					now = 3 - epoch
				}
				l.Do(study.Tell{Trial: i, Epoch: now, Outcome: labtest.Completed(spec, 100+float64(i)+0.1*float64(now))}) // worse and worse
			}
			late++
		}
		stale := l.ahead().elite.stale
		if got := len(l.model.Results.List); got != 2*late || stale != guided || guided < 10 {
			t.Errorf("late first %t: %d results of %d trials, %d suggestions without an improvement, %d were guided", lateFirst, got, late, stale, guided)
		}
	}
}
