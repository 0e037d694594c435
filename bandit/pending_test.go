package bandit_test

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// zeroArm are arms of a linear kernel, number 7 of them at the origin: of k(x, x)
// = 0, known for certain before the first pull.
func zeroArm() (*kernel.Points[float64], kernel.Kernel) {
	x := uniform(1, 30, 2)
	clear(x.Row(7))
	return x, must(kernel.NewLinear(1))
}

func TestArmOfNoVarianceEndsBatches(t *testing.T) {
	x, k := zeroArm()
	c := basic(k, 0.01)
	c.Local = true
	p := must(bandit.NewBBKB(bkbConfig(c), x))
	for range 500 {
		d := must(p.Next())
		if err := p.Observe(d.Arm, x.Row(d.Arm)[0]-x.Row(d.Arm)[1]); err != nil {
			t.Fatal(err)
		}
	}
	if p.Switches() < 5 {
		t.Errorf("%d batches in 500 pulls", p.Switches())
	}
	best, at := 0, math.Inf(-1)
	for a := range x.Len() {
		if v := x.Row(a)[0] - x.Row(a)[1]; v > at {
			best, at = a, v
		}
	}
	if got := must(p.Best()).Arm; got != best {
		t.Errorf("best arm %d, want %d", got, best)
	}
}

func TestRepeatsOfArmOfNoVariance(t *testing.T) {
	x, k := zeroArm()
	p := must(bandit.NewMiniGPOpt(basic(k, 0.01), x))
	for range 3 { // other people's choice, and the worst
		if err := p.Observe(7, 0); err != nil {
			t.Fatal(err)
		}
	}
	worst := 0
	for range 300 {
		d := must(p.Next())
		if d.Arm == 7 {
			worst++
		}
		if err := p.Observe(d.Arm, x.Row(d.Arm)[0]+x.Row(d.Arm)[1]); err != nil {
			t.Fatal(err)
		}
	}
	if worst > 0 {
		t.Errorf("%d pulls of the arm that is known to be the worst", worst)
	}
}

// TestMaxBatchCountsPending: following Next and MaxBatch without feedback shrinks
// no variance by more than C̃.
func TestMaxBatchCountsPending(t *testing.T) {
	const lambda, ratio = 2.0, 3.0
	x := uniform(2, 100, 2)
	c := basic(matern(0.5), lambda)
	c.Ratio = ratio
	for name, p := range map[string]bandit.Policy{
		"GP-UCB": must(bandit.NewGPUCB(c, x)), "BKB": must(bandit.NewBKB(bkbConfig(c), x)),
		"BKB, all": must(bandit.NewBKB(bandit.BKBConfig{Config: c, Sparsity: bandit.Sparsity{Oversampling: math.Inf(1), FromScratch: true}}, x)),
		"Thompson": must(bandit.NewThompson(bandit.ThompsonConfig{BKBConfig: bkbConfig(c)}, x)),
	} {
		for a := range 4 {
			if err := p.Observe(a, 0.1); err != nil {
				t.Fatal(err)
			}
		}
		first := must(p.Next()).MaxBatch
		before := variances(p)
		for pulls := 0; ; pulls++ {
			d := must(p.Next())
			if d.MaxBatch == 1 && pulls > 0 {
				break
			}
			if pulls > 100 {
				t.Fatalf("%s: MaxBatch %d after %d pulls without feedback", name, d.MaxBatch, pulls)
			}
			for range d.MaxBatch {
				if err := p.Pull(d.Arm); err != nil {
					t.Fatal(err)
				}
			}
			pulls += d.MaxBatch - 1
		}
		if name == "GP-UCB" || name == "BKB, all" { // σ̃ = σ
			after := variances(p)
			for a, v := range before {
				if v > ratio*after[a]*(1+1e-9) {
					t.Errorf("%s: arm %d shrank from %g to %g", name, a, v, after[a])
				}
			}
		}
		if first < 2 {
			t.Errorf("%s: MaxBatch %d: nothing was tested", name, first)
		}
	}
}

func variances(p bandit.Policy) []float64 {
	return append([]float64(nil), p.(interface{ Variances() []float64 }).Variances()...)
}

// TestMaxBatchCountsPendingOnBox is the same for both posteriors of a box.
func TestMaxBatchCountsPendingOnBox(t *testing.T) {
	for _, exact := range []bool{true, false} {
		p := must(bandit.NewContinuous(bandit.ContinuousConfig{
			BKBConfig: bkbConfig(basic(matern(0.5), 2)), Lo: []float64{0}, Hi: []float64{1}, Exact: exact,
		}))
		if err := p.Observe([]float64{0.5}, 1); err != nil {
			t.Fatal(err)
		}
		first := must(p.Next())
		for range first.MaxBatch + 1 {
			if err := p.Pull(first.X); err != nil {
				t.Fatal(err)
			}
		}
		if first.MaxBatch < 2 {
			t.Errorf("exact %v: MaxBatch %d: nothing was tested", exact, first.MaxBatch)
		}
		if got := must(p.Next()).MaxBatch; got > first.MaxBatch {
			t.Errorf("exact %v: MaxBatch %d before, %d after", exact, first.MaxBatch, got)
		}
		if got := must(p.Best()).MaxBatch; got > first.MaxBatch {
			t.Errorf("exact %v: MaxBatch %d of the best", exact, got)
		}
	}
}
