package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// naiveGram is Kᵀ(Kv) for the Gaussian kernel in its most obvious form. It takes one
// pair after the other and uses each row of K twice.
func naiveGram(dst, v []float64, x, c *kernel.Points[float64], lengthScale float64) {
	clear(dst)
	row := make([]float64, c.Len())
	for i := range x.Len() {
		t := 0.0
		for j := range row {
			sum := 0.0
			xi, cj := x.Row(i), c.Row(j)
			for p := range xi {
				sum += (xi[p] - cj[p]) * (xi[p] - cj[p])
			}
			row[j] = math.Exp(-sum / (2 * lengthScale * lengthScale))
			t += row[j] * v[j]
		}
		for j, k := range row {
			dst[j] += k * t
		}
	}
}

// BenchmarkGram reports the time and how many times faster the operator is than
// naiveGram. Both have the Gaussian kernel and the same float64 data, in the same run.
func BenchmarkGram(b *testing.B) {
	const n, m = 4000, 500
	for _, d := range []int{6, 18, 90} {
		rng := rand.New(rand.NewPCG(1, 0))
		x := kernel.NewPoints(n, d, normals(rng, n*d))
		c := kernel.NewPoints(m, d, normals(rng, m*d))
		v, dst := normals(rng, m), make([]float64, m)
		scale := math.Sqrt(float64(d))
		scales := make([]float64, d)
		for p := range scales {
			scales[p] = scale
		}
		for _, k := range []struct {
			name string
			k    kernel.Kernel
		}{
			{"gaussian", must(kernel.NewGaussian(scale))},
			{"gaussianARD", must(kernel.NewGaussian(scales...))},
			{"matern52", must(kernel.NewMatern52(scale))},
			{"laplace", must(kernel.NewLaplace(scale))},
		} {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("d=%d/%s/workers=%d", d, k.name, workers), func(b *testing.B) {
					op, err := kernel.NewOperator(k.k, kernel.FromRows(x), c, kernel.Options{Workers: workers})
					if err != nil {
						b.Fatal(err)
					}
					naive := time.Duration(math.MaxInt64)
					for range 3 {
						start := time.Now()
						naiveGram(dst, v, x, c, scale)
						naive = min(naive, time.Since(start))
					}
					fastest := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := time.Now()
						if err := op.Gram(background, dst, v, nil); err != nil {
							b.Fatal(err)
						}
						fastest = min(fastest, time.Since(start))
					}
					b.ReportMetric(float64(naive)/float64(fastest), "×naive")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*m), "ns/pair")
				})
			}
		}
	}
}

// BenchmarkGramian compares the symmetric helper with one Eval for each pair.
func BenchmarkGramian(b *testing.B) {
	const n, d = 600, 10
	x := kernel.NewPoints(n, d, normals(rand.New(rand.NewPCG(1, 0)), n*d))
	k := must(kernel.NewMatern52(3))
	start := time.Now()
	sum := 0.0
	for i := range n {
		for j := range n {
			sum += k.Eval(x, i, x, j)
		}
	}
	naive := time.Since(start)
	for b.Loop() {
		if _, err := kernel.Gramian(k, x); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(naive)*float64(b.N)/float64(b.Elapsed()), "×naive")
}
