package bandit_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// Any sequence of events leaves every policy consistent. Counts add up, and means and
// variances are finite and equal those of the posterior from scratch.
func TestAnyEvents(t *testing.T) {
	racetest.Alone(t)
	arms := uniform(60, 40, 2)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"GP-UCB", "BKB", "Alg. 5", "BBKB"}).Draw(rt, "policy")
		p := policies(t, arms)[name]
		open, steps := map[int]int{}, 0
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			arm := rapid.IntRange(0, 39).Draw(rt, "arm")
			if d, err := p.Next(); err == nil && rapid.Bool().Draw(rt, "chosen") {
				arm = d.Arm
			} else if err != nil && !errors.Is(err, bandit.ErrBatchFull) {
				rt.Fatal(err)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "event") {
			case 0:
				if err := p.Pull(arm); err != nil {
					rt.Fatal(err)
				}
				open[arm]++
				steps++
			case 1:
				if err := p.Cancel(arm); (err == nil) != (open[arm] > 0) {
					rt.Fatalf("cancel with %d open: %v", open[arm], err)
				}
				if open[arm] > 0 {
					open[arm]--
					steps--
				}
			default:
				if err := p.Observe(arm, 0.1*float64(arm)); err != nil {
					rt.Fatal(err)
				}
				if open[arm] > 0 {
					open[arm]--
				} else {
					steps++
				}
			}
			pending := 0
			for _, n := range open {
				pending += n
			}
			if p.Pending() != pending || p.Steps() != steps {
				rt.Fatalf("%s: %d pending of %d, want %d of %d", name, p.Pending(), p.Steps(), pending, steps)
			}
		}
		d, err := p.Best()
		if err != nil {
			rt.Fatal(err)
		}
		for _, v := range []float64{d.UCB, d.Gap, d.EffectiveDimension, d.InformationGain, float64(d.MaxBatch)} {
			if !(v >= -10 && v < 1e6) {
				rt.Fatalf("%s: %+v", name, d)
			}
		}
		checkAgainstScratch(rt, p, arms)
	})
}

// checkAgainstScratch compares the numbers of the arms with predictions from scratch.
func checkAgainstScratch(rt *rapid.T, p bandit.Policy, arms kernel.Rows) {
	b, ok := p.(*bandit.BKB)
	if !ok {
		return
	}
	mean, variance, err := b.Posterior().Predict(arms)
	if err != nil {
		rt.Fatal(err)
	}
	for i := range mean {
		if math.Abs(mean[i]-b.Means()[i]) > 1e-7 || math.Abs(variance[i]-b.Variances()[i]) > 1e-7 {
			rt.Fatalf("arm %d: %v ± %v, afresh %v ± %v", i, b.Means()[i], b.Variances()[i], mean[i], variance[i])
		}
	}
}

// A pull that is taken back within a batch leaves no trace.
func TestCancelWithinBatch(t *testing.T) {
	w := newWorld(61, 200, 2, 0.1)
	c := bkbConfig(basic(matern(0.3), 0.05))
	p, q := must(bandit.NewBBKB(c, w.arms)), must(bandit.NewBBKB(c, w.arms))
	w.play(t, p, 60)
	w.play(t, q, 60)
	if p.Flush() != nil || q.Flush() != nil {
		t.Fatal("not flushed")
	}
	for i := range 5 {
		d, e := must(p.Next()), must(q.Next())
		if d.Arm != e.Arm || math.Abs(d.UCB-e.UCB) > 1e-9 {
			t.Fatalf("pull %d: %+v\n%+v", i, d, e)
		}
		if p.Pull(7) != nil || p.Pull(d.Arm) != nil || p.Cancel(7) != nil || q.Pull(d.Arm) != nil {
			t.Fatal("refused")
		}
		n, used := p.Batch()
		if m, other := q.Batch(); n != m || math.Abs(used-other) > 1e-9 {
			t.Fatalf("batches of %d (%v) and %d (%v)", n, used, m, other)
		}
	}
}

