package propose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// rough returns an exact function that no smooth model explains.
func rough(sp *space.Space, seed uint64) func(c space.Config) float64 {
	return func(c space.Config) float64 {
		effect := stream.New(stream.Derive(seed, c.String(), 0)).NormFloat64()
		return 4*labtest.Bowl(sp, c) + 0.3*effect
	}
}

// On an exact objective the recommendation is the best measured trial. On one with noise it
// is no worse than that, on average. One trial of 40 finds out which it is.
func TestRecommendationAndNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	sp := labtest.Parse(t, labtest.Square)
	for _, noise := range []float64{0, 0.3} {
		phases, worse, same := make(map[string]int), 0, 0
		byModel, byValue := 0.0, 0.0
		seeds := racetest.Size(5, 12)
		for seed := range uint64(seeds) {
			spec := labtest.SpecOf(sp, seed)
			value := func(c space.Config) float64 { return 4 * labtest.Bowl(sp, c) }
			if noise == 0 {
				value = rough(sp, seed)
			}
			rng := rand.New(rand.NewPCG(seed, 9))
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
			best, at := math.Inf(1), 0
			for range 40 {
				n := l.step(p)
				trial, _ := l.S.Trial(n)
				phases[trial.Suggestion.Phase]++
				y := value(trial.Config) + noise*rng.NormFloat64()
				if y < best {
					best, at = y, n
				}
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, y)})
			}
			got, err := recommend(p, l.S)
			if err != nil || len(got) != 1 {
				t.Fatalf("recommended %v: %v", got, err)
			}
			chosen, _ := l.S.Trial(got[0])
			measured, _ := l.S.Trial(at)
			a, b := value(chosen.Config), value(measured.Config)
			byModel, byValue = byModel+a/float64(seeds), byValue+b/float64(seeds)
			if a > b {
				worse++
			} else if a == b {
				same++
			}
		}
		t.Logf("noise %v: recommended %.3f, best measured %.3f, worse %d, equal %d of %d, phases %v", noise, byModel, byValue, worse, same, seeds, phases)
		if phases[study.PhaseRepeat] != seeds {
			t.Errorf("noise %v: %d repetitions in %d studies of 40 trials", noise, phases[study.PhaseRepeat], seeds)
		}
		if noise == 0 && same != seeds {
			t.Errorf("the best measured is not recommended in %d of %d exact studies", seeds-same, seeds)
		}
		if noise > 0 && byModel > byValue+0.01 {
			t.Errorf("the recommendation has %v, and the best measured %v", byModel, byValue)
		}
	}
}

// With noise = none nothing is repeated, and the best measured trial is recommended. With
// reuse and replicate nothing is repeated for this purpose.
func TestNoRepetition(t *testing.T) {
	sp := labtest.Parse(t, labtest.Square)
	for _, options := range []string{`{"noise": "none"}`, `{"on_duplicate": "reuse"}`, `{"on_duplicate": "replicate"}`} {
		for seed := range uint64(3) {
			spec := labtest.SpecOf(sp, seed)
			value := rough(sp, seed)
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
			best, at := math.Inf(1), 0
			for range 30 {
				n := l.step(p)
				trial, _ := l.S.Trial(n)
				if trial.Suggestion.Phase == study.PhaseRepeat {
					t.Errorf("%s: trial %d repeats one", options, n)
				}
				y := value(trial.Config)
				if y < best {
					best, at = y, n
				}
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, y)})
			}
			got, err := recommend(p, l.S)
			if options == `{"noise": "none"}` && (err != nil || fmt.Sprint(got) != fmt.Sprint([]int{at})) {
				t.Errorf("recommended %v, want %d: %v", got, at, err)
			}
		}
	}
}

// A repetition that crashes or is pruned is not repeated for ever.
func TestFailedRepetition(t *testing.T) {
	sp := labtest.Parse(t, labtest.Square)
	spec := labtest.SpecOf(sp, 3)
	value := rough(sp, 3)
	for _, ended := range []study.Outcome{{State: study.Failed, Reason: study.FailedCrash}, {State: study.Infeasible}, {State: study.Pruned}} {
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
		repeated := 0
		for range 40 {
			n := l.step(p)
			trial, _ := l.S.Trial(n)
			o := labtest.Completed(spec, value(trial.Config))
			if trial.Suggestion.Phase == study.PhaseRepeat {
				l.Advance(n, 1, 3, func(int64) float64 { return 5 })
				repeated, o = repeated+1, ended
			}
			l.Do(study.Tell{Trial: n, Outcome: o})
		}
		if repeated != 1 {
			t.Errorf("%v: %d of 40 trials repeat the best one, want 1", ended.State, repeated)
		}
	}
}
