package propose

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Four suggestions at once differ by a tenth of a length scale. Those that exploit differ by a
// quarter of the extent of the best five results where these are close to each other. So no two
// are the same when the model has found the optimum, and together they find it to 1e-9.
func TestPendingTrialsKeepADistance(t *testing.T) {
	sp := labtest.Parse(t, labtest.Square)
	for _, options := range []string{"", `{"exploit_every": 1}`} {
		spec := labtest.SpecOf(sp, 5)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec).(*bkb)
		value := func(n int) float64 {
			trial, _ := l.S.Trial(n)
			return labtest.Bowl(sp, trial.Config)
		}
		far, near, best := 0, 0, math.Inf(1)
		for range 15 {
			batch := l.propose(p, 4)
			e, err := p.model.At(l.S)
			if err != nil {
				t.Fatal(err)
			}
			first := l.S.Trials()
			l.start(batch)
			if e != nil && batch.Suggestions[0].Phase != study.PhaseStart {
				lengths := e.Past().Lengths()
				apart := func(n, k int) float64 {
					x, y, sum := l.Coordinates(n), l.Coordinates(k), 0.0
					for c := range x {
						sum += math.Pow((x[c]-y[c])/lengths[c], 2)
					}
					return math.Sqrt(sum)
				}
				exploits, told := 0.1, make([]int, first)
				for n := range told {
					told[n] = n
				}
				slices.SortStableFunc(told, func(n, k int) int { return cmp.Compare(value(n), value(k)) })
				if len(told) >= 5 {
					extent := 0.0
					for _, n := range told[1:5] {
						extent = max(extent, apart(told[0], n))
					}
					exploits = min(exploits, extent/4)
				}
				for n := first; n < l.S.Trials(); n++ {
					want := 0.1
					if batch.Suggestions[n-first].Phase == study.PhaseExploit {
						want = exploits
					}
					if want < 0.1 {
						near++
					} else {
						far++
					}
					for k := first; k < n; k++ {
						if got := apart(n, k); got < 0.999*want {
							t.Errorf("%s: trials %d and %d are %.2g length scales apart, want %.2g", options, k, n, got, want)
						}
					}
				}
			}
			for n := first; n < l.S.Trials(); n++ {
				y := value(n)
				best = min(best, y)
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, y)})
			}
		}
		t.Logf("%s: the best of 60 trials is %v; %d suggestions keep a tenth, %d less", options, best, far, near)
		if best > 1e-9 || far == 0 || near == 0 {
			t.Errorf("%s: the best of 60 trials is %v; %d suggestions keep a tenth, %d less", options, best, far, near)
		}
	}
}
