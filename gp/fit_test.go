package gp_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// drawn returns targets of a process with the given kernel and noise.
func drawn(rng *rand.Rand, k kernel.Kernel, x kernel.Rows, noise float64) []float64 {
	f := sample(rng, k, x)
	for i := range f {
		f[i] += math.Sqrt(noise) * rng.NormFloat64()
	}
	return f
}

func TestFitFindsWhatWasDrawn(t *testing.T) {
	racetest.Alone(t)
	rng := rand.New(rand.NewPCG(7, 7)) // the tolerances are statistical, for one draw
	truth := must(kernel.NewScaled(4, must(kernel.NewMatern52(0.2, 1.5))))
	x := uniform(rng, 200, 2)
	y := drawn(rng, truth, x, 0.04)
	for i := range y {
		y[i] += 100
	}
	start := must(kernel.NewScaled(1, must(kernel.NewMatern52(1, 1))))
	for name, o := range map[string]gp.FitOptions{
		"exact":  {},
		"priors": gp.DimensionScaled(2),
	} {
		r, err := gp.Fit(context.Background(), start, gp.Data{X: x, Y: y}, o)
		if err != nil {
			t.Fatal(name, err)
		}
		// In the units of the targets.
		k, noise := must(kernel.NewScaled(r.Scale*r.Scale, r.Kernel)), r.NoiseVariance*r.Scale*r.Scale
		p, _ := kernel.AsTunable(k)
		got := map[string]float64{}
		for _, q := range p.Parameters() {
			got[q.Name] = q.Value
		}
		if l := got["length_scale[0]"]; l < 0.12 || l > 0.35 {
			t.Errorf("%s: length scale %g, drawn with 0.2", name, l)
		}
		if l := got["length_scale[1]"]; l < 0.6 || l > 5 {
			t.Errorf("%s: length scale %g, drawn with 1.5", name, l)
		}
		if noise < 0.02 || noise > 0.12 {
			t.Errorf("%s: noise %g, drawn with 0.04", name, noise)
		}
		if tr := r.Starts[r.Best]; !tr.Converged || -tr.Value != r.LogPosterior || len(r.Starts) != 4 {
			t.Errorf("%s: best start %+v", name, tr)
		}
		g := must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: noise, Mean: r.Shift}))
		m, _ := predict(t, g, x)
		if math.Abs(m[0]-y[0]) > 1.5 {
			t.Errorf("%s: the fit in original units predicts %g for %g", name, m[0], y[0])
		}
	}
}

func TestFitIsAMaximum(t *testing.T) {
	racetest.Alone(t)
	rng := seeded(t)
	x := repeated(rng, uniform(rng, 30, 2), 45)
	y := drawn(rng, kernels(2)["gaussian"], x, 0.1)
	data := gp.Data{X: x, Y: y}
	{
		o := gp.DimensionScaled(2)
		r, err := gp.Fit(context.Background(), kernels(2)["matern52"], data, o)
		if err != nil {
			t.Fatal(err)
		}
		// This computes the posterior density in another way, with the priors written
		// out.
		density := func(v []float64) float64 {
			k, noise := withParameters(kernels(2)["matern52"], v)
			d := gp.Data{X: x, Y: r.Standardise(y)}
			e := must(gp.NewExact(k, d, gp.Options{NoiseVariance: noise})).LogEvidence()
			logNormal := func(l, mu, s float64) float64 {
				return -l - (l-mu)*(l-mu)/(2*s*s) - math.Log(s*math.Sqrt(2*math.Pi))
			}
			a := math.Exp(v[0])
			return e + math.Log(a) - 0.15*a + 2*math.Log(0.15) +
				logNormal(v[1], math.Sqrt2+math.Log(2)/2, math.Sqrt(3)) + logNormal(v[2], -4, 1)
		}
		best := r.Starts[r.Best].End
		near1(t, "posterior density", r.LogPosterior, density(best), 1e-8)
		near(t, "slope at the maximum", differences(density, best, 1e-4), make([]float64, 3), 2e-2)
		for i, tr := range r.Starts {
			if -tr.Value > r.LogPosterior {
				t.Errorf("start %d ends higher", i)
			}
			for j := 1; j < len(tr.Values); j++ {
				if tr.Values[j] > tr.Values[j-1] {
					t.Errorf("start %d falls at iteration %d", i, j)
				}
			}
		}
	}
}

