package acquire

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The fold has the best results, also if it gets them in pieces.
func TestRanked(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	var r model.Results
	var want []bandit.Evaluation
	got := elite{most: 9}
	for i := range 200 {
		one := model.Result{X: []float64{float64(i)}, Feasible: rng.IntN(5) > 0}
		if rng.IntN(5) > 0 {
			one.Y = []model.Measure{{Value: float64(rng.IntN(30))}}
		}
		if r.List = append(r.List, one); one.Y != nil && one.Feasible {
			want = append(want, bandit.Evaluation{X: one.X, Y: one.Y[0].Value})
		}
		if rng.IntN(4) == 0 {
			got.follow(&r)
		}
	}
	got.follow(&r)
	slices.SortStableFunc(want, func(a, b bandit.Evaluation) int { return int(b.Y - a.Y) })
	for n, i := range got.ranked {
		if len(got.ranked) != 9 || float64(i) != want[n].X[0] {
			t.Fatalf("%v, want %v", got.ranked, want[:9])
		}
	}
	r.Begun++
	r.List = r.List[:3]
	if got.follow(&r); got.told != 3 {
		t.Errorf("%d results of a study that began again, want 3", got.told)
	}
}

// Where parameters explain failures, the best point of a quadratic is suggested unless it is more
// likely to fail than not.
func TestQuadraticBesideFailures(t *testing.T) {
	for _, c := range []struct {
		edge float64 // of the first coordinate, above which trials fail
		want bool
	}{{0.65, true}, {0.42, false}} {
		l := newSubject(t, labtest.SpecOf(labtest.Parse(t, labtest.Square), 7), func(_ *model.Options, o *Options) { o.Quadratic = true })
		rng, top := rand.New(rand.NewPCG(5, 1)), []float64{0.5, 0.4}
		for range 60 {
			x := []float64{rng.Float64(), rng.Float64()}
			o := study.Outcome{State: study.Failed, Reason: study.FailedCrash}
			if x[0] < c.edge {
				o = labtest.Completed(l.S.Spec(), square(x, top))
			}
			l.Do(study.Add{Config: l.Decode(x...), Outcome: o})
		}
		l.anchor()
		a, e := l.ahead(), l.at()
		if !e.Blames() {
			t.Fatalf("edge %g: parameters do not explain the failures", c.edge)
		}
		if !a.plain(e) {
			t.Errorf("edge %g: no quadratic", c.edge)
		}
		if x, err := a.quadratic(&turn{exploit: true}); err != nil || (x != nil) != c.want || x != nil && square(x, top) > 1e-12 {
			t.Errorf("edge %g: the quadratic suggests %v, %v", c.edge, x, err)
		}
	}
}

// square returns half the squared distance of two points of a square.
func square(x, y []float64) float64 {
	return ((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1])) / 2
}
