package kernel_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// byPairs returns Σ_ij w_ij ∂k(x_i, y_j)/∂log θ and the sum of the magnitudes of its terms.
func byPairs(k kernel.Tunable, w []float64, x, y kernel.Rows) (sum, size []float64) {
	p, m := len(k.Parameters()), y.Len()
	sum, size = make([]float64, p), make([]float64, p)
	term := make([]float64, p)
	for q, v := range w {
		clear(term)
		k.AddLogGrad(term, v, x, q/m, y, q%m)
		for c, t := range term {
			sum[c] += t
			size[c] += math.Abs(t)
		}
	}
	return sum, size
}

// The sum over a block is that of the pairs, if the kernel has one.
func TestAddLogGrads(t *testing.T) {
	const n, m, d, seed = 13, 21, 3, 5
	rng := rand.New(rand.NewPCG(seed, 0))
	x, y := kernel.NewPoints(n, d, normals(rng, n*d)), kernel.NewPoints(m, d, normals(rng, m*d))
	copy(y.Row(2), x.Row(1)) // equal rows, and almost equal ones
	copy(y.Row(3), x.Row(1))
	y.Row(3)[0] += 1e-9
	copy(y.Row(4), x.Row(1))
	y.Row(4)[0] += 1e-3
	far := kernel.NewPoints(m, d, normals(rng, m*d))
	for j := range m {
		far.Row(j)[1] += 1e3
	}
	w := normals(rng, n*m)
	w[3] = 0
	ard := []float64{0.5, 2, 3}
	short, long := []float64{0.05, 0.1, 0.02}, []float64{1e3, 1e2, 1e4}
	for name, c := range map[string]struct {
		k     kernel.Kernel
		block bool
	}{
		"gaussian":           {must(kernel.NewGaussian(1.5)), true},
		"gaussian ARD":       {must(kernel.NewGaussian(ard...)), true},
		"matern12":           {must(kernel.NewMatern12(2)), true},
		"matern12 ARD":       {must(kernel.NewMatern12(ard...)), true},
		"matern32 ARD":       {must(kernel.NewMatern32(ard...)), true},
		"matern52, short":    {must(kernel.NewMatern52(short...)), true},
		"matern12, short":    {must(kernel.NewMatern12(short...)), true},
		"gaussian, long":     {must(kernel.NewGaussian(long...)), true},
		"matern52, long":     {must(kernel.NewMatern52(long...)), true},
		"scaled":             {must(kernel.NewScaled(2.5, must(kernel.NewMatern52(ard...)))), true},
		"scaled matern12":    {must(kernel.NewScaled(2.5, must(kernel.NewMatern12(ard...)))), true},
		"scaled twice":       {must(kernel.NewScaled(3, must(kernel.NewScaled(2.5, must(kernel.NewGaussian(ard...)))))), true},
		"laplace ARD":        {must(kernel.NewLaplace(ard...)), true},
		"rational quadratic": {must(kernel.NewRationalQuadratic(1.5, ard...)), false},
		"linear ARD":         {must(kernel.NewLinear(ard...)), false},
		"scaled laplace":     {must(kernel.NewScaled(2.5, must(kernel.NewLaplace(ard...)))), true},
		"laplace":            {must(kernel.NewLaplace(1.5)), true},
		"laplace, short":     {must(kernel.NewLaplace(short...)), true},
		"laplace, long":      {must(kernel.NewLaplace(long...)), true},
	} {
		tunable, ok := kernel.AsTunable(c.k)
		if !ok {
			t.Fatalf("%s is not tunable", name)
		}
		for rows, y := range map[string]kernel.Rows{"other": y, "the same": x, "one": y.Slice(4, 5), "far": far} {
			w := w[:n*y.Len()]
			want, size := byPairs(tunable, w, x, y)
			got := make([]float64, len(want))
			if ok := kernel.AddLogGrads(got, tunable, w, x, y, new(kernel.Scratch)); ok != c.block {
				t.Errorf("%s, %s rows: a block is %v, want %v", name, rows, ok, c.block)
			}
			for i, p := range tunable.Parameters() {
				// Squares of inputs are rounded, in length scales.
				reach := 0.0
				if strings.Contains(p.Name, "length_scale") {
					reach = math.Pow(farthest(x, y)/p.Value, 2)
				}
				tolerance := 1e-12 * (size[i] + total(w)*(1+reach))
				if strings.Contains(name, "matern12") {
					tolerance += 1e-8 * total(w) // because distances below 1e-8 count as 0
				}
				if !c.block {
					want[i], tolerance = 0, 0
				}
				if !(math.Abs(got[i]-want[i]) <= tolerance) {
					t.Errorf("seed %d, %s, %s rows: ∂/∂%s is %v, want %v ± %.1g", seed, name, rows, p.Name, got[i], want[i], tolerance)
				}
			}
		}
	}
}