func TestFitRepeatsToTheBit(t *testing.T) {
	rng := seeded(t)
	data := gp.Data{X: uniform(rng, 40, 2), Y: normals(rng, 40)}
	o := gp.DimensionScaled(2)
	var ends [][]float64
	for _, w := range []int{1, 3} {
		o.Workers = w
		r, err := gp.Fit(context.Background(), kernels(2)["gaussian"], data, o)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, r.Starts[r.Best].End)
	}
	near(t, "end", ends[1], ends[0], 0)
}

func TestFitOfDegenerateData(t *testing.T) {
	racetest.Alone(t)
	rng := seeded(t)
	x := uniform(rng, 15, 2)
	y := normals(rng, 15)
	times := func(v []float64, f, shift float64) []float64 {
		out := make([]float64, len(v))
		for i := range v {
			out[i] = v[i]*f + shift
		}
		return out
	}
	scaledX := func(f float64) *kernel.Points[float64] { return kernel.NewPoints(15, 2, times(x.Data(), f, 0)) }
	for name, data := range map[string]gp.Data{
		"one":            {X: x.Slice(0, 1), Y: y[:1]},
		"one, huge":      {X: x.Slice(0, 1), Y: []float64{1e140}},
		"two":            {X: x.Slice(0, 2), Y: y[:2]},
		"constant":       {X: x, Y: times(y, 0, 3)},
		"zero":           {X: x, Y: times(y, 0, 0)},
		"repeated":       {X: x.Select(make([]int, 15)), Y: y},
		"repeated const": {X: x.Select(make([]int, 15)), Y: times(y, 0, 1)},
		"huge targets":   {X: x, Y: times(y, 1e140, 0)},
		"tiny targets":   {X: x, Y: times(y, 1e-200, 0)},
		"offset":         {X: x, Y: times(y, 1, 1e9)},
		"huge inputs":    {X: scaledX(1e100), Y: y},
		"tiny inputs":    {X: scaledX(1e-100), Y: y},
		"own noise":      {X: x, Y: y, Noise: times(y, 0, 0.5)},
	} {
		for _, o := range []gp.FitOptions{{}, gp.DimensionScaled(2)} {
			for kn, k := range map[string]kernel.Kernel{"ard": kernels(2)["gaussian"], "scaled": kernels(2)["matern52"]} {
				r, err := gp.Fit(context.Background(), k, data, o)
				if err != nil {
					t.Errorf("%s, %s: %v", name, kn, err)
					continue
				}
				v := append([]float64{r.NoiseVariance, r.LogPosterior, r.Shift, r.Scale}, r.Starts[r.Best].End...)
				if !r.Starts[r.Best].Converged && r.Starts[r.Best].Iterations < 60 {
					t.Errorf("%s, %s: gave up: %+v", name, kn, r.Starts[r.Best])
				}
				for _, v := range v {
					if v-v != 0 {
						t.Fatalf("%s, %s: not finite: %+v", name, kn, r)
					}
				}
			}
		}
	}
}

// The other starts are scaled to the data, so a first start on a plateau of the log posterior
// is no harm.
func TestFitOnAPlateau(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9)) // one draw, where all maxima are within the limits
	x := uniform(rng, 30, 2)
	y := make([]float64, 30)
	for i := range y {
		y[i] = math.Sin(5*x.Row(i)[0]) + 0.1*rng.NormFloat64()
	}
	wave := gp.Data{X: x, Y: y}
	r := must(gp.Fit(context.Background(), must(kernel.NewMatern52(1e-9, 1e-9)), wave, gp.FitOptions{}))
	near := must(gp.Fit(context.Background(), must(kernel.NewMatern52(0.5, 0.5)), wave, gp.FitOptions{}))
	if r.Best == 0 || !r.Starts[0].Converged || math.Abs(r.LogPosterior-near.LogPosterior) > 1e-3 {
		t.Errorf("start %d with %g, want %g: %+v", r.Best, r.LogPosterior, near.LogPosterior, r.Starts[r.Best])
	}
}

