package propose

import (
	"fmt"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/explain"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// near reports whether two numbers agree up to rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-8*(1+math.Abs(a)+math.Abs(b)) }

// TestFrozen compares the predictions of a frozen model with those that suggestions get, and
// checks that they stay while results come.
func TestFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	for _, name := range []string{"continuous", "mixed", "conditional"} {
		for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
			spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces[name]), 5)
			spec.Objectives[0].Direction = direction
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec)
			run := func(n int) {
				for range n {
					l.anchor(p)
					l.ask(p, 1)
					l.tell()
				}
			}
			if m, state, missing, err := p.(Modeler).Freeze(t.Context(), l.S); m != nil || state != surrogate.Waiting || missing < 2 || err != nil {
				t.Errorf("%s: before any result: %v, state %d, %d missing, %v", name, m, state, missing, err)
			}
			run(30)
			l.anchor(p)
			e, err := p.(*bkb).At(l.S)
			if err != nil || e == nil {
				t.Fatal(err)
			}
			m, state, _, err := p.(Modeler).Freeze(t.Context(), l.S)
			if err != nil || state != surrogate.Ready || m.Results != len(e.Results.List) {
				t.Fatalf("%s: state %d, %v", name, state, err)
			}
			var configs []space.Config
			for trial := range l.S.All(0) {
				configs = append(configs, trial.Config)
			}
			first, err := m.Predict(configs)
			if err != nil {
				t.Fatal(err)
			}
			x := kernel.NewPoints[float64](len(configs), spec.Space.Dim(), nil)
			for i, c := range configs {
				if err := spec.Space.Encode(c, x.Row(i)); err != nil {
					t.Fatal(err)
				}
				want, _ := e.Past().Explain(x.Row(i), nil)
				want.Noise[0] = e.Calibration.Noise(e.Past().Outcome(x.Row(i)), want.StdDev[0])
				got := first[i]
				if !near(got.Mean[0], want.Mean[0]) || !near(got.StdDev[0], want.StdDev[0]) || !near(got.Noise[0], want.Noise[0]) {
					t.Errorf("%s: at %s it is %v, by the model itself %v", name, c, got, want)
				}
			}
			for i, z := range m.Targets(0, x) {
				if mean := e.Show(0, z); !near(mean, first[i].Mean[0]) {
					t.Errorf("%s: the mean at %s is %v, want %v", name, configs[i], mean, first[i].Mean[0])
				}
			}
			for _, a := range spec.Space.Axes() {
				compareSlice(t, m, spec.Space, configs[0], a)
			}
			run(25)
			if again, err := m.Predict(configs); err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
				t.Errorf("%s: the predictions of a frozen model changed", name)
			}
		}
	}
}

// compareSlice compares a slice with predictions of its configurations one by one.
func compareSlice(t *testing.T, m *Frozen, sp *space.Space, c space.Config, a space.Axis) {
	t.Helper()
	if _, active := c.Get(a.Parameter); !active {
		return
	}
	const points = 33
	s, err := explain.Along(m, sp, c, a.Parameter, points)
	if err != nil {
		t.Fatal(err)
	}
	if n := uint64(len(s.At)); n > points || a.Levels == 0 && n != points || a.Levels > 0 && a.Levels <= points && n != a.Levels || n < min(a.Levels, 16) {
		t.Errorf("%s has %d points for %d values", a.Parameter, len(s.At), a.Levels)
	}
	for k, v := range s.Values {
		if k > 0 && s.At[k] <= s.At[k-1] {
			t.Errorf("%s: coordinate %v after %v", a.Parameter, s.At[k], s.At[k-1])
		}
		u := make([]float64, sp.Dim())
		if err := sp.Encode(c, u); err != nil {
			t.Fatal(err)
		}
		i, _ := sp.Coordinate(a.Parameter)
		u[i] = s.At[k]
		config, err := sp.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := config.Get(a.Parameter); got != v {
			t.Errorf("%s: the value at %v is %v, want %v", a.Parameter, s.At[k], v, got)
		}
		want, err := m.Predict([]space.Config{config})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Predictions[k]; !near(got.Mean[0], want[0].Mean[0]) || !near(got.StdDev[0], want[0].StdDev[0]) {
			t.Errorf("%s = %v: %v, predicted alone %v", a.Parameter, v, got, want[0])
		}
	}
}
