package gp_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp"
)

// MaxUCB returns the same arm as a search over all arms. Calls of it, of single arms or
// of all of them in between change no bit.
func TestMaxUCBIsFullArgmax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := randOf(t)
		approx := rapid.SampledFrom([]gp.Approximation{gp.DTC, gp.FITC, gp.SoR}).Draw(t, "approximation")
		noise := math.Exp(rapid.Float64Range(-9, 1).Draw(t, "log noise"))
		arms := uniform(rng, rapid.IntRange(1, 90).Draw(t, "arms"), 2)
		k := kernels(2)[rapid.SampledFrom([]string{"gaussian", "matern52", "rational"}).Draw(t, "kernel")]
		dict := arms.Select(rng.Perm(arms.Len())[:rng.IntN(min(12, arms.Len())+1)])
		make := func() *gp.Sparse {
			s := must(gp.NewSparse(k, dict, gp.Data{}, gp.SparseOptions{NoiseVariance: noise, Approximation: approx, Mean: 0.3}))
			s.SetAnchorEvery(37)
			if err := s.SetArms(arms, false); err != nil {
				t.Fatal(err)
			}
			return s
		}
		s, quiet := make(), make()
		b := rapid.Float64Range(0, 4).Draw(t, "b")
		pending := []int{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			arm := s.MaxUCB(b)
			if rng.IntN(3) == 0 {
				arm = rng.IntN(arms.Len())
			}
			var errs [2]error
			y := 1 + rng.NormFloat64()
			for i, p := range []*gp.Sparse{s, quiet} {
				switch {
				case y < -0.8 && len(pending) > 0:
					errs[i] = p.ObserveArm(pending[0], y)
				case y > 2.2:
					errs[i] = p.PullArm(arm)
				default:
					errs[i] = p.ObserveArm(arm, y)
				}
			}
			switch {
			case y < -0.8 && len(pending) > 0:
				pending = pending[1:]
			case y > 2.2:
				pending = append(pending, arm)
			}
			if errs[0] != nil || errs[1] != nil {
				t.Fatal(errs)
			}
			switch rng.IntN(8) {
			case 0:
				s.Arm(rng.IntN(arms.Len()))
			case 1:
				checkMaxUCB(t, s, b)
			}
		}
		checkMaxUCB(t, s, b)
		near(t, "means", quiet.ArmMeans(), s.ArmMeans(), 0)
		near(t, "variances", quiet.ArmVariances(), s.ArmVariances(), 0)
		dimension := 0.0
		for i, v := range s.PointVariances() {
			dimension += (s.Counts()[i] + float64(s.PendingCounts()[i])) * v / noise
		}
		if approx == gp.DTC {
			near1(t, "effective dimension", s.EffectiveDimension(), dimension, 1e-7)
		}
	})
}

func checkMaxUCB(t *rapid.T, s *gp.Sparse, b float64) {
	t.Helper()
	arm := s.MaxUCB(b)
	mean, variance := s.Arm(arm)
	top := mean + b*math.Sqrt(variance)
	for i, m := range s.ArmMeans() {
		if u := m + b*math.Sqrt(s.ArmVariances()[i]); u > top || u == top && i < arm {
			t.Fatalf("arm %d has UCB %v, arm %d that was found %v", i, u, arm, top)
		}
	}
	if again := s.MaxUCB(b); again != arm {
		t.Fatalf("arm %d, then %d", arm, again)
	}
}
