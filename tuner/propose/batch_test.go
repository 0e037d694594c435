package propose

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Of suggestions that are made together no two are the same up to 1e-6, also when the model has found the
// optimum, and together they find it to 1e-9.
func TestPendingTrialsDiffer(t *testing.T) {
	sp := labtest.Parse(t, labtest.Square)
	for _, options := range []string{"", `{"exploit_every": 1}`} {
		spec := labtest.SpecOf(sp, 5)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		best := math.Inf(1)
		for range 15 {
			first := l.S.Trials()
			l.start(l.propose(p, 4))
			for n := first; n < l.S.Trials(); n++ {
				x := l.Coordinates(n)
				for k := range n {
					if y := l.Coordinates(k); math.Abs(x[0]-y[0]) <= 1e-6 && math.Abs(x[1]-y[1]) <= 1e-6 {
						t.Errorf("%s: trials %d and %d are the same", options, k, n)
					}
				}
			}
			for n := first; n < l.S.Trials(); n++ {
				trial, _ := l.S.Trial(n)
				y := labtest.Bowl(sp, trial.Config)
				best = min(best, y)
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, y)})
			}
		}
		if best > 1e-9 {
			t.Errorf("%s: the best of 60 trials is %v", options, best)
		}
	}
}
