package bandit_test

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// zeroArm returns arms of a linear kernel. Number 7 is at the origin, where k(x,
// x) = 0, so it is known exactly before the first pull.
func zeroArm() (*kernel.Points[float64], kernel.Kernel) {
	x := uniform(1, 30, 2)
	clear(x.Row(7))
	return x, must(kernel.NewLinear(1))
}

// TestBatchesWithArmOfNoVariance checks that batches end as they would without that arm.
func TestBatchesWithArmOfNoVariance(t *testing.T) {
	x, _ := zeroArm()
	k := &kernel.Pairwise[[]float64]{Name: "linear·gaussian", Func: func(a, b []float64) float64 {
		u, v := a[0]-b[0], a[1]-b[1]
		return (a[0]*b[0] + a[1]*b[1]) * math.Exp(-50*(u*u+v*v))
	}}
	without := make([]int, 0, x.Len())
	for a := range x.Len() {
		if a != 7 {
			without = append(without, a)
		}
	}
	with := append(append([]int(nil), without...), 7)
	c := basic(k, 1e-3)
	play := func(idx []int) (pulled []int, batches int) {
		p := must(bandit.NewBBKB(bkbConfig(c), x.Select(idx)))
		arm := 0
		for range 500 {
			z := x.Row(idx[arm])
			if err := p.Observe(arm, z[0]-z[1]); err != nil {
				t.Fatal(err)
			}
			pulled = append(pulled, arm)
			arm = must(p.Next()).Arm
		}
		return pulled, p.Switches()
	}
	want, most := play(without)
	got, batches := play(with)
	if !slices.Equal(got, want) || batches != most {
		t.Errorf("%d batches, want %d; pulls %v, want %v", batches, most, got, want)
	}
}

// TestMaxBatchCountsPending checks that following Next and MaxBatch without feedback
// shrinks no variance by more than C̃.
func TestMaxBatchCountsPending(t *testing.T) {
	const lambda, ratio = 2.0, 3.0
	x := uniform(2, 100, 2)
	c := basic(matern(0.5), lambda)
	c.Ratio = ratio
	for name, p := range map[string]bandit.Policy{
		"GP-UCB": must(bandit.NewGPUCB(c, x)), "BKB": must(bandit.NewBKB(bkbConfig(c), x)),
		"BKB, all": must(bandit.NewBKB(bandit.BKBConfig{Config: c, Sparsity: bandit.Sparsity{Oversampling: math.Inf(1), FromScratch: true}}, x)),
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
