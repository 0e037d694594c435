package acquire

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A suggestion has the largest bound where an improvement of at least a thousandth of a standard deviation is
// expected there, and else the largest expected improvement. With the widths of the theory it always has
// the largest bound.
func TestExploresWhereTheBoundGainsNothing(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 3)
	phases := make(map[string]int)
	l := newSubject(t, spec, nil)
	for i := range 60 {
		l.anchor()
		if e := l.at(); e != nil && i%4 != 3 {
			a := l.ahead()
			a.widths()
			w := a.turn(i, a.trialSeed(i), stream.New(a.trialSeed(i)))
			pool := a.search(w)
			at, best := 0, math.Inf(-1)
			for k, m := range pool.Mean {
				if u := m + a.beta[0]*math.Sqrt(pool.Variance[k]); u > best {
					at, best = k, u
				}
			}
			sd, incumbent := math.Sqrt(pool.Variance[at]), a.standing(e).best()
			z := (pool.Mean[at] - incumbent) / sd
			gain := (pool.Mean[at]-incumbent)*0.5*math.Erfc(-z/math.Sqrt2) + sd*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
			want := study.PhaseModel
			if gain < 1e-3 {
				want = study.PhaseExplore
			}
			if got := l.propose(1).Suggestions[0].Phase; got != want {
				t.Errorf("trial %d is of phase %q, and where the bound is largest %v is expected", i, got, gain)
			}
			phases[want]++
		}
		trial := l.step()
		u := l.Coordinates(trial.Number)
		l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, twoHoles(u))})
	}
	if phases[study.PhaseModel] < 5 || phases[study.PhaseExplore] < 5 {
		t.Errorf("too few trials of each phase: %v", phases)
	}
}

// twoHoles has a wide hole that is a little less deep than a narrow one.
func twoHoles(u []float64) float64 {
	hole := func(x, y, width float64) float64 {
		return math.Exp(-(math.Pow(u[0]-x, 2) + math.Pow(u[1]-y, 2)) / (2 * width * width))
	}
	return -0.9*hole(0.3, 0.35, 0.2) - hole(0.85, 0.8, 0.1)
}

// A study that knows one basin finds a better one. With the bound alone, as with the widths of a vanishing c, it
// would stay.
func TestLeavesAKnownBasin(t *testing.T) {
	found := 0
	const seeds = 5
	for seed := range uint64(seeds) {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), seed)
		l, best := newSubject(t, spec, func(_ *model.Options, o *Options) { o.Width = 1e-3 }), 0.0
		for range 80 {
			trial := l.step()
			y := twoHoles(l.Coordinates(trial.Number))
			best = min(best, y)
			l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, y)})
		}
		if best < -0.95 {
			found++
		}
	}
	if found < seeds-1 {
		t.Errorf("the better hole was found in %d of %d studies", found, seeds)
	}
}
