package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// randomKernel returns a kernel of two ordered and one nominal coordinate.
func randomKernel(t *testing.T, rng *rand.Rand) *kernel.Mixed {
	t.Helper()
	theta := []float64{0.5 + 2*rng.Float64(), 0.2 + rng.Float64(), 0.2 + rng.Float64(), 0.5 + rng.Float64()}
	k, err := kernel.NewMixed([]int{0, 2}, []int{1}, theta)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func randomPoint(rng *rand.Rand) []float64 {
	return []float64{rng.Float64(), float64(rng.IntN(3)), rng.Float64()}
}

func randomSamples(rng *rand.Rand, n int) []sample {
	var out []sample
	for i := range n {
		s := sample{x: randomPoint(rng), y: rng.NormFloat64()}
		switch {
		case i > 3 && i%7 == 0:
			s.x = slices.Clone(out[rng.IntN(i)].x) // a repetition
		case i%5 == 0:
			s.extra = 0.3 * rng.Float64()
		}
		out = append(out, s)
	}
	return out
}

func close2(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*(1+math.Abs(a)+math.Abs(b))
}

// TestPosteriorIsExact compares a posterior that grew with the results with the exact one,
// including pending trials.
func TestPosteriorIsExact(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{1, 2, 5, 40} {
		for _, noise := range []float64{0.5, 1e-2, 1e-4} {
			k := randomKernel(t, rng)
			samples := randomSamples(rng, n)
			const mean = 0.3
			half := n / 2
			var inducing [][]float64
			for _, s := range samples[:half] {
				inducing = append(inducing, s.x)
			}
			p := newPosterior(k, noise, mean, 64, false, inducing, samples[:half])
			for _, s := range samples[half:] {
				p.observe(s)
			}
			data := gp.Data{X: p.data(samples...).X}
			for _, s := range samples {
				data.Y, data.Noise = append(data.Y, s.y), append(data.Noise, s.extra)
			}
			exact, err := gp.NewExact(k, data, gp.Options{NoiseVariance: noise, Mean: mean})
			if err != nil {
				t.Fatal(err)
			}
			comparePosteriors(t, rng, p, exact.Predict)
			if !close2(p.LogDet(), exact.LogDet(), 1e-6) {
				t.Errorf("n = %d, noise %v: gain %v, want %v", n, noise, p.LogDet(), exact.LogDet())
			}
			// With pending trials, means stay as before and variances are as if observed.
			q := p.fork()
			pulls := [][]float64{randomPoint(rng), randomPoint(rng), samples[0].x}
			for _, x := range pulls {
				q.pull(x)
				if data.X, err = data.X.Concat(kernel.NewPoints(1, 3, x)); err != nil {
					t.Fatal(err)
				}
				data.Y, data.Noise = append(data.Y, 0), append(data.Noise, 0)
			}
			if exact, err = gp.NewExact(k, data, gp.Options{NoiseVariance: noise, Mean: mean}); err != nil {
				t.Fatal(err)
			}
			comparePosteriors(t, rng, q, func(x kernel.Rows) ([]float64, []float64, error) {
				mean, _ := p.predict(x.(*kernel.Points[float64]))
				_, variance, err := exact.Predict(x)
				return mean, variance, err
			})
		}
	}
}

func comparePosteriors(t *testing.T, rng *rand.Rand, p *posterior, predict func(kernel.Rows) ([]float64, []float64, error)) {
	t.Helper()
	x := kernel.NewPoints[float64](30, 3, nil)
	for i := range x.Len() {
		copy(x.Row(i), randomPoint(rng))
	}
	mean, variance := p.predict(x)
	wantMean, wantVariance, err := predict(x)
	if err != nil {
		t.Fatal(err)
	}
	// Points that are nearly combinations of others are left out. The errors have the size
	// of significant.
	tolerance := 3 * significant
	for i := range mean {
		if !close2(mean[i], wantMean[i], tolerance) || math.Abs(variance[i]-wantVariance[i]) > tolerance*(wantVariance[i]+p.NoiseVariance()) {
			t.Fatalf("point %d: %v ± %v, want %v ± %v", i, mean[i], variance[i], wantMean[i], wantVariance[i])
		}
	}
	s, h := p.Probe(), 1e-6
	if _, _, err := s.Value(x.Row(1)); err != nil {
		t.Fatal(err)
	}
	if m, sd, _ := s.Value(x.Row(0)); !close2(m, mean[0], 1e-9) || !close2(sd*sd, variance[0], 1e-9) {
		t.Fatalf("probed %v ± %v, want %v ± %v", m, sd*sd, mean[0], variance[0])
	}
	dMean, dSD := s.Gradient()
	for _, c := range []int{0, 2} {
		up, down := slices.Clone(x.Row(0)), slices.Clone(x.Row(0))
		up[c], down[c] = up[c]+h, down[c]-h
		m, v := p.predict(kernel.NewPoints(2, 3, append(up, down...)))
		if d := (m[0] - m[1]) / (2 * h); !close2(dMean[c], d, 1e-4) {
			t.Fatalf("slope of the mean %v, difference %v", dMean[c], d)
		}
		if d := (math.Sqrt(v[0]) - math.Sqrt(v[1])) / (2 * h); !close2(dSD[c], d, 1e-3) {
			t.Fatalf("slope of the deviation %v, difference %v", dSD[c], d)
		}
	}
}

// TestPosteriorIsSparse compares a posterior on few inducing points with that of
// package gp, DTC and FITC.
func TestPosteriorIsSparse(t *testing.T) {
	const seed = 13
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	// The residual of a sample that is observed while there is no room is counted, as with
	// FITC. This holds even where earlier residuals were not counted.
	for _, c := range []struct {
		fitc           bool
		limit, rebuilt int
		want           gp.Approximation
	}{{false, 13, 120, gp.DTC}, {true, 12, 100, gp.FITC}, {false, 12, 0, gp.FITC}} {
		k := randomKernel(t, rng)
		var samples []sample
		for range 120 {
			samples = append(samples, sample{x: randomPoint(rng), y: rng.NormFloat64()})
		}
		var inducing [][]float64
		for range 12 {
			inducing = append(inducing, randomPoint(rng))
		}
		p := newPosterior(k, 0.05, -0.2, c.limit, c.fitc, inducing, samples[:c.rebuilt])
		for _, s := range samples[c.rebuilt:] {
			p.observe(s)
		}
		data := gp.Data{X: p.data(samples...).X}
		for _, s := range samples {
			data.Y = append(data.Y, s.y)
		}
		d := kernel.NewPoints[float64](12, 3, slices.Concat(inducing...))
		want, err := gp.NewSparse(k, d, data, gp.SparseOptions{NoiseVariance: 0.05, Mean: -0.2, Approximation: c.want})
		if err != nil {
			t.Fatal(err)
		}
		x := kernel.NewPoints[float64](30, 3, nil)
		for i := range x.Len() {
			copy(x.Row(i), randomPoint(rng))
		}
		mean, variance := p.predict(x)
		wantMean, wantVariance, err := want.Predict(x)
		if err != nil {
			t.Fatal(err)
		}
		for i := range mean {
			if tolerance := 1e-8; !close2(mean[i], wantMean[i], tolerance) || !close2(variance[i], wantVariance[i], tolerance) {
				t.Fatalf("%+v, point %d: %v ± %v, want %v ± %v", c, i, mean[i], variance[i], wantMean[i], wantVariance[i])
			}
		}
	}
}
