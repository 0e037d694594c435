package kernel_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// TestFloat32Error checks the error of products in float32 that the documentation of
// Precision states. It takes inputs up to 100 length scales from their mean and far
// from the origin, and compares with sums of Eval in float64.
func TestFloat32Error(t *testing.T) {
	racetest.Alone(t)
	const n, m = 200, 150
	for _, d := range []int{1, 6, 90} {
		for _, radius := range []float64{1, 3, 10, 100} {
			for _, name := range []string{"gaussian", "laplace", "matern12", "matern52", "rational quadratic"} {
				t.Run(fmt.Sprintf("%s/d=%d/R=%g", name, d, radius), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(7, uint64(d)))
					scale := 1 / radius
					k := map[string]kernel.Kernel{
						"gaussian": must(kernel.NewGaussian(scale)), "laplace": must(kernel.NewLaplace(scale)),
						"matern12": must(kernel.NewMatern12(scale)), "matern52": must(kernel.NewMatern52(scale)),
						"rational quadratic": must(kernel.NewRationalQuadratic(1.5, scale)),
					}[name]
					x, c := inBall(rng, n, d), inBall(rng, m, d)
					worst := float32Error(t, k, x, c, rng, kernel.AutoDistances)
					limit := 1e-7 * (1 + radius)
					if name == "laplace" { // whose radius is in the ℓ1 norm
						limit = 1e-7 * (1 + radius*math.Sqrt(float64(d)))
					}
					t.Logf("error %.2g, allowed %.2g", worst, limit)
					if !(worst <= limit) {
						t.Errorf("error %g relative to |K||v|, want at most %g", worst, limit)
					}
				})
			}
		}
	}
}

// inBall returns n points at most 1 from 1000·(1, …, 1), some of them close to
// others.
func inBall(rng *rand.Rand, n, d int) *kernel.Points[float64] {
	x := kernel.NewPoints[float64](n, d, nil)
	for i := range n {
		row, square := x.Row(i), 0.0
		for c := range row {
			row[c] = rng.NormFloat64()
			square += row[c] * row[c]
		}
		r := math.Pow(rng.Float64(), 3) / math.Sqrt(square)
		for c := range row {
			row[c] = 1000 + row[c]*r
		}
	}
	return x
}

// float32Error returns the largest error of Kv and Kᵀu relative to |K||v| and
// |K|ᵀ|u|, of vectors that are numbers of float32.
func float32Error(t *testing.T, k kernel.Kernel, x, c *kernel.Points[float64], rng *rand.Rand, distances kernel.Distances) float64 {
	t.Helper()
	n, m := x.Len(), c.Len()
	op, err := kernel.NewOperator(k, kernel.FromRows(x), c, kernel.Options{Precision: kernel.Float32, Distances: distances})
	if err != nil {
		t.Fatal(err)
	}
	if op.Precision() != kernel.Float32 {
		t.Fatalf("precision %v", op.Precision())
	}
	v, u := normals(rng, m), normals(rng, n)
	for _, s := range [][]float64{v, u} {
		for i := range s {
			s[i] = float64(float32(s[i]))
		}
	}
	kv, ku := make([]float64, n), make([]float64, m)
	if err := errors.Join(op.Apply(background, kv, v), op.ApplyT(background, ku, u)); err != nil {
		t.Fatal(err)
	}
	worst, sizeT, wantT := 0.0, make([]float64, m), make([]float64, m)
	for i := range n {
		want, size := 0.0, 0.0
		for j := range m {
			e := k.Eval(x, i, c, j)
			want += e * v[j]
			size += e * math.Abs(v[j])
			wantT[j] += e * u[i]
			sizeT[j] += e * math.Abs(u[i])
		}
		worst = max(worst, math.Abs(kv[i]-want)/max(size, 1))
	}
	for j := range m {
		worst = max(worst, math.Abs(ku[j]-wantT[j])/max(sizeT[j], 1))
	}
	return worst
}

// TestFloat32Leaves checks which evaluations stay in float64.
func TestFloat32Leaves(t *testing.T) {
	x := kernel.NewPoints(2, 1, []float64{1 << 24, 1<<24 + 1}) // one number in float32
	for _, c := range []struct {
		k    kernel.Kernel
		rows kernel.Rows
		want kernel.Precision
	}{
		{must(kernel.NewGaussian(1)), x, kernel.Float32},
		{must(kernel.NewArcCosine(1)), x, kernel.Float32},
		{must(kernel.NewHamming(1)), x, kernel.Float64},
		{must(kernel.NewScaled(2, must(kernel.NewGaussian(1)))), x, kernel.Float32},
	} {
		op, err := kernel.NewOperator(c.k, kernel.FromRows(c.rows), c.rows, kernel.Options{Precision: kernel.Float32})
		if err != nil {
			t.Fatal(err)
		}
		if op.Precision() != c.want {
			t.Errorf("%s: %v, want %v", c.k.Spec().Name, op.Precision(), c.want)
		}
		got := make([]float64, 2)
		if err := op.Apply(background, got, []float64{1, 0}); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if want := c.k.Eval(x, i, x, 0); !(math.Abs(v-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("%s: K(%d, 0) = %v, want %v", c.k.Spec().Name, i, v, want)
			}
		}
	}
}

func TestPrecisionThatDoesNotExist(t *testing.T) {
	x := kernel.NewPoints(1, 1, []float64{1})
	_, err := kernel.NewOperator(must(kernel.NewGaussian(1)), kernel.FromRows(x), x, kernel.Options{Precision: 7})
	var bad *kernel.ParameterError
	if !errors.As(err, &bad) || bad.Parameter != "Precision" || bad.Value != 7 {
		t.Errorf("error %v", err)
	}
}
