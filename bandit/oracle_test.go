package bandit_test

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// batchPosterior is the exact posterior of arms by one Cholesky factorisation.
func batchPosterior(t testing.TB, k kernel.Kernel, noise float64, arms kernel.Rows, pulled []int, y []float64) (mean, variance []float64, logdet float64) {
	t.Helper()
	data := gp.Data{}
	if len(pulled) > 0 {
		data = gp.Data{X: arms.Select(pulled), Y: y}
	}
	g := must(gp.NewExact(k, data, gp.Options{NoiseVariance: noise}))
	mean, variance, err := g.Predict(arms)
	if err != nil {
		t.Fatal(err)
	}
	return mean, variance, g.LogDet()
}

// After 100 random steps, with pulls pending, resolved in any order or cancelled, and
// arms exchanged, the recursion of exact GP-UCB equals the batch posterior.
func TestGPUCBIsBatchGP(t *testing.T) {
	rng := seeded(t)
	k, noise := matern(0.4), 0.05
	w := newWorld(1, 200, 2, 0.1)
	p := must(bandit.NewGPUCB(basic(k, noise), w.arms))
	var pulled, pending []int
	var y []float64
	for range 100 {
		switch arm := rng.IntN(200); {
		case rng.IntN(3) == 0:
			if err := p.Pull(arm); err != nil {
				t.Fatal(err)
			}
			pending = append(pending, arm)
		case len(pending) > 0 && rng.IntN(4) == 0:
			i := rng.IntN(len(pending))
			if err := p.Cancel(pending[i]); err != nil {
				t.Fatal(err)
			}
			pending = append(pending[:i:i], pending[i+1:]...)
		default:
			if len(pending) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(pending))
				arm = pending[i]
				pending = append(pending[:i:i], pending[i+1:]...)
			} else if i := index(pending, arm); i >= 0 {
				pending = append(pending[:i:i], pending[i+1:]...)
			}
			v := w.value[arm] + 0.1*rng.NormFloat64()
			if err := p.Observe(arm, v); err != nil {
				t.Fatal(err)
			}
			pulled, y = append(pulled, arm), append(y, v)
		}
		if p.Pending() != len(pending) || p.Steps() != len(pending)+len(pulled) {
			t.Fatalf("%d pending of %d, want %d of %d", p.Pending(), p.Steps(), len(pending), len(pending)+len(pulled))
		}
	}
	mean, _, _ := batchPosterior(t, k, noise, w.arms, pulled, y)
	near(t, "mean", p.Means(), mean, 1e-10)
	all := append(append([]int(nil), pulled...), pending...)
	_, variance, logdet := batchPosterior(t, k, noise, w.arms, all, make([]float64, len(all)))
	near(t, "variance", p.Variances(), variance, 1e-10)
	d := must(p.Next())
	near1(t, "information gain", d.InformationGain, logdet, 1e-9)
	for _, a := range pending {
		if err := p.Observe(a, 0.5); err != nil {
			t.Fatal(err)
		}
		pulled, y = append(pulled, a), append(y, 0.5)
	}
}

func index(s []int, v int) int {
	for i, a := range s {
		if a == v {
			return i
		}
	}
	return -1
}

// With all pulled inputs as inducing points BKB is exact GP-UCB, with equal means,
// variances and arms.
func TestBKBWithAllInputsIsGPUCB(t *testing.T) {
	w := newWorld(3, 150, 2, 0.2)
	k := matern(0.4)
	exact := must(bandit.NewGPUCB(basic(k, 0.04), w.arms))
	c := bkbConfig(basic(k, 0.04))
	c.Oversampling, c.FromScratch = math.Inf(1), true
	p := must(bandit.NewBKB(c, w.arms))
	a, _ := w.play(t, exact, 60)
	b, _ := w.play(t, p, 60)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("step %d: arm %d, exact %d", i, b[i], a[i])
		}
	}
	near(t, "mean", p.Means(), exact.Means(), 1e-8)
	near(t, "variance", p.Variances(), exact.Variances(), 1e-8)
	d, e := must(p.Next()), must(exact.Next())
	near1(t, "d_eff", d.EffectiveDimension, e.EffectiveDimension, 1e-7)
	near1(t, "gain", d.InformationGain, e.InformationGain, 1e-7)
	near1(t, "gap", d.Gap, e.Gap, 1e-7)
}

