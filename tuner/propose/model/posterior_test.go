package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// randomCovariance is a kernel of two ordered and one nominal coordinate.
func randomCovariance(t *testing.T, rng *rand.Rand) *covariance {
	t.Helper()
	theta := []float64{0.5 + 2*rng.Float64(), 0.2 + rng.Float64(), 0.2 + rng.Float64(), 0.5 + rng.Float64()}
	k, err := newCovariance([]int{0, 2}, []int{1}, theta)
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

// TestCovariance compares the kernel with the one it is composed of, and its
// gradients with differences.
func TestCovariance(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		k := randomCovariance(t, rng)
		x := kernel.NewPoints(2, 3, append(randomPoint(rng), randomPoint(rng)...))
		want := k.Kernel.Eval(x, 0, x, 1)
		if got := k.Eval(x, 0, x, 1); !close2(got, want, 1e-13) {
			t.Fatalf("k = %v, composed %v", got, want)
		}
		if got := k.factor * k.nearness(x.Row(0), x.Row(1)); !close2(got, want, 1e-13) {
			t.Fatalf("nearness: %v, want %v", got, want)
		}
		inner, _ := kernel.AsTunable(k.Kernel)
		own, composed := make([]float64, 4), make([]float64, 4)
		k.AddLogGrad(own, 1.5, x, 0, x, 1)
		inner.AddLogGrad(composed, 1.5, x, 0, x, 1)
		for i := range own {
			if !close2(own[i], composed[i], 1e-12) {
				t.Fatalf("gradients %v, composed %v", own, composed)
			}
		}
		grad := make([]float64, 3)
		k.AddInputGrad(grad, 1, x, 0, x, 1)
		for _, c := range k.ordered {
			const h = 1e-6
			up, down := slices.Clone(x.Data()), slices.Clone(x.Data())
			up[c], down[c] = up[c]+h, down[c]-h
			u, d := kernel.NewPoints(2, 3, up), kernel.NewPoints(2, 3, down)
			if diff := (k.Eval(u, 0, u, 1) - k.Eval(d, 0, d, 1)) / (2 * h); !close2(grad[c], diff, 1e-6) {
				t.Fatalf("slope %v, difference %v", grad[c], diff)
			}
		}
	}
}

// TestPosteriorIsExact compares a posterior that grew with the results with the
// exact one, pending trials included.
func TestPosteriorIsExact(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{1, 2, 5, 40} {
		for _, noise := range []float64{0.5, 1e-2, 1e-4} {
			k := randomCovariance(t, rng)
			samples := randomSamples(rng, n)
			const mean = 0.3
			half := n / 2
			var inducing [][]float64
			for _, s := range samples[:half] {
				inducing = append(inducing, s.x)
			}
			p := rebuilt(k, noise, mean, 64, false, inducing, samples[:half])
			for _, s := range samples[half:] {
				p.observe(s)
			}
			data := gp.Data{X: pointsOf(samples, 3)}
			for _, s := range samples {
				data.Y, data.Noise = append(data.Y, s.y), append(data.Noise, s.extra)
			}
			exact, err := gp.NewExact(k, data, gp.Options{NoiseVariance: noise, Mean: gp.ConstantMean(mean)})
			if err != nil {
				t.Fatal(err)
			}
			comparePosteriors(t, rng, p, exact.Predict)
			if !close2(p.gain(), exact.LogDet(), 1e-6) {
				t.Errorf("n = %d, noise %v: gain %v, want %v", n, noise, p.gain(), exact.LogDet())
			}
			// Pending trials: means as before, variances as if observed.
			q := p.clone()
			pulls := [][]float64{randomPoint(rng), randomPoint(rng), samples[0].x}
			for _, x := range pulls {
				q.pull(x)
				if err := exact.Append(gp.Data{X: kernel.NewPoints(1, 3, x), Y: []float64{0}, Noise: []float64{0}}); err != nil {
					t.Fatal(err)
				}
			}
			comparePosteriors(t, rng, q, func(x kernel.Rows) ([]float64, []float64, error) {
				mean, _ := p.predict(dense(x))
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
	// Points that are nearly combinations of others are left out: errors of the
	// size of insignificant.
	tolerance := 3 * insignificant
	for i := range mean {
		if !close2(mean[i], wantMean[i], tolerance) || math.Abs(variance[i]-wantVariance[i]) > tolerance*(wantVariance[i]+p.noise) {
			t.Fatalf("point %d: %v ± %v, want %v ± %v", i, mean[i], variance[i], wantMean[i], wantVariance[i])
		}
	}
	s, h := newProbe(p), 1e-6
	s.value(x.Row(1))
	if m, sd := s.value(x.Row(0)); !close2(m, mean[0], 1e-9) || !close2(sd*sd, variance[0], 1e-9) {
		t.Fatalf("probed %v ± %v, want %v ± %v", m, sd*sd, mean[0], variance[0])
	}
	s.gradient()
	for _, c := range p.k.ordered {
		up, down := slices.Clone(x.Row(0)), slices.Clone(x.Row(0))
		up[c], down[c] = up[c]+h, down[c]-h
		m, v := p.predict(kernel.NewPoints(2, 3, append(up, down...)))
		if d := (m[0] - m[1]) / (2 * h); !close2(s.dMean[c], d, 1e-4) {
			t.Fatalf("slope of the mean %v, difference %v", s.dMean[c], d)
		}
		if d := (math.Sqrt(v[0]) - math.Sqrt(v[1])) / (2 * h); !close2(s.dSD[c], d, 1e-3) {
			t.Fatalf("slope of the deviation %v, difference %v", s.dSD[c], d)
		}
	}
}

// TestPosteriorIsSparse compares a posterior on few inducing points with that of
// package gp, DTC and FITC.
func TestPosteriorIsSparse(t *testing.T) {
	const seed = 13
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	// What is observed while there is no room has its residual counted in, as with
	// FITC, also where what came before has not.
	for _, c := range []struct {
		fitc           bool
		limit, rebuilt int
		want           gp.Approximation
	}{{false, 13, 120, gp.DTC}, {true, 12, 100, gp.FITC}, {false, 12, 0, gp.FITC}} {
		k := randomCovariance(t, rng)
		var samples []sample // all different: FITC of package gp counts a merged point's residual once
		for range 120 {
			samples = append(samples, sample{x: randomPoint(rng), y: rng.NormFloat64()})
		}
		var inducing [][]float64
		for range 12 {
			inducing = append(inducing, randomPoint(rng))
		}
		p := rebuilt(k, 0.05, -0.2, c.limit, c.fitc, inducing, samples[:c.rebuilt])
		for _, s := range samples[c.rebuilt:] {
			p.observe(s)
		}
		data := gp.Data{X: pointsOf(samples, 3)}
		for _, s := range samples {
			data.Y = append(data.Y, s.y)
		}
		d := kernel.NewPoints[float64](12, 3, slices.Concat(inducing...))
		want, err := gp.NewSparse(k, d, data, gp.SparseOptions{NoiseVariance: 0.05, Mean: gp.ConstantMean(-0.2), Approximation: c.want})
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
