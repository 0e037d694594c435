package model

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// failing returns a study of n told trials on a square, some of which crashed.
func failing(t *testing.T, n int, seed uint64, crashes func(u []float64, rng *rand.Rand) bool) (*lab, *rand.Rand) {
	t.Helper()
	spec, rng := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7), rand.New(rand.NewPCG(seed, 9))
	l := newLab(t, spec, nil)
	for range n {
		l.fail([]float64{rng.Float64(), rng.Float64()}, rng, crashes)
	}
	l.anchor()
	return l, rng
}

func (l *lab) fail(u []float64, rng *rand.Rand, crashes func(u []float64, rng *rand.Rand) bool) {
	o := labtest.Completed(l.S.Spec(), u[0])
	if crashes(u, rng) {
		o = study.Outcome{State: study.Failed, Reason: study.FailedCrash}
	}
	l.Do(study.Add{Config: l.Decode(u...), Outcome: o})
}

func corner(u []float64, _ *rand.Rand) bool      { return u[0]+u[1] > 1.2 }
func atRandom(_ []float64, rng *rand.Rand) bool  { return rng.Float64() < 0.3 }
func never([]float64, *rand.Rand) bool           { return false }
func cornerAnd(u []float64, rng *rand.Rand) bool { return corner(u, rng) || rng.Float64() < 0.1 }

func mean(e *Engine, u ...float64) (feasible float64) { return e.Freeze().At(at(u...))[0].Feasible }

// A region of failures counts and failures at random do not, and the probability shown follows.
func TestExplainedFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		crashes func(u []float64, rng *rand.Rand) bool
		n       int
		want    bool
	}{
		{"region", corner, 40, true},
		{"region and random", cornerAnd, 60, true},
		{"random", atRandom, 60, false},
		{"random, many", atRandom, 250, false},
	} {
		l, _ := failing(t, c.n, 4, c.crashes)
		e := l.ready()
		if e.Blames() != c.want || e.Past().Doubts() != c.want {
			t.Errorf("%s: parameters explain failures: %t, with gain %v", c.name, e.Blames(), e.Event.Explained)
		}
		good, bad := mean(e, 0.1, 0.1), mean(e, 0.95, 0.95)
		if c.want && (good < 0.75 || bad > 0.5) || !c.want && (good != bad || math.Abs(good-(1-rate(e.failures, e.told))) > 1e-9) {
			t.Errorf("%s: probabilities of success %v and %v", c.name, good, bad)
		}
	}
}

// Trials that are told as infeasible always count, also where no parameter explains them. They
// do after a restart and in a frozen model too, and when they are told after the model event.
func TestInfeasibleTrialsCount(t *testing.T) {
	for _, later := range []bool{false, true} {
		l, _ := failing(t, 60, 4, atRandom)
		if e := l.ready(); e.Blames() {
			t.Fatal("failures at random count")
		}
		l.Do(study.Add{Config: l.Decode(0.5, 0.5), Outcome: study.Outcome{State: study.Infeasible}})
		if !later {
			for range 20 {
				l.Do(study.Add{Config: l.Decode(0.1, 0.1), Outcome: labtest.Completed(l.S.Spec(), 0.1)})
			}
			l.anchor()
		}
		e := l.ready()
		if (e.Event.Results <= 60) != later {
			t.Fatalf("the model event has %d results", e.Event.Results)
		}
		if !e.Blames() || !l.another(e).Blames() || !e.Detach().Doubts() || mean(e, 0.5, 0.5) >= mean(e, 0.1, 0.1) {
			t.Errorf("told later: %t: an infeasible trial does not count, gain %v and %v", later, e.Event.Explained, e.gained)
		}
	}
}