// Between draws BKB's rank-one updates equal the posterior from scratch on the same
// inducing points.
func TestIncrementalIsFromScratch(t *testing.T) {
	w := newWorld(4, 300, 2, 0.1)
	p := must(bandit.NewBKB(bkbConfig(basic(matern(0.3), 0.01)), w.arms))
	var y []float64
	var arms []int
	for range 80 {
		a := must(p.Next()).Arm
		v := w.reward(a, p.Steps())
		if err := p.Observe(a, v); err != nil {
			t.Fatal(err)
		}
		arms, y = append(arms, a), append(y, v)
	}
	dict, _ := p.Posterior().Inducing()
	s := must(gp.NewSparse(matern(0.3), dict, gp.Data{X: w.arms.Select(arms), Y: y}, gp.SparseOptions{NoiseVariance: 0.01}))
	mean, variance, err := s.Predict(w.arms)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", p.Means(), mean, 1e-8)
	near(t, "variance", p.Variances(), variance, 1e-8)
	if d := must(p.Next()); d.InducingPoints != dict.Len() || d.InducingPoints >= 80 {
		t.Errorf("%d inducing points", d.InducingPoints)
	}
}

// The lazy search of BBKB finds the arm with the largest UCB among all.
func TestLazyIsFullArgmax(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(5, 800, 3, 0.1)
	c := bkbConfig(basic(matern(0.4), 0.01))
	c.Ratio = 3
	p := must(bandit.NewBBKB(c, w.arms))
	inside := 0
	for range 250 {
		d := must(p.Next())
		if n, _ := p.Batch(); n > 0 {
			inside++
		}
		mean, variance, err := p.Posterior().Predict(w.arms)
		if err != nil {
			t.Fatal(err)
		}
		for a, m := range mean {
			if u := m + d.Beta*math.Sqrt(variance[a]); p.Steps() > 0 && u > d.UCB+1e-9 {
				t.Fatalf("step %d: arm %d has UCB %v, chosen arm %d %v", p.Steps(), a, u, d.Arm, d.UCB)
			}
		}
		if err := p.Observe(d.Arm, w.reward(d.Arm, p.Steps())); err != nil {
			t.Fatal(err)
		}
	}
	if inside < 100 {
		t.Errorf("only %d of 250 steps within batches", inside)
	}
}

// With C̃ = 1 every batch is one pull, and BBKB has the trajectory of BKB from
// scratch, to the bit.
func TestBBKBWithoutBatchesIsBKB(t *testing.T) {
	w := newWorld(6, 200, 2, 0.1)
	c := bkbConfig(basic(matern(0.3), 0.01))
	c.FromScratch, c.Ratio = true, 1
	bkb, bbkb := must(bandit.NewBKB(c, w.arms)), must(bandit.NewBBKB(c, w.arms))
	for range 70 {
		d, e := must(bkb.Next()), must(bbkb.Next())
		if d != e {
			t.Fatalf("step %d:\n%+v\n%+v", bkb.Steps(), d, e)
		}
		y := w.reward(d.Arm, bkb.Steps())
		if bkb.Observe(d.Arm, y) != nil || bbkb.Observe(d.Arm, y) != nil {
			t.Fatal("refused")
		}
	}
	if bbkb.Switches() != 70 {
		t.Errorf("%d batches in 70 steps", bbkb.Switches())
	}
}

