package gp_test

import (
	"math"
	"os"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// score is the problem of BenchmarkScore, means and variances of A = 20 000 arms in
// d = 6 dimensions, given t = 1000 observations, by m = 200 inducing points.
type score struct {
	k      kernel.Kernel
	arms   *kernel.Points[float64]
	dict   kernel.Rows
	data   gp.Data
	opts   gp.SparseOptions
	lengsc float64
}

func newScore(workers int) score {
	rng := fixed()
	s := score{k: must(kernel.NewGaussian(0.3)), arms: uniform(rng, 20000, 6), lengsc: 0.3}
	s.dict = uniform(rng, 200, 6)
	s.data = gp.Data{X: s.arms.Slice(0, 1000), Y: normals(rng, 1000)}
	s.opts = gp.SparseOptions{NoiseVariance: 0.01, Workers: workers}
	return s
}

// plain computes the same by loops, math.Exp and triangular solutions of gonum.
func (s score) plain(p *gp.Sparse) (mean, variance []float64) {
	dict, _ := p.Inducing()
	c := dict.(*kernel.Points[float64])
	m, n := c.Len(), s.arms.Len()
	g := -0.5 / (s.lengsc * s.lengsc)
	fill := func(dst []float64, x *kernel.Points[float64]) {
		for j := range m {
			cj := c.Row(j)
			for i := range x.Len() {
				r := 0.0
				for l, v := range x.Row(i) {
					r += (v - cj[l]) * (v - cj[l])
				}
				dst[j*x.Len()+i] = math.Exp(g * r)
			}
		}
	}
	factor := func(a []float64) blas64.Triangular {
		l, _, err := gp.NewCholesky("A", a, m)
		if err != nil {
			panic(err)
		}
		t := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m, Stride: m, Data: make([]float64, m*m)}
		for i := range m {
			copy(t.Data[i*m:], l[i])
		}
		return t
	}
	solve := func(l blas64.Triangular, b []float64, cols int) {
		blas64.Trsm(blas.Left, blas.NoTrans, 1, l, blas64.General{Rows: m, Cols: cols, Stride: cols, Data: b})
	}
	kdd := make([]float64, m*m)
	fill(kdd, c)
	ld := factor(kdd)
	x := s.data.X.(*kernel.Points[float64])
	t := x.Len()
	z := make([]float64, m*t)
	fill(z, x)
	solve(ld, z, t)
	v, w := make([]float64, m*m), make([]float64, m)
	zg := blas64.General{Rows: m, Cols: t, Stride: t, Data: z}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, zg, zg, 0, blas64.General{Rows: m, Cols: m, Stride: m, Data: v})
	for i := range m {
		v[i*m+i] += s.opts.NoiseVariance
	}
	lv := factor(v)
	wv := blas64.Vector{N: m, Inc: 1, Data: w}
	blas64.Gemv(blas.NoTrans, 1, zg, blas64.Vector{N: t, Inc: 1, Data: s.data.Y}, 0, wv)
	blas64.Trsv(blas.NoTrans, lv, wv)
	blas64.Trsv(blas.Trans, lv, wv)
	b := make([]float64, m*n)
	mean, variance = make([]float64, n), make([]float64, n)
	fill(b, s.arms)
	solve(ld, b, n)
	blas64.Gemv(blas.Trans, 1, blas64.General{Rows: m, Cols: n, Stride: n, Data: b}, wv, 0, blas64.Vector{N: n, Inc: 1, Data: mean})
	for i := range variance {
		variance[i] = 1
	}
	add := func(f float64) {
		for j := range m {
			for i, v := range b[j*n : (j+1)*n] {
				variance[i] += f * v * v
			}
		}
	}
	add(-1)
	solve(lv, b, n)
	add(s.opts.NoiseVariance)
	return mean, variance
}

// BenchmarkScore is one prediction of all arms of a new set. gonum/score is the ratio
// of the time of plain loops with gonum to it, on the same machine at the same time.
func BenchmarkScore(b *testing.B) {
	s := newScore(scoreWorkers())
	p := must(gp.NewSparse(s.k, s.dict, s.data, s.opts))
	var mean, variance []float64
	plain := timed(2, func() { mean, variance = s.plain(p) })
	got, spread, err := p.Predict(s.arms)
	if err != nil {
		b.Fatal(err)
	}
	near(b, "mean", got, mean, 1e-8)
	near(b, "variance", spread, variance, 1e-10)
	b.Run("predict", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := p.Predict(s.arms); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(plain/(b.Elapsed().Seconds()/float64(b.N)), "gonum/score")
	})
	b.Run("setup", func(b *testing.B) {
		for b.Loop() {
			must(gp.NewSparse(s.k, s.dict, s.data, s.opts))
		}
	})
	b.Run("resparsify", func(b *testing.B) {
		for b.Loop() {
			if err := p.Resparsify(s.dict); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// scoreWorkers returns GP_WORKERS, or 1.
func scoreWorkers() int {
	n, _ := strconv.Atoi(os.Getenv("GP_WORKERS"))
	return max(n, 1)
}