// Multiplying targets by a number, or adding one, gives the same fit.
func TestFitIsEquivariant(t *testing.T) {
	racetest.Alone(t)
	rng := seeded(t)
	x, y := uniform(rng, 25, 2), normals(rng, 25)
	var ends [][]float64
	for _, f := range []float64{1, 1024} {
		z := append([]float64(nil), y...)
		for i := range z {
			z[i] *= f
		}
		own := []float64{24: 0.3 * f * f}
		r, err := gp.Fit(context.Background(), kernels(2)["gaussian"], gp.Data{X: x, Y: z, Noise: own}, gp.DimensionScaled(2))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, append(r.Starts[r.Best].End, r.Scale/f, r.Shift/f))
	}
	near(t, "fit", ends[1], ends[0], 0)
}

// A tolerance saves iterations and loses about as much of the log posterior.
func TestFitTolerance(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	x := uniform(rng, 80, 3)
	y := drawn(rng, must(kernel.NewMatern52(0.3, 1, 5)), x, 0.01)
	fit := func(tolerance float64) *gp.FitResult {
		o := gp.FitOptions{Starts: 1, Tolerance: tolerance}
		return must(gp.Fit(context.Background(), must(kernel.NewScaled(1, must(kernel.NewMatern52(1, 1, 1)))), gp.Data{X: x, Y: y}, o))
	}
	exact, near := fit(0), fit(0.05)
	if lost := exact.LogPosterior - near.LogPosterior; lost < 0 || lost > 0.5 {
		t.Errorf("the log posterior is %g lower", lost)
	}
	if e, n := exact.Starts[0], near.Starts[0]; !n.Converged || 4*n.Evaluations > 3*e.Evaluations {
		t.Errorf("%d evaluations, %d without a tolerance, converged %t", n.Evaluations, e.Evaluations, n.Converged)
	}
	_, err := gp.Fit(context.Background(), must(kernel.NewMatern52(1)), gp.Data{X: x, Y: y}, gp.FitOptions{Tolerance: -1})
	if bad := (*gp.ValueError)(nil); !errors.As(err, &bad) || bad.What != "tolerance" {
		t.Errorf("a negative tolerance: %v", err)
	}
}

