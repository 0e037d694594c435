package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A late result and the trial's own count like one result with both as its replicates, that
// is their mean at half the noise. While the trial runs, it also shrinks σ² once as
// pending, for the measurement that is still to come.
func TestLateByDefinition(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 22))
		l, _ := worked(t, nil, 1, 20, func(u []float64, rng *rand.Rand) []float64 {
			return []float64{math.Sin(3*u[0]) + u[1] + 0.3*rng.NormFloat64()}
		})
		at := kernel.NewPoints[float64](50, 2, nil)
		for i := range at.Data() {
			at.Data()[i] = rng.Float64()
		}
		n := l.Do(study.Enqueue{Config: l.Decode(rng.Float64(), rng.Float64())}).Trials[0]
		x := l.Coordinates(n)
		copy(at.Row(0), x)
		l.Do(study.Ask{Count: 1})
		l.Do(study.Expire{Trial: n, Epoch: 1})
		l.Do(study.Ask{Count: 1})
		e := l.ready()
		before, s := l.another(e).surfaces[0], &e.Event.Surfaces[0]
		if s.Target.Power > 0 {
			t.Fatal("the target is not affine")
		}
		values := []float64{rng.NormFloat64(), rng.NormFloat64()}
		expect := func(when string, got *posterior, values ...float64) {
			t.Helper()
			want := before.fork()
			mean := 0.0
			for _, v := range values {
				mean -= v / float64(len(values)) // larger is better
			}
			want.observe(sample{x: x, y: s.Target.Of(mean), extra: want.NoiseVariance()/float64(len(values)) - want.NoiseVariance()})
			wantMean, wantVar := want.predict(at)
			mean1, var1 := got.predict(at)
			for i := range mean1 {
				if !close2(mean1[i], wantMean[i], 1e-6) || !close2(var1[i], wantVar[i], 1e-6) {
					t.Fatalf("seed %d, %s: %v ± %v, of one result %v ± %v", seed, when, mean1[i], var1[i], wantMean[i], wantVar[i])
				}
			}
		}
		l.Do(study.Tell{Trial: n, Epoch: 1, Outcome: labtest.Completed(l.S.Spec(), values[0])})
		e = l.ready()
		expect("running", e.surfaces[0], values[0])
		row := kernel.NewPoints(1, 2, x)
		mean, was := e.surfaces[0].predict(row)
		now, variance := e.Outlook().Predict(0, row)
		if want := was[0] * before.NoiseVariance() / (was[0] + before.NoiseVariance()); !close2(variance[0], want, 1e-6) || !close2(now[0], mean[0], 1e-9) {
			t.Errorf("seed %d: pending %v ± %v, want %v ± %v", seed, now[0], variance[0], mean[0], want)
		}
		l.Do(study.Tell{Trial: n, Epoch: 2, Outcome: labtest.Completed(l.S.Spec(), values[1])})
		e = l.ready()
		expect("told", e.surfaces[0], values...)
		if got := len(e.Results.Pending); got != 0 {
			t.Errorf("seed %d: %d pending trials", seed, got)
		}
	}
}

// Samples of late results have their own random draw as inducing points.
func TestLateChance(t *testing.T) {
	seen := make(map[uint64]bool)
	for trial := range 5 {
		for row := range 5 {
			for epoch := range 5 {
				key := (&Result{Trial: trial, Epoch: epoch}).key(row)
				if seen[key] || epoch == 0 && key != stream.Mix(uint64(trial)+uint64(row)<<48) {
					t.Fatalf("trial %d, epoch %d, row %d: %x", trial, epoch, row, key)
				}
				seen[key] = true
			}
		}
	}
}
