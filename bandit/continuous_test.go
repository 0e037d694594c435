package bandit_test

import (
	"errors"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
)

func continuous(f problems.Objective, l float64, seed uint64) bandit.ContinuousConfig {
	c := bandit.ContinuousConfig{BKBConfig: bkbConfig(basic(matern(l), 0.01)), Candidates: 256, Local: 64, Refine: 2}
	c.Lo, c.Hi = f.Bounds()
	c.Seed = seed
	return c
}

// two is a width that never changes.
type two struct{}

func (two) Beta(bandit.State) float64 { return 2 }
func (two) Check() error              { return nil }

// BKB finds the maximum on a line and in the plane.
func TestContinuousFindsTheMaximum(t *testing.T) {
	racetest.Alone(t)
	for _, run := range []struct {
		f               problems.Objective
		l, shift, scale float64
		steps           int
		within          float64
	}{{problems.Forrester{}, 0.15, 0, 4, 30, 0.15}, {problems.Branin{}, 4, 50, 50, 50, 0.1}} {
		_, top, _ := run.f.Optimum()
		c := continuous(run.f, run.l, 3)
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
		t.Logf("%s: least regret %.3g, of the last best %.3g, m = %d", run.f.Name(), least,
			(top-run.f.Value(best.X))/run.scale, best.InducingPoints)
		if least > run.within {
			t.Errorf("%s: least regret %v", run.f.Name(), least)
		}
	}
}

// While all inputs are inducing points, the posterior is that of the Gaussian process.
// Pending pulls only shrink σ̃.
func TestContinuousPending(t *testing.T) {
	f := problems.Branin{}
	c := continuous(f, 4, 5)
	c.Oversampling, c.FromScratch = math.Inf(1), true
	p := must(bandit.NewContinuous(c))
	var x, y []float64
	for range 12 {
		s := must(p.Next())
		x, y = append(x, s.X...), append(y, (f.Value(s.X)+50)/50)
		if err := p.Observe(s.X, y[len(y)-1]); err != nil {
			t.Fatal(err)
		}
	}
	before := must(p.Next())
	if p.Pull(before.X) != nil || p.Pending() != 1 {
		t.Fatal("not pending")
	}
	if after := must(p.Next()); after.Step != 13 || after.X[0] == before.X[0] {
		t.Errorf("again at %v", after.X)
	}
	if err := p.Cancel([]float64{1, 1}); !errors.Is(err, bandit.ErrNotPending) {
		t.Error(err)
	}
	if err := p.Cancel(before.X); err != nil {
		t.Fatal(err)
	}
	a := must(p.Next())
	near(t, "x", a.X, before.X, 1e-12)
	points := kernel.NewPoints(12, 2, x)
	g := must(gp.NewExact(c.Kernel, gp.Data{X: points, Y: y}, gp.Options{NoiseVariance: c.NoiseVariance}))
	mean, variance, err := g.Predict(kernel.NewPoints(1, 2, a.X))
	if err != nil {
		t.Fatal(err)
	}
	_, all, err := g.Predict(points)
	if err != nil {
		t.Fatal(err)
	}
	dimension := 0.0
	for _, v := range all {
		dimension += v / c.NoiseVariance
	}
	near(t, "numbers", []float64{a.UCB, a.EffectiveDimension, a.InformationGain},
		[]float64{mean[0] + a.Beta*math.Sqrt(variance[0]), dimension, g.LogDet()}, 1e-3)
	if p.Pull(before.X) != nil || p.Observe(before.X, 1) != nil {
		t.Fatal("refused")
	}
	if p.Pending() != 0 || p.Steps() != 13 {
		t.Error("the reward did not resolve the pull")
	}
}

// Climbing never makes a suggestion worse, and refused inputs change nothing.
func TestContinuousRefines(t *testing.T) {
	racetest.Alone(t)
	f := problems.Hartmann6{}
	plain := continuous(f, 0.5, 6)
	plain.Refine = -1
	p, q := must(bandit.NewContinuous(plain)), must(bandit.NewContinuous(continuous(f, 0.5, 6)))
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
