package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// The sum over a row is that of the pairs, for kernels with and without a faster way.
func TestAddLogGradRow(t *testing.T) {
	const n, d = 9, 3
	rng := rand.New(rand.NewPCG(5, 0))
	x := kernel.NewPoints(n, d, normals(rng, n*d))
	narrow := make([]float32, n*d)
	for i := range narrow {
		narrow[i] = float32(rng.NormFloat64())
	}
	w := normals(rng, n-2)
	w[3] = 0
	ard := []float64{0.5, 2, 3}
	for name, k := range map[string]kernel.Kernel{
		"gaussian":           must(kernel.NewGaussian(1.5)),
		"gaussian ARD":       must(kernel.NewGaussian(ard...)),
		"matern32 ARD":       must(kernel.NewMatern32(ard...)),
		"matern12":           must(kernel.NewMatern12(2)),
		"laplace ARD":        must(kernel.NewLaplace(ard...)),
		"rational quadratic": must(kernel.NewRationalQuadratic(1.5, ard...)),
		"linear ARD":         must(kernel.NewLinear(ard...)),
		"restricted":         must(kernel.NewRestricted(must(kernel.NewGaussian(1)), 1)),
		"scaled":             must(kernel.NewScaled(2.5, must(kernel.NewMatern52(ard...)))),
		"scaled twice":       must(kernel.NewScaled(3, must(kernel.NewScaled(2.5, must(kernel.NewGaussian(ard...)))))),
		"scaled laplace":     must(kernel.NewScaled(2.5, must(kernel.NewLaplace(ard...)))),
		"sum":                must(kernel.NewSum(must(kernel.NewGaussian(ard...)), must(kernel.NewLaplace(2)))),
	} {
		tunable, ok := kernel.AsTunable(k)
		if !ok {
			t.Fatalf("%s is not tunable", name)
		}
		for rows, y := range map[string]kernel.Rows{
			"dense": kernel.NewPoints(n, d, normals(rng, n*d)), "float32": kernel.NewPoints(n, d, narrow), "the same": x,
		} {
			p := len(tunable.Parameters())
			want, got := make([]float64, p), make([]float64, p)
			for i := range want {
				want[i], got[i] = float64(i), float64(i)
			}
			for j, v := range w {
				tunable.AddLogGrad(want, v, x, 4, y, j)
			}
			kernel.AddLogGradRow(got, tunable, w, x, 4, y, new(kernel.Scratch))
			for i := range want {
				if !(math.Abs(got[i]-want[i]) <= 1e-13*(1+math.Abs(want[i]))) {
					t.Errorf("%s, %s rows: ∂/∂%s is %v, want %v", name, rows, tunable.Parameters()[i].Name, got[i], want[i])
				}
			}
		}
	}
}

// A pair whose distance overflows has the slope 0 and changes nothing, in a loop over four rows
// and beyond it.
func TestAddLogGradOverflow(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 0))
	for name, k := range map[string]kernel.Kernel{
		"gaussian": must(kernel.NewGaussian(0.5, 2)), "matern12": must(kernel.NewMatern12(0.5, 2)),
		"matern32": must(kernel.NewMatern32(0.5, 2)), "matern52": must(kernel.NewScaled(2, must(kernel.NewMatern52(0.5, 2)))),
	} {
		tunable, _ := kernel.AsTunable(k)
		for _, m := range []int{2, 9} {
			x := kernel.NewPoints(m, 2, normals(rng, 2*m))
			x.Row(1)[0], x.Row(0)[1] = 1.2e308, -1.2e308
			p := len(tunable.Parameters())
			pairs, row, w := make([]float64, p), make([]float64, p), normals(rng, m)
			for j, v := range w {
				tunable.AddLogGrad(pairs, v, x, 1, x, j)
			}
			kernel.AddLogGradRow(row, tunable, w, x, 1, x, new(kernel.Scratch))
			for c := range row {
				if !(math.Abs(pairs[c]-row[c]) <= 1e-13*(1+math.Abs(row[c]))) {
					t.Errorf("%s, %d rows: ∂/∂%s is %v by pairs and %v by row", name, m, tunable.Parameters()[c].Name, pairs[c], row[c])
				}
			}
		}
	}
}

// BenchmarkAddLogGradRow reports how many times faster a row is than its pairs.
func BenchmarkAddLogGradRow(b *testing.B) {
	const m, d = 300, 40
	rng := rand.New(rand.NewPCG(5, 0))
	y, w, scales := kernel.NewPoints(m, d, normals(rng, m*d)), normals(rng, m), make([]float64, d)
	for c := range scales {
		scales[c] = 6
	}
	k := kernel.Tunable(must(kernel.NewGaussian(scales...)))
	dst, s := make([]float64, d), new(kernel.Scratch)
	start := time.Now()
	const repeats = 20
	for range repeats {
		for j, v := range w {
			k.AddLogGrad(dst, v, y, 0, y, j)
		}
	}
	pairs := time.Since(start) / repeats
	for b.Loop() {
		kernel.AddLogGradRow(dst, k, w, y, 0, y, s)
	}
	b.ReportMetric(float64(pairs)*float64(b.N)/float64(b.Elapsed()), "×pairs")
}
