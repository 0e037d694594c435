package acquire

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Candidates that are the same as a trial up to rounding are skipped.
func TestRepeatsUpToRounding(t *testing.T) {
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": -5, "high": 10}, "y": {"type": "float", "low": 0, "high": 15}}`)
	branin := func(c space.Config) float64 {
		x, _ := c.Get("x")
		y, _ := c.Get("y")
		u, _ := x.AsFloat()
		v, _ := y.AsFloat()
		return -problems.Branin{}.Value([]float64{u, v})
	}
	spec := labtest.SpecOf(sp, 1)
	l := newSubject(t, spec, nil)
	for range 60 {
		trial := l.step()
		l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, branin(trial.Config))})
	}
	l.anchor()
	a := l.ahead()
	for i := range a.standing(a.engine).x.Len() {
		x := slices.Clone(a.standing(a.engine).x.Row(i))
		x[0] -= math.Copysign(1e-8, x[0]-0.5)
		c, err := a.decode(x)
		if err != nil {
			t.Fatal(err)
		}
		if a.has(c) || !a.repeats(c, x) {
			t.Errorf("result %d of the best is not repeated up to rounding: %v, %v", i, a.has(c), a.repeats(c, x))
		}
	}
}

// Integers next to each other are not the same, however many there are.
func TestRounding(t *testing.T) {
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}, "n": {"type": "int", "low": 1, "high": 1000000000, "scale": "log"}, "k": {"type": "int", "low": 0, "high": 3}}`)
	const most = 1_000_000_000
	distance, u, v := rounding(sp.Axes()), make([]float64, 3), make([]float64, 3)
	for _, c := range []struct {
		x    float64
		n    int64
		want bool
	}{{0.5, 7, true}, {0.5 + 1e-9, 7, true}, {0.5 + 1e-5, 7, false}, {0.5, 8, false}, {0.5, most - 1, false}} {
		first := int64(7)
		if c.n == most-1 {
			first = most
		}
		for to, at := range map[*[]float64]struct {
			x float64
			n int64
		}{&u: {0.5, first}, &v: {c.x, c.n}} {
			config := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(at.x)}, space.Assignment{Name: "n", Value: space.Int(at.n)}, space.Assignment{Name: "k", Value: space.Int(1)})
			if err := sp.Encode(config, *to); err != nil {
				t.Fatal(err)
			}
		}
		if got := model.Near([][]float64{u}, v, distance); got != c.want {
			t.Errorf("x = %v and n = %d are the same as 0.5 and %d: %v", c.x, c.n, first, got)
		}
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
	if n := testing.AllocsPerRun(3, func() { a.crowded(turn{exploit: true}) }); n > 50 {
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

// Suggestions that exploit may be as close to a pending trial as the extent of the best results
// allows. Where failures or limits are modelled, others of every second trial may, too.
func TestGathersNearTheBest(t *testing.T) {
	for _, failing := range []bool{false, true} {
		l := newSubject(t, labtest.SpecOf(labtest.Parse(t, labtest.Square), 7), nil)
		l.Scatter(20, labtest.Wavy)
		for i := range 5 { // far better than the others, and close to each other
			l.Do(study.Add{Config: l.Decode(0.5+0.001*float64(i), 0.5), Outcome: labtest.Completed(l.S.Spec(), -100+0.01*float64(i))})
		}
		if failing {
			l.Do(study.Add{Config: l.Decode(0.9, 0.1), Outcome: study.Outcome{State: study.Infeasible}})
		}
		pending := []float64{0.51, 0.5}
		l.Do(study.Enqueue{Config: l.Decode(pending...)})
		l.anchor()
		a, e := l.ahead(), l.at()
		a.widths()
		extent, scale := a.extent(), e.Past().Lengths()[0]
		if !(extent*extentShare > leastSpaced && extent*extentShare < spaced/4) {
			t.Fatalf("the extent is %v", extent)
		}
		at := []float64{pending[0] + 2*extentShare*extent*scale, pending[1]} // within 0.1, and beyond the share
		for trial := range 8 {
			w := a.turn(trial, 0, stream.New(1))
			want := !w.exploit && !(failing && trial%2 == 0)
			if got := a.crowded(w)(at); got != want {
				t.Errorf("failures %v: a suggestion for trial %d is crowded: %v, want %v", failing, trial, got, want)
			}
			if !a.crowded(w)(pending) {
				t.Errorf("trial %d may be where one is pending", trial)
			}
		}
	}
}