// farthest is the largest distance of a coordinate from the mean of y.
func farthest(x, y kernel.Rows) (d float64) {
	for c := range y.Dim() {
		mean := 0.0
		for j := range y.Len() {
			mean += y.(*kernel.Points[float64]).Row(j)[c] / float64(y.Len())
		}
		for _, rows := range []kernel.Rows{x, y} {
			for i := range rows.Len() {
				d = max(d, math.Abs(rows.(*kernel.Points[float64]).Row(i)[c]-mean))
			}
		}
	}
	return d
}

// total is Σ|w|.
func total(w []float64) (sum float64) {
	for _, v := range w {
		sum += math.Abs(v)
	}
	return sum
}

// A block leaves numbers that overflow to the pairs, and does nothing.
func TestAddLogGradsOverflow(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 0))
	for name, k := range map[string]kernel.Kernel{
		"gaussian": must(kernel.NewGaussian(0.5, 2)), "matern12": must(kernel.NewMatern12(0.5, 2)),
		"matern32": must(kernel.NewMatern32(0.5, 2)), "matern52": must(kernel.NewScaled(2, must(kernel.NewMatern52(0.5, 2)))),
		"laplace": must(kernel.NewLaplace(0.5, 2)),
	} {
		tunable, _ := kernel.AsTunable(k)
		const m = 9
		x := kernel.NewPoints(m, 2, normals(rng, 2*m))
		x.Row(1)[0], x.Row(0)[1] = 1.2e308, -1.2e308
		got := make([]float64, len(tunable.Parameters()))
		if kernel.AddLogGrads(got, tunable, normals(rng, m*m), x, x, new(kernel.Scratch)) {
			t.Errorf("%s: a block takes rows of 1e308", name)
		}
		for c, v := range got {
			if v != 0 {
				t.Errorf("%s: ∂/∂%s is %v after a refusal", name, tunable.Parameters()[c].Name, v)
			}
		}
	}
}

// BenchmarkAddLogGrads reports how many times faster a block is than its pairs.
func BenchmarkAddLogGrads(b *testing.B) {
	const n, m, d = 64, 500, 10
	rng := rand.New(rand.NewPCG(5, 0))
	x, y, w, scales := kernel.NewPoints(n, d, normals(rng, n*d)), kernel.NewPoints(m, d, normals(rng, m*d)), normals(rng, n*m), make([]float64, d)
	for c := range scales {
		scales[c] = 3
	}
	for name, base := range map[string]kernel.Kernel{"matern52": must(kernel.NewMatern52(scales...)), "laplace": must(kernel.NewLaplace(scales...))} {
		b.Run(name, func(b *testing.B) {
			k := kernel.Tunable(must(kernel.NewScaled(2, base)))
			dst, s := make([]float64, 1+d), new(kernel.Scratch)
			start := time.Now()
			byPairs(k, w, x, y)
			pairs := time.Since(start)
			for b.Loop() {
				kernel.AddLogGrads(dst, k, w, x, y, s)
			}
			b.ReportMetric(float64(pairs)*float64(b.N)/float64(b.Elapsed()), "×pairs")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*m), "ns/pair")
		})
	}
}