func TestFitStops(t *testing.T) {
	rng := seeded(t)
	data := gp.Data{X: uniform(rng, 30, 2), Y: normals(rng, 30)}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := gp.Fit(ctx, kernels(2)["gaussian"], data, gp.FitOptions{}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: %v, %v", r, err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	o := gp.DimensionScaled(2)
	o.NoisePrior = stopping{gp.LogNormal{Mu: -4, Sigma: 1}, cancel}
	r, err := gp.Fit(ctx, kernels(2)["gaussian"], data, o)
	if !errors.Is(err, context.Canceled) || r == nil || r.Kernel == nil || len(r.Starts) != 1 {
		t.Errorf("cancelled on the way: %+v, %v", r, err)
	}
	o = gp.FitOptions{MaxIterations: 1, Starts: 2}
	if r, err := gp.Fit(context.Background(), kernels(2)["gaussian"], data, o); err != nil || r.Starts[0].Iterations > 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

type stopping struct {
	gp.Prior
	stop func()
}

func (s stopping) LogDensity(v float64) (float64, float64) {
	s.stop()
	return s.Prior.LogDensity(v)
}

func TestFitWithNothingToTune(t *testing.T) {
	rng := seeded(t)
	data := gp.Data{X: uniform(rng, 20, 2), Y: normals(rng, 20)}
	k := &kernel.Pairwise[[]float64]{Name: "plain", Func: func(a, b []float64) float64 { return 1 + a[0]*b[0] }}
	r, err := gp.Fit(context.Background(), k, data, gp.FitOptions{})
	if err != nil || r.NoiseVariance < 0.1 {
		t.Errorf("noise alone: %+v, %v", r, err)
	}
}

func TestPriorSlopes(t *testing.T) {
	racetest.Alone(t)
	for _, p := range []gp.Prior{gp.LogNormal{Mu: -1, Sigma: 0.7}, gp.Gamma{Shape: 2, Rate: 0.15}} {
		_, slope := p.LogDensity(0.8)
		want := differences(func(v []float64) float64 { d, _ := p.LogDensity(math.Exp(v[0])); return d }, []float64{math.Log(0.8)}, 1e-5)
		near1(t, "slope", slope, want[0], 1e-8)
		mass := 0.0
		for i := range 400000 {
			d, _ := p.LogDensity((float64(i) + 0.5) * 5e-4)
			mass += math.Exp(d) * 5e-4
		}
		near1(t, "mass", mass, 1, 1e-4)
	}
	if d := cmp.Diff(gp.DimensionScaled(4).NoisePrior, gp.Prior(gp.LogNormal{Mu: -4, Sigma: 1})); d != "" {
		t.Error(d)
	}
}

// TestExchangeable compares the density of length scales that are pulled together with that of
// independent ones and with its own differences, and shows that a fit uses it.
func TestExchangeable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	logs := []float64{0.3, -1.2, 2}
	density := func(tau float64, logs []float64) (value float64, slopes []float64) {
		slopes = make([]float64, len(logs))
		p := gp.Exchangeable{Mean: -0.5, Sigma: 1.7, Tau: tau}
		return p.LogDensity(logs, slopes), slopes
	}
	independent := 0.0
	for _, l := range logs {
		independent -= 0.5 * (l + 0.5) * (l + 0.5) / (1.7 * 1.7)
	}
	if got, _ := density(1.7, logs); math.Abs(got-independent) > 1e-12 {
		t.Errorf("independent: %v, want %v", got, independent)
	}
	_, slopes := density(0.4, logs)
	for i := range logs {
		const h = 1e-6
		up, down := slices.Clone(logs), slices.Clone(logs)
		up[i], down[i] = up[i]+h, down[i]-h
		a, _ := density(0.4, up)
		b, _ := density(0.4, down)
		if want := (a - b) / (2 * h); math.Abs(slopes[i]-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("slope %d is %v, by differences %v", i, slopes[i], want)
		}
	}
	x := uniform(rng, 12, 3)
	y := make([]float64, x.Len())
	for i := range y {
		y[i] = math.Sin(6 * x.Row(i)[0])
	}
	ratio := func(tau float64) float64 {
		opts := gp.DimensionScaled(3)
		opts.LengthScales = &gp.Exchangeable{Mean: -1, Sigma: 1.7, Tau: tau}
		r := must(gp.Fit(t.Context(), must(kernel.NewScaled(1, must(kernel.NewMatern52(0.5, 0.5, 0.5)))), gp.Data{X: x, Y: y}, opts))
		l := r.Kernel.Spec().Parts[0].LengthScales
		return slices.Max(l) / slices.Min(l)
	}
	if loose, tight := ratio(1.7), ratio(0.1); !(tight < 1.5 && loose > 3) {
		t.Errorf("length scales differ by a factor of %.2f, and of %.2f where they are pulled together", loose, tight)
	}
	opts := gp.FitOptions{LengthScales: &gp.Exchangeable{Sigma: 1}}
	if _, err := gp.Fit(t.Context(), must(kernel.NewMatern52(0.4)), gp.Data{X: x, Y: y}, opts); err == nil {
		t.Error("a spread of 0 is allowed")
	}
}
