package propose

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

// checkTarget holds a target against what it promises, at the values that it is of.
func checkTarget(t *testing.T, name string, values []float64, g target) {
	t.Helper()
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	last := math.Inf(-1)
	for _, v := range sorted {
		z := g.of(v)
		if math.IsNaN(z) || math.IsInf(z, 0) || z < last {
			t.Errorf("%s: target of %v is %v after %v", name, v, z, last)
		}
		last = z
		if s := g.slope(v); !(s >= 0) || math.IsInf(s, 0) {
			t.Errorf("%s: slope at %v is %v", name, v, s)
		}
		if back := g.value(z); math.IsNaN(back) || math.IsInf(back, 0) {
			t.Errorf("%s: value of %v is %v", name, z, back)
		} else if !g.Compressed && g.Power == 0 && !math.IsInf(v, 0) && math.Abs(back-v) > 1e-9*(g.Spread+math.Abs(g.Center)) {
			t.Errorf("%s: %v comes back as %v", name, v, back)
		}
		if d := g.deviation(z, 1); !(d >= 0) || math.IsInf(d, 0) {
			t.Errorf("%s: deviation at %v is %v", name, z, d)
		}
	}
}

// TestTargets: the transformation is monotone, finite and undone by value.
func TestTargets(t *testing.T) {
	for name, values := range map[string][]float64{
		"normal": {1, 2, 3, 4, 5}, "constant": {3, 3, 3}, "one": {7}, "tiny": {1e-300, 2e-300, 5e-324},
		"huge": {1e300, -1e300, 0, 1}, "max": {math.MaxFloat64, -math.MaxFloat64, 0}, "infinite": {math.Inf(-1), 1, 2, 3},
		"all infinite": {math.Inf(-1), math.Inf(-1)}, "outlier": {0.1, 0.2, 0.3, 0.25, 0.15, -1e12}, "lucky": {0.1, 0.2, 0.3, 0.25, 0.15, 1e12},
	} {
		checkTarget(t, name, values, newTarget(values, false))
		checkTarget(t, name+", kept", values, newTarget(values, true))
	}
	if g := newTarget([]float64{1, 2, 3, 4, 5}, false); g.Compressed {
		t.Error("an even sample failed the tail test")
	}
	if g := newTarget([]float64{0.1, 0.2, 0.3, 0.25, 0.15, -100}, false); !g.Compressed && g.Power == 0 || g.of(0.1)-g.of(-100) > 5 {
		t.Errorf("an outlier passed the tail test: %+v", g)
	}
	if g := newTarget([]float64{0.1, 0.2, 0.3, 0.25, 0.15, -100}, true); g.Compressed || g.Power != 0 {
		t.Errorf("an outlier that was to be kept is compressed: %+v", g)
	}
}

// TestPower: samples that are normal after a power get one near it, what is normal
// already gets none in 19 of 20 cases, and the transformation is undone by its
// inverse and has the slope that it says.
func TestPower(t *testing.T) {
	const seed, n, rounds = 5, 200, 100
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func(power float64) target {
		values := make([]float64, n)
		for i := range values {
			values[i] = rng.NormFloat64()
			if power > 0 {
				values[i] = unYeoJohnson(max(values[i], -1.9), power)
			}
		}
		return newTarget(values, false)
	}
	needless := 0
	for range rounds {
		if draw(0).Power > 0 {
			needless++
		}
	}
	if needless > rounds/8 {
		t.Errorf("seed %d: %d of %d normal samples got a power", seed, needless, rounds)
	}
	for _, power := range []float64{1.5, 1.75, 2} {
		sum := 0.0
		for range rounds {
			g := draw(power)
			sum += g.Power
			for _, y := range []float64{-30, -3, -0.5, 0, 0.1, 1, 2, 40} {
				z, h := g.exact(y), 1e-6*(1+math.Abs(y))
				if back := g.value(z); math.Abs(back-y) > 1e-6*(1+math.Abs(y)) {
					t.Errorf("seed %d: %v comes back as %v from %+v", seed, y, back, g)
				}
				if slope := (g.exact(y+h) - g.exact(y-h)) / (2 * h); math.Abs(slope-g.exactSlope(y)) > 1e-4*(slope+1e-3) {
					t.Errorf("seed %d: slope %v at %v, by differences %v, %+v", seed, g.exactSlope(y), y, slope, g)
				}
			}
		}
		if mean := sum / rounds; math.Abs(mean-power) > 0.25 {
			t.Errorf("seed %d: mean power %v of samples with power %v", seed, mean, power)
		}
	}
}

// TestTargetsAreUndone: whatever the sample, what is worse has a lower target, up to
// the largest floats, and comes back from it as it was; slopes are those of
// differences. What a model learns has the same target to the knee, and that of the
// knee beyond.
func TestTargetsAreUndone(t *testing.T) {
	const seed = 6
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 60 {
		scale, values := math.Pow(10, 6*rng.Float64()-3), make([]float64, 3+rng.IntN(60))
		for i := range values {
			values[i] = scale * rng.NormFloat64()
			switch {
			case round%3 == 1: // skewed
				values[i] = -scale * math.Exp(1.5*rng.NormFloat64())
			case round%3 == 2 && i%7 == 0: // outliers
				values[i] *= 1e4
			}
		}
		g := newTarget(values, round%10 == 9)
		last := math.Inf(1)
		for e := -3.0; e <= 300; e += 0.5 {
			y := g.Center - g.Spread*math.Pow(10, e)
			z := g.exact(y)
			if !(z < last) {
				t.Fatalf("seed %d: the target of %v is %v, of what is better %v; %+v", seed, y, z, last, g)
			}
			last = z
			// Of what is far the logarithm comes back, as exactly as that of a
			// logarithm can.
			back := g.Center - g.value(z)
			if d := math.Log10(back/g.Spread) - e; !(math.Abs(d) < 1e-9*(1+e*e)+1e-12*math.Abs(g.Center)/g.Spread*math.Pow(10, -e)) {
				t.Fatalf("seed %d: %v comes back as %v; %+v", seed, y, g.value(z), g)
			}
			if k, low := g.knee(); g.Knee == 0 && g.ratio(y) < k && g.of(y) != (low-g.Shift)/g.Scale || g.ratio(y) > k && g.of(y) != z {
				t.Fatalf("seed %d: the target of %v to learn is %v, %v without end; %+v", seed, y, g.of(y), z, g)
			}
			h := 1e-4 * g.Spread * math.Pow(10, e)
			if k, _ := g.knee(); math.Abs(g.ratio(y)/k-1) < 1e-3 || math.Abs(g.ratio(y)+1) < 1e-3 {
				continue
			}
			if diff := (g.exact(y+h) - g.exact(y-h)) / (2 * h); e < 12 && math.Abs(diff/g.exactSlope(y)-1) > 1e-4 {
				t.Fatalf("seed %d: slope %v at %v, by differences %v; %+v", seed, g.exactSlope(y), y, diff, g)
			}
		}
	}
}
