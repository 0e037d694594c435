package acquire

import (
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
		if g.Phase != study.PhaseStart {
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
		l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(sp, g.Config)+map[bool]float64{true: 1}[g.Phase != study.PhaseStart])})
	}
	if got := l.chooser.region.Length; got >= 0.8 {
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
		stale := l.ahead().region.Stale
		if got := len(l.model.Results.List); got != 2*late || stale != guided || guided < 10 {
			t.Errorf("late first %t: %d results of %d trials, %d suggestions without an improvement, %d were guided", lateFirst, got, late, stale, guided)
		}
	}
}
