package acquire

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Candidates near to a trial are skipped only where there is almost no noise.
func TestReplicatesWhereThereIsNoise(t *testing.T) {
	branin := labtest.Tasks(t)[0]
	spec := labtest.SpecOf(branin.Space, 1)
	l := newSubject(t, spec, nil)
	for range 60 {
		trial := l.step()
		l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, branin.Value(trial.Config))})
	}
	l.anchor()
	e, a := l.at(), l.ahead()
	a.widths()
	w, pool := wish{width: 1}, new(bandit.Pool)
	if err := pool.Add(&scorer{a, w}, a.elite.now().x); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		known := a.known(w, pool)
		for i := range pool.X {
			if known(i) {
				n++
			}
		}
		return n
	}
	if n := count(); n == 0 {
		t.Errorf("of %d of the best results none is known", len(pool.X))
	}
	e.Event.Surfaces[0].Noise = 2 * quietest
	if n := count(); n != 0 {
		t.Errorf("with noise %d of the best results are known", n)
	}
}

// A long queue is listed once for each suggestion, not copied for each of its trials.
func TestCrowdedByALongQueue(t *testing.T) {
	l, _ := worked(t, nil, 1, 20, labtest.Wavy)
	const queued = 1000
	for i := range queued {
		l.Do(study.Enqueue{Config: l.Decode(float64(i)/queued, 0.5)})
	}
	l.anchor()
	a := l.ahead()
	if got := len(a.engine.Results.Pending); got != queued {
		t.Fatalf("%d trials are pending, want %d", got, queued)
	}
	pool := new(bandit.Pool)
	if n := testing.AllocsPerRun(3, func() { a.crowded(wish{exploit: true}, pool) }); n > 50 {
		t.Errorf("%v allocations for %d pending trials", n, queued)
	}
}

// The extent is that of the five best different configurations.
func TestExtent(t *testing.T) {
	l := newSubject(t, labtest.SpecOf(labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}, "k": {"type": "categorical", "values": ["a", "b"]}}`), 7), nil)
	tell := func(x, k, loss float64) {
		l.Do(study.Add{Config: l.Decode(x, k), Outcome: labtest.Completed(l.S.Spec(), loss)})
	}
	for i := range 20 { // as far from each other as from the best
		tell(float64(i)/20, 0.25, 2+float64(i))
	}
	for range 9 {
		tell(0.5, 0.25, 0)
	}
	extent := func() float64 {
		l.anchor()
		return l.ahead().extent()
	}
	scale := func() float64 { return l.at().Past().Lengths()[0] }
	for i, c := range []struct{ x, k, loss, want float64 }{
		{0.501, 0.25, 0.1, 0.5}, // 0, 0.05 and 0.1 are the next
		{0.502, 0.25, 0.2, 0.5},
		{0.503, 0.25, 0.3, 0.5},
		{0.504, 0.25, 0.4, 0.004},
		{0.505, 0.75, 0.01, math.Inf(1)},
	} {
		tell(c.x, c.k, c.loss)
		if got := extent() * scale(); math.Abs(got-c.want) > 1e-9 && got != c.want {
			t.Errorf("case %d: the extent is %v, want %v", i, got, c.want)
		}
	}
}
