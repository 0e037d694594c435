package propose

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Four suggestions at once differ by a tenth of a length scale, even when the model has
// found the optimum. One at a time they still find it exactly.
func TestPendingTrialsKeepADistance(t *testing.T) {
	sp := labtest.Parse(t, labtest.Square)
	for _, options := range []string{"", `{"exploit_every": 1}`} {
		spec := labtest.SpecOf(sp, 5)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec).(*bkb)
		best := math.Inf(1)
		for range 15 {
			batch := l.propose(p, 4)
			l.start(batch)
			e, err := p.model.At(l.S)
			if err != nil {
				t.Fatal(err)
			}
			var lengths []float64
			if e != nil {
				lengths = e.Past().Lengths()
			}
			first := l.S.Trials() - len(batch.Suggestions)
			for n := first; n < l.S.Trials(); n++ {
				for k := first; k < n && e != nil && batch.Suggestions[0].Phase != PhaseStart; k++ {
					x, y, sum := l.Coordinates(n), l.Coordinates(k), 0.0
					for c := range x {
						sum += math.Pow((x[c]-y[c])/lengths[c], 2)
					}
					if sum < 0.0999*0.0999 {
						t.Errorf("%s: trials %d and %d are %.2g length scales apart", options, k, n, math.Sqrt(sum))
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
		if best > 1e-6 {
			t.Errorf("%s: the best of 60 trials is %v", options, best)
		}
	}
}