// Pending pulls only shrink σ̃. After they are taken back, all is as before. BKB draws
// other inducing points in between, so for it both hold up to its approximation.
func TestPendingShrinksOnly(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(8, 120, 2, 0.1)
	for name, p := range policies(t, w.arms) {
		w.play(t, p, 30)
		if f, ok := p.(flusher); ok {
			if err := f.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		before := look(t, p, w.arms)
		d := must(p.Next())
		for _, a := range []int{3, 3, d.Arm} {
			if err := p.Pull(a); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if p.Pending() != 3 {
			t.Errorf("%s: %d pending", name, p.Pending())
		}
		after := look(t, p, w.arms)
		tol := 1e-9
		if name == "BKB" || name == "Alg. 5" {
			tol = 2e-2
		}
		near(t, name+" mean", after.mean, before.mean, tol)
		shrunk := false
		for i, v := range after.variance {
			if v > before.variance[i]*(1+tol)+tol*1e-2 {
				t.Errorf("%s: variance of arm %d grew from %v to %v", name, i, before.variance[i], v)
			}
			shrunk = shrunk || v < before.variance[i]*0.999
		}
		if !shrunk {
			t.Errorf("%s: no variance shrank", name)
		}
		for _, a := range []int{d.Arm, 3, 3} {
			if err := p.Cancel(a); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		again := look(t, p, w.arms)
		near(t, name+" variance", again.variance, before.variance, tol)
		if got := must(p.Next()); tol < 1e-3 && got.Arm != d.Arm || math.Abs(got.UCB-d.UCB) > tol || math.Abs(got.InformationGain-d.InformationGain) > 1e-9 {
			t.Errorf("%s: after taking back\n%+v, before\n%+v", name, got, d)
		}
		if err := p.Cancel(3); err != bandit.ErrNotPending {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type flusher interface{ Flush() error }

type sight struct{ mean, variance []float64 }

// look returns means and variances of the arms without the laziness.
func look(t testing.TB, p bandit.Policy, arms kernel.Rows) sight {
	t.Helper()
	mean, variance, err := p.(interface{ Posterior() *gp.Sparse }).Posterior().Predict(arms)
	if err != nil {
		t.Fatal(err)
	}
	return sight{mean, variance}
}

// policies returns one of each kind.
func policies(t testing.TB, arms kernel.Rows) map[string]bandit.Policy {
	t.Helper()
	k := must(kernel.NewGaussian(0.3))
	c := basic(k, 0.01)
	scratch := bkbConfig(c)
	scratch.FromScratch = true
	return map[string]bandit.Policy{
		"GP-UCB": must(bandit.NewGPUCB(c, arms)),
		"BKB":    must(bandit.NewBKB(bkbConfig(c), arms)),
		"Alg. 5": must(bandit.NewBKB(scratch, arms)),
		"BBKB":   must(bandit.NewBBKB(bkbConfig(c), arms)),
	}
}

// Workers that ask one after the other get different arms, and the same as from exact
// GP-UCB.
func TestWorkersGetDifferentArms(t *testing.T) {
	w := newWorld(14, 300, 2, 0.1)
	c := basic(matern(0.3), 0.01)
	exact, bkb := must(bandit.NewGPUCB(c, w.arms)), must(bandit.NewBKB(bkbConfig(c), w.arms))
	for i := range 4 {
		if exact.Observe(i, w.value[i]) != nil || bkb.Observe(i, w.value[i]) != nil {
			t.Fatal("refused")
		}
	}
	seen := map[int]bool{}
	for i := range 8 {
		d, e := must(bkb.Next()), must(exact.Next())
		if seen[d.Arm] {
			t.Errorf("worker %d gets arm %d again", i, d.Arm)
		}
		if d.Arm != e.Arm {
			t.Errorf("worker %d gets arm %d, exact %d", i, d.Arm, e.Arm)
		}
		seen[d.Arm] = true
		if bkb.Pull(d.Arm) != nil || exact.Pull(d.Arm) != nil {
			t.Fatal("refused")
		}
	}
}
