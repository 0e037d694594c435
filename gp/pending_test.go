package gp_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/sketch"
)

// The means of the exact posterior are those of the observations, and the variances
// those with the pending pulls as observations. Pulls are observed or taken back in any
// order, with arms and without.
func TestExactPendingIsPosteriorOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := randOf(t)
		pool, q := uniform(rng, 12, 2), uniform(rng, 7, 2)
		k := kernels(2)[rapid.SampledFrom([]string{"gaussian", "matern52", "sum"}).Draw(t, "kernel")]
		o := gp.Options{NoiseVariance: 0.1, Mean: 0.2}
		g := must(gp.NewExact(k, gp.Data{}, o))
		var seen, open []int
		var y []float64
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			i := rng.IntN(pool.Len())
			row := pool.Slice(i, i+1)
			switch rng.IntN(4) {
			case 0:
				v := rng.NormFloat64()
				if err := g.Append(gp.Data{X: row, Y: []float64{v}}); err != nil {
					t.Fatal(err)
				}
				seen, y, open = append(seen, i), append(y, v), strike(open, i)
			case 1:
				before := len(open)
				open = strike(open, i)
				if err := g.Cancel(row); (err == nil) != (len(open) < before) || err != nil && !errors.Is(err, gp.ErrNotPending) {
					t.Fatalf("cancel with %d open: %v", before, err)
				}
			default:
				if err := g.ObserveVariance(row); err != nil {
					t.Fatal(err)
				}
				open = append(open, i)
			}
		}
		if g.Pending() != len(open) || g.Len() != len(seen) {
			t.Fatalf("%d pending and %d observed, want %d and %d", g.Pending(), g.Len(), len(open), len(seen))
		}
		data := func(idx []int, y []float64) gp.Data {
			if len(idx) == 0 {
				return gp.Data{}
			}
			return gp.Data{X: pool.Select(idx), Y: y}
		}
		all := append(append([]int(nil), seen...), open...)
		known, both := must(gp.NewExact(k, data(seen, y), o)), must(gp.NewExact(k, data(all, make([]float64, len(all))), o))
		wantMean, _, err := known.Predict(q)
		if err != nil {
			t.Fatal(err)
		}
		_, wantVariance, err := both.Predict(q)
		if err != nil {
			t.Fatal(err)
		}
		mean, variance, err := g.Predict(q)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "mean", mean, wantMean, 1e-9)
		near(t, "variance", variance, wantVariance, 1e-9)
		for i := range q.Len() {
			s := must(g.PredictSlope(q, i))
			near1(t, "mean with gradient", s.Mean, wantMean[i], 1e-9)
			near1(t, "deviation with gradient", s.SD*s.SD, variance[i], 1e-9)
			near(t, "gradient of the mean", s.MeanGradient, must(known.PredictSlope(q, i)).MeanGradient, 1e-7)
			near(t, "gradient of the deviation", s.SDGradient, must(both.PredictSlope(q, i)).SDGradient, 1e-7)
		}
		near1(t, "log det", g.LogDet(), known.LogDet(), 1e-9)
		near1(t, "evidence", g.LogEvidence(), known.LogEvidence(), 1e-9)
		near1(t, "information gain", g.InformationGain(), both.LogDet(), 1e-9)
		near1(t, "effective dimension", g.EffectiveDimension(), dimension(t, both, pool.Select(all), o.NoiseVariance), 1e-8)
	})
}

// strike removes the first i.
func strike(s []int, i int) []int {
	for j, v := range s {
		if v == i {
			return append(append([]int(nil), s[:j]...), s[j+1:]...)
		}
	}
	return s
}

func dimension(t *rapid.T, g *gp.Exact, x kernel.Rows, noise float64) float64 {
	_, variance, err := g.Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, v := range variance {
		sum += sketch.ScoreOfVariance(v, noise)
	}
	return sum
}
