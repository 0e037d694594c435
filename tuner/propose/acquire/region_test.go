package acquire

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestTrustRegionSize replays random histories by the documented rules, from the whole
// history each time.
func TestTrustRegionSize(t *testing.T) {
	const seed, d = 21, 6
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		fold := region{dim: d}
		var values []float64 // seen, in order
		length, good, bad, stale, idle := trustFirst, 0, 0, 0, 0
		rise := rng.Float64()
		for range 80 {
			r := model.Result{Guided: rng.IntN(4) > 0, Feasible: true}
			improved := false
			switch rng.IntN(10) {
			case 0: // infeasible, nothing was measured
			case 2: // measured, but breaks a constraint
				r.Feasible, r.Y = false, []model.Measure{{Value: 1e9}}
			case 1:
				r.Y = []model.Measure{{Value: math.Inf(-1)}}
				values = append(values, -math.MaxFloat64)
				improved = len(values) == 1
			default:
				y := math.Round(rng.NormFloat64()*4) / 4 // ties happen
				if rng.Float64() < rise {
					y += float64(len(values)) / 8
				}
				r.Y = []model.Measure{{Value: y}}
				sorted := slices.Sorted(slices.Values(values))
				slices.Reverse(sorted)
				sorted = sorted[:min(len(sorted), 8)]
				improved = len(sorted) == 0 || y > sorted[0] && y-sorted[0] > (sorted[0]-sorted[len(sorted)-1])/1000
				values = append(values, y)
			}
			fold.tell(&r)
			if idle++; improved {
				idle = 0
			}
			if r.Guided {
				if improved {
					good, bad, stale = good+1, 0, 0
				} else {
					good, bad, stale = 0, bad+1, stale+1
				}
				if good == 3 {
					length, good = math.Min(2*length, 1.6), 0
				}
				if bad == d {
					length, bad = length/2, 0
				}
				if length < 1.0/128 {
					length, good, bad = 0.8, 0, 0
				}
			}
			if fold.idle != idle {
				t.Fatalf("%d results since an improvement, want %d", fold.idle, idle)
			}
			if fold.length != length || fold.stale != stale {
				t.Fatalf("after %d results: length %v, stale %d, want %v, %d", len(values), fold.length, fold.stale, length, stale)
			}
		}
	}
}

// Suggestions of the model are within the region, around a configuration that was tried,
// and reach further after improvements.
func TestTrustRegionHolds(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, `{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1},
		"n": {"type": "int", "low": 0, "high": 40}, "k": {"type": "categorical", "values": ["u", "v"]}}`)
	spec := labtest.SpecOf(sp, 4)
	l := newSubject(t, spec, func(_ *model.Options, o *Options) { o.Trust = 3 })
	for i := range 40 {
		proposal := l.propose(1)
		g := proposal.Suggestions[0]
		if g.Phase != model.PhaseStart {
			x, err := l.model.Results.Encode(g.Config)
			if err != nil {
				t.Fatal(err)
			}
			region := l.ahead().trusted()
			tried := false
			for _, r := range l.model.Results.List {
				tried = tried || slices.Equal(r.X, region.center)
			}
			if !tried {
				t.Fatalf("the centre %v was never tried", region.center)
			}
			for c := range x {
				if slack := 0.5/41 + 1e-12; x[c] < region.low[c]-slack || x[c] > region.high[c]+slack {
					t.Fatalf("trial %d: coordinate %d is %v, outside [%v, %v]", i, c, x[c], region.low[c], region.high[c])
				}
			}
		}
		l.Start(proposal.Suggestions...)
		// No result is as good as the first ones, so the region shrinks.
		l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(sp, g.Config)+map[bool]float64{true: 1}[g.Phase != model.PhaseStart])})
	}
	if got := l.chooser.region.length; got >= trustFirst {
		t.Errorf("sides of %v after 30 failures", got)
	}
}

// A suggestion that is told both late and by its new holder counts once for the trust
// region, by the result that came first.
func TestLateCountsOnce(t *testing.T) {
	for _, lateFirst := range []bool{false, true} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 3)
		l := newSubject(t, spec, func(_ *model.Options, o *Options) { o.Trust = 1 })
		guided, late := 0, 0
		for i := range 20 {
			proposal := l.propose(1)
			l.Start(proposal.Suggestions...)
			if phase := proposal.Suggestions[0].Phase; phase == model.PhaseModel || phase == model.PhaseExploit {
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
		stale := l.ahead().region.stale
		if got := len(l.model.Results.List); got != 2*late || stale != guided || guided < 10 {
			t.Errorf("late first %t: %d results of %d trials, %d suggestions without an improvement, %d were guided", lateFirst, got, late, stale, guided)
		}
	}
}
