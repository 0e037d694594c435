package acquire

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
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
	chooser, u, v := Chooser{rounding: rounding(sp.Axes())}, make([]float64, 3), make([]float64, 3)
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
		if got := chooser.same(u, v); got != c.want {
			t.Errorf("x = %v and n = %d are the same as 0.5 and %d: %v", c.x, c.n, first, got)
		}
	}
}
