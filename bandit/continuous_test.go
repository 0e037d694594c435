package bandit_test

import (
	"errors"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
)

func continuous(f problems.Objective, l float64, exact bool, seed uint64) bandit.ContinuousConfig {
	c := bandit.ContinuousConfig{BKBConfig: bkbConfig(basic(matern(l), 0.01)), Exact: exact, Candidates: 256, Local: 64, Refine: 2}
	c.Lo, c.Hi = f.Bounds()
	c.Seed = seed
	return c
}

// two is a width that never changes.
type two struct{}

func (two) Beta(bandit.State) float64 { return 2 }
func (two) Check() error              { return nil }

// BKB and exact GP-UCB find the maximum on a line and in the plane.
func TestContinuousFindsTheMaximum(t *testing.T) {
	racetest.Alone(t)
	for _, run := range []struct {
		f               problems.Objective
		l, shift, scale float64
		steps           int
		within          float64
	}{{problems.Forrester{}, 0.15, 0, 4, 30, 0.15}, {problems.Branin{}, 4, 50, 50, 50, 0.1}} {
		_, top, _ := run.f.Optimum()
		for _, exact := range []bool{false, true} {
			c := continuous(run.f, run.l, exact, 3)
			c.Beta = two{} // Practical stays at Forrester's lower maximum
			p := must(bandit.NewContinuous(c))
			least := math.Inf(1)
			for i := range run.steps {
				s := must(p.Next())
				noise := 0.1 * stream.New(stream.Derive(9, "noise", uint64(i))).NormFloat64()
				v := run.f.Value(s.X)
				least = min(least, (top-v)/run.scale)
				if err := p.Observe(s.X, (v+run.shift)/run.scale+noise); err != nil {
					t.Fatal(err)
				}
			}
			best := must(p.Best())
			t.Logf("%s, exact %v: least regret %.3g, of the last best %.3g, m = %d", run.f.Name(), exact, least,
				(top-run.f.Value(best.X))/run.scale, best.InducingPoints)
			if least > run.within {
				t.Errorf("%s, exact %v: least regret %v", run.f.Name(), exact, least)
			}
		}
	}
}

// The sparse and the exact form agree while all inputs are inducing points, also with
// pending pulls. These only shrink σ̃.
func TestContinuousPending(t *testing.T) {
	f := problems.Branin{}
	sparse := continuous(f, 4, false, 5)
	sparse.Oversampling, sparse.FromScratch = math.Inf(1), true
	p, q := must(bandit.NewContinuous(sparse)), must(bandit.NewContinuous(continuous(f, 4, true, 5)))
	for range 12 {
		s := must(p.Next())
		y := (f.Value(s.X) + 50) / 50
		if p.Observe(s.X, y) != nil || q.Observe(s.X, y) != nil {
			t.Fatal("refused")
		}
	}
	before := must(q.Next())
	if p.Pull(before.X) != nil || q.Pull(before.X) != nil || p.Pending() != 1 || q.Pending() != 1 {
		t.Fatal("not pending")
	}
	if after := must(q.Next()); after.Step != 13 || after.X[0] == before.X[0] {
		t.Errorf("again at %v", after.X)
	}
	if err := q.Cancel([]float64{1, 1}); !errors.Is(err, bandit.ErrNotPending) {
		t.Error(err)
	}
	if p.Cancel(before.X) != nil || q.Cancel(before.X) != nil {
		t.Fatal("not taken back")
	}
	a, b := must(p.Next()), must(q.Next())
	near(t, "x", a.X, before.X, 1e-3)
	near(t, "x", b.X, before.X, 1e-12)
	near(t, "numbers", []float64{a.UCB, a.EffectiveDimension, a.InformationGain, a.Beta},
		[]float64{b.UCB, b.EffectiveDimension, b.InformationGain, b.Beta}, 1e-3)
	if p.Pull(before.X) != nil || q.Pull(before.X) != nil || p.Observe(before.X, 1) != nil || q.Observe(before.X, 1) != nil {
		t.Fatal("refused")
	}
	if p.Pending() != 0 || q.Pending() != 0 || p.Steps() != 13 || q.Steps() != 13 {
		t.Error("the reward did not resolve the pull")
	}
}

// Climbing never makes a suggestion worse, and refused inputs change nothing.
func TestContinuousRefines(t *testing.T) {
	racetest.Alone(t)
	f := problems.Hartmann6{}
	plain := continuous(f, 0.5, false, 6)
	plain.Refine = -1
	p, q := must(bandit.NewContinuous(plain)), must(bandit.NewContinuous(continuous(f, 0.5, false, 6)))
	better := 0
	for range 25 {
		a, b := must(p.Next()), must(q.Next())
		if b.UCB < a.UCB-1e-9 {
			t.Fatalf("climbed down from %v to %v", a.UCB, b.UCB)
		}
		if b.UCB > a.UCB+1e-6 {
			better++
		}
		y := f.Value(a.X)
		if p.Observe(a.X, y) != nil || q.Observe(a.X, y) != nil {
			t.Fatal("refused")
		}
	}
	if better < 15 {
		t.Errorf("climbing helped %d of 25 times", better)
	}
	before := must(p.Next())
	for _, x := range [][]float64{nil, {1}, {0, 0, 0, 0, 0, 2}, {0, 0, 0, 0, 0, math.NaN()}} {
		if p.Pull(x) == nil || p.Observe(x, 1) == nil || p.Cancel(x) == nil {
			t.Errorf("%v accepted", x)
		}
	}
	if p.Observe(before.X, math.NaN()) == nil || p.Observe(before.X) == nil {
		t.Error("bad rewards accepted")
	}
	if after := must(p.Next()); after.Decision != before.Decision {
		t.Error("a refused call changed the suggestion")
	}
	bad := bandit.ContinuousConfig{BKBConfig: plain.BKBConfig, Lo: []float64{0, 1}, Hi: []float64{1, 1}, Candidates: -1}
	if faults := flatten(bad.Validate()); len(faults) != 2 {
		t.Errorf("%v", faults)
	}
}