// The gain at a model event is that of predictions by all other results. The oracle makes a
// posterior without each.
func TestGainByDefinition(t *testing.T) {
	l, _ := failing(t, 30, 2, cornerAnd)
	e := l.ready()
	s, list := &e.Event.Surfaces[1], e.Results.List[:e.Event.Results]
	want, failures := 0.0, 0
	for i := range list {
		if list[i].Failed {
			failures++
		}
	}
	for i := range list {
		var rest []Result
		rest = append(append(rest, list[:i]...), list[i+1:]...)
		one := *s
		one.Dictionary = nil
		for _, r := range rest {
			one.Dictionary = append(one.Dictionary, r.Trial)
		}
		p, err := one.posterior(e.builder.space, rest, success, 256)
		if err != nil {
			t.Fatal(err)
		}
		m, v := p.predict(at(list[i].X...))
		k := failures
		if list[i].Failed {
			k--
		}
		want += gainOf(&list[i], m[0], v[0], k, len(rest))
	}
	if got := e.Event.Explained; math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
		t.Errorf("gain %v, want %v", got, want)
	}
}

// Later results change the gain by their predictions. The state is the same after a restart.
func TestGainFollowsResults(t *testing.T) {
	l, rng := failing(t, 100, 2, corner)
	e := l.ready()
	before, event := e.gained, e.Event.Results
	for range 5 {
		l.fail([]float64{0.9, 0.5 + 0.1*rng.Float64()}, rng, never)
	}
	if e = l.ready(); e.gained >= before || e.Event.Results != event {
		t.Errorf("successes where the model expects failures change the gain from %v to %v", before, e.gained)
	}
	if again := l.another(e); again.gained != e.gained || again.failures != e.failures {
		t.Errorf("after a restart %v of %d failures, before %v of %d", again.gained, again.failures, e.gained, e.failures)
	}
}

// Failures in a row at one place make a model event due, by which they count, also if the
// study is long.
func TestFailuresInRow(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	for _, c := range []struct {
		n, more int
		rate    float64 // of failures at random before
		side    float64
	}{{100, 16, 0.1, 0.02}, {600, 24, 0.02, 0.05}, {racetest.Size(700, 2000), 24, 0.02, 0.05}, {racetest.Size(700, 2000), 24, 0, 0.05}} {
		l, rng := failing(t, c.n, 2, func(_ []float64, rng *rand.Rand) bool { return rng.Float64() < c.rate })
		if e := l.ready(); e.Blames() {
			t.Fatal("failures at random count")
		}
		always, count := func([]float64, *rand.Rand) bool { return true }, 0
		for i := range c.more {
			l.fail([]float64{0.5 + c.side*rng.Float64(), 0.5 + c.side*rng.Float64()}, rng, always)
			l.anchor()
			if i >= c.more-10 && l.ready().Blames() {
				count++
			}
		}
		if count < 8 {
			t.Errorf("%d results: %d of the last 10 times failures in a row count", c.n, count)
		}
		if e := l.ready(); c.n == 100 && e.Event.Results < 100+3*failuresInRow {
			t.Errorf("%d results after a model event of %d", len(e.Results.List), e.Event.Results)
		}
	}
}

// After a model event because of failures in a row, the next one needs a 64th of the results in
// a row.
func TestFailuresInRowWait(t *testing.T) {
	for _, c := range []struct{ before, in, want int }{{100, 12, 3}, {800, 24, 2}, {800, 15, 1}} {
		list, e, events := make([]Result, c.before), Event{Results: c.before, Surfaces: make([]Surface, 2)}, 0
		for range c.in {
			list = append(list, Result{Failed: true})
			if e.blind(list, 1) {
				e.Results, events = len(list), events+1
			}
		}
		if events != c.want {
			t.Errorf("%d failures in a row after %d results make %d model events due, want %d", c.in, c.before, events, c.want)
		}
		if e.blind(append(list, make([]Result, 4)...), 1) {
			t.Error("successes make an event due")
		}
	}
}

// The first failure makes a model event due, and the next one does not.
func TestFirstFailureMakesAnEvent(t *testing.T) {
	l, rng := failing(t, 100, 2, never)
	for i, want := range []bool{true, false} {
		l.fail([]float64{0.3, 0.4 + 0.1*float64(i)}, rng, func([]float64, *rand.Rand) bool { return true })
		a, due, err := l.m.Anchor(context.Background(), l.S)
		if err != nil || due != want {
			t.Fatalf("failure %d: an event is due: %t, %v", i+1, due, err)
		}
		if due {
			l.Do(a)
		}
	}
	if e := l.ready(); e.success() == nil || e.Event.Results != 101 {
		t.Errorf("no model of success after a failure: %+v", e.Event.Explained)
	}
}