// Rewards of other inputs count as if these had been arms.
func TestLearn(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(63, 100, 2, 0.1)
	c := bkbConfig(basic(matern(0.3), 0.01))
	whole, part := must(bandit.NewBKB(c, w.arms)), must(bandit.NewBKB(c, w.arms.Slice(50, 100)))
	for i := range 50 {
		if whole.Observe(i, w.value[i]) != nil || part.Learn(w.arms.Slice(i, i+1), w.value[i:i+1]) != nil {
			t.Fatal("refused")
		}
	}
	near(t, "mean", part.Means(), whole.Means()[50:], 1e-9)
	near(t, "variance", part.Variances(), whole.Variances()[50:], 1e-9)
	near1(t, "d_eff", must(part.Next()).EffectiveDimension, must(whole.Next()).EffectiveDimension, 1e-9)
	for _, err := range []error{
		part.Learn(nil, []float64{1}), part.Learn(w.arms.Slice(0, 2), []float64{1}),
		part.Learn(w.arms.Slice(0, 1), []float64{math.NaN()}), part.Learn(uniform(1, 1, 3), []float64{1}), part.Learn(w.arms, nil),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
	if part.Steps() != 50 {
		t.Errorf("%d steps", part.Steps())
	}
}

// Rewards of inputs that need not be arms count as much as the exact posterior says.
func TestLearnByOracle(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(67, 60, 2, 0.1)
	c := bkbConfig(basic(matern(0.3), 0.01))
	c.Oversampling = math.Inf(1)
	p := must(bandit.NewBKB(c, w.arms))
	x, y := w.arms.Slice(0, 30), slices.Clone(w.value[:30])
	if err := p.Learn(x, y); err != nil {
		t.Fatal(err)
	}
	g := must(gp.NewExact(matern(0.3), gp.Data{X: x, Y: slices.Clone(y)}, gp.Options{NoiseVariance: 0.01}))
	mean, variance, err := g.Predict(w.arms)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", p.Means(), mean, 1e-7)
	near(t, "variance", p.Variances(), variance, 1e-7)
	before := must(p.Next())
	if err := p.Learn(x, y[:4]); !is[*bandit.ShapeError](err) {
		t.Error(err)
	}
	y[3] = math.NaN()
	if err := p.Learn(x, y); !is[*bandit.ValueError](err) {
		t.Error(err)
	}
	if after := must(p.Next()); after != before || p.Steps() != 30 {
		t.Errorf("a refused call changed %+v to %+v", before, after)
	}
}

// Arms may be single precision or sparse, and both are the same arms.
func TestKindsOfRows(t *testing.T) {
	w := newWorld(64, 80, 3, 0.1)
	single := kernel.ConvertPoints[float32](w.arms)
	wide := kernel.ConvertPoints[float64](single)
	want := must(bandit.NewBKB(bkbConfig(basic(matern(0.4), 0.01)), wide))
	expected, _ := w.play(t, want, 40)
	for name, arms := range map[string]kernel.Rows{"float32": single, "CSR": kernel.Sparse(wide)} {
		for kind, p := range map[string]bandit.Policy{
			"BKB":    must(bandit.NewBKB(bkbConfig(basic(matern(0.4), 0.01)), arms)),
			"GP-UCB": must(bandit.NewGPUCB(basic(matern(0.4), 0.01), arms)),
		} {
			got, _ := w.play(t, p, 40)
			same := 0
			for i := range got {
				if got[i] == expected[i] {
					same++
				}
			}
			if same < 20 {
				t.Errorf("%s, %s: %d of 40 steps as with float64", name, kind, same)
			}
		}
	}
}

// The theoretical b is reported for every Beta, with F = 1 if not given.
func TestTheoryIsReported(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(66, 50, 2, 0.1)
	for name, p := range policies(t, w.arms) {
		w.play(t, p, 20)
		d := must(p.Next())
		s := bandit.State{
			Step: 21, NoiseVariance: 0.01, Bound: 1, InformationGain: d.InformationGain,
			Exact: name == "GP-UCB",
		}
		near1(t, name, d.TheoryBeta, bandit.Theory{Norm: 1}.Beta(s), 1e-12)
		if d.TheoryBeta < d.Beta {
			t.Errorf("%s: b = %v, in theory %v", name, d.Beta, d.TheoryBeta)
		}
	}
}

// Errors name the argument and the place.
func TestErrorMessages(t *testing.T) {
	p := must(bandit.NewGPUCB(basic(matern(0.3), 0.01), uniform(1, 5, 2)))
	_, twice := bandit.NewGPUCB(basic(matern(0.3), 0.01), uniform(1, 5, 2).Select([]int{0, 1, 0}))
	for want, err := range map[string]error{
		"bandit: y is NaN at index 1, want finite, |y| ≤ 1e150":           p.Observe(0, 1, math.NaN()),
		"bandit: arm 5, want 0 ≤ arm < 5":                                 p.Pull(5),
		"bandit: no y":                                                    p.Observe(1),
		"bandit: arm 2 is the same input as arm 0; leave one of them out": twice,
		"bandit: NoiseVariance is 0, want > 0 and finite":                 basic(matern(1), 0).Validate(),
		"bandit: the batch is full; feedback is outstanding":              bandit.ErrBatchFull,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// A history that is learned at once has about as many inducing points as one that is learned
// reward by reward, and the same means.
func TestLearnKeepsFewInducingPoints(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(71, 500, 2, 0.1)
	c := bkbConfig(basic(matern(0.5), 0.01))
	once, each := must(bandit.NewBKB(c, w.arms.Slice(0, 50))), must(bandit.NewBKB(c, w.arms.Slice(0, 50)))
	if err := once.Learn(w.arms, w.value); err != nil {
		t.Fatal(err)
	}
	for i, v := range w.value {
		if err := each.Learn(w.arms.Slice(i, i+1), []float64{v}); err != nil {
			t.Fatal(err)
		}
	}
	exact := must(gp.NewExact(c.Kernel, gp.Data{X: w.arms, Y: w.value}, gp.Options{NoiseVariance: c.NoiseVariance}))
	want, _, err := exact.Predict(w.arms.Slice(0, 50))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", once.Means(), want, 0.05)
	m, few := once.Posterior().Rank(), each.Posterior().Rank()
	if steps := once.Steps(); steps != 500 || m > 3*few/2 || m > 300 {
		t.Errorf("%d steps, %d inducing points at once and %d one by one", steps, m, few)
	}
}
