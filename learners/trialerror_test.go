package learners

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners/data"
)

// The error of a trial is that of the least-squares problem
//
//	Σ_i s_i(k_M(x_i)ᵀw − y_i)² + λn wᵀK_MM w = min
//
// solved by a QR factorisation of √S K_nM above √(λn) F with FᵀF = K_MM, of which no
// eigenvalue is below the rounding error. Streamed rows
// have the error of rows in memory.
func TestTrialError(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 11))
	const n, fitted, m, d = 140, 90, 12, 3
	x, y := kernel.NewPoints[float64](n, d, nil), make([]float64, 2*n)
	for i := range x.Data() {
		x.Data()[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = math.Sin(x.Data()[i%n*d]) + 0.1*rng.NormFloat64()
	}
	rows := rng.Perm(n)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 2 * rng.Float64()
	}
	weights[3] = 0
	k := kerneltest.Gaussian(1)
	for _, c := range []int{1, 2} {
		memory, err := data.NewMemory(x, y[:n*c], c)
		if err != nil {
			t.Fatal(err)
		}
		for _, lambda := range []float64{1e-2, 1e-6} {
			for _, s := range [][]float64{nil, weights} {
				for _, from := range []int{0, m} {
					var errs []float64
					for _, src := range []data.Source{memory, streamed{memory}} {
						tr := trial{k: k, lambda: lambda, fitted: fitted, c: c, weights: s}
						if err := tr.read(t.Context(), src, rows); err != nil {
							t.Fatal(err)
						}
						errs = append(errs, tr.error(from, from+m))
					}
					want := leastSquares(t, k, x, y, rows, s, fitted, from, from+m, c, lambda)
					name := fmt.Sprintf("%d outputs, λ = %g, weights %v, centres from %d", c, lambda, s != nil, from)
					if errs[0] != errs[1] {
						t.Errorf("%s: %v, streamed %v", name, errs[0], errs[1])
					}
					if math.Abs(errs[0]-want) > 1e-6*want {
						t.Errorf("%s: %v, want %v", name, errs[0], want)
					}
				}
			}
		}
	}
}

// streamed hides that the rows are in memory.
type streamed struct{ data.Source }

func leastSquares(t *testing.T, k kernel.Kernel, x kernel.Rows, y []float64, rows []int, weights []float64, fitted, from, to, c int, lambda float64) float64 {
	t.Helper()
	m := to - from
	of := func(i, j int) float64 { return k.Eval(x, rows[i], x, rows[from+j]) }
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	kmm := mat.NewSymDense(m, nil)
	for i := range m {
		for j := range i + 1 {
			kmm.SetSym(i, j, of(from+i, j))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(kmm, true) {
		t.Fatal("no eigenvalues")
	}
	var v mat.Dense
	eigen.VectorsTo(&v)
	a, b := mat.NewDense(fitted+m, m, nil), mat.NewDense(fitted+m, c, nil)
	for i := range fitted {
		for j := range m {
			a.Set(i, j, math.Sqrt(weight(i))*of(i, j))
		}
		for o := range c {
			b.Set(i, o, math.Sqrt(weight(i))*y[rows[i]*c+o])
		}
	}
	rounding := float64(m) * 0x1p-50 * k.Bound()
	for l, e := range eigen.Values(nil) {
		for j := range m {
			a.Set(fitted+l, j, math.Sqrt(lambda*float64(fitted)*max(e, rounding))*v.At(j, l))
		}
	}
	var qr mat.QR
	qr.Factorize(a)
	var w mat.Dense
	if err := qr.SolveTo(&w, false, b); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := fitted; i < len(rows); i++ {
		for o := range c {
			e := -y[rows[i]*c+o]
			for j := range m {
				e += of(i, j) * w.At(j, o)
			}
			sum += weight(i) * e * e
		}
	}
	return sum
}

// Where K_MM is singular up to rounding, the error is within 5 % of that of the least-squares
// problem, by which draws of one kind differ. In 40 runs it was within 3 %.
func TestTrialErrorNearlySingular(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const m, fitted, n, d = 120, 1320, 2400, 3
	k := kerneltest.Gaussian(2)
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	for name, move := range map[string]func(x []float64, i int){
		"a box": func([]float64, int) {},
		"clusters": func(x []float64, i int) {
			if i < m/2 { // first centres, and half of the second
				for c := range x {
					x[c] = 1 + 0.01*x[c]
				}
			}
		},
		"equal rows": func(x []float64, i int) {
			if i < m/2 {
				copy(x, []float64{1, 1, 1})
			}
		},
	} {
		x, y := kernel.NewPoints[float64](n, d, nil), make([]float64, n)
		for i := range n {
			row := x.Data()[i*d:][:d]
			for c := range row {
				row[c] = 2 * rng.Float64()
			}
			move(row, i-m)
			y[i] = math.Sin(3*row[0])*math.Cos(2*row[1]) + row[2] + 0.01*rng.NormFloat64()
		}
		src, err := data.NewMemory(x, y, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, lambda := range []float64{1e-4, 1e-6, 1e-8, 1e-10} {
			for _, from := range []int{0, m} {
				tr := trial{k: k, lambda: lambda, fitted: fitted, c: 1}
				if err := tr.read(t.Context(), src, rows); err != nil {
					t.Fatal(err)
				}
				got, want := tr.error(from, from+m), leastSquares(t, k, x, y, rows, nil, fitted, from, from+m, 1, lambda)
				if math.Abs(got-want) > 0.05*want {
					t.Errorf("%s, λ = %g, centres from %d: %v, want %v", name, lambda, from, got, want)
				}
			}
		}
	}
}

// passes counts the passes over a source, one for each trial.
type passes struct {
	data.Source
	n *int
}

func (p passes) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	*p.n++
	return p.Source.OpenPairs(ctx)
}

// Centres that uniform ones do not match have two trials. Others have one, unless it shows a gain
// by chance.
func TestTrialsUntilOneShowsNoGain(t *testing.T) {
	const n, m, seeds = 1000, 50, 20
	for _, rare := range []bool{true, false} {
		kept, trials := 0, 0
		for seed := range uint64(seeds) {
			rng, noise := rand.New(rand.NewPCG(seed, 12)), 0.3
			if rare {
				noise = 0.01
			}
			x, y := kernel.NewPoints[float64](n, 1, nil), make([]float64, n)
			for i := range n {
				x.Row(i)[0] = 10 * rng.Float64()
				if rare && i >= m {
					x.Row(i)[0] *= 0.001
				}
				y[i] = math.Sin(3*x.Row(i)[0]) + noise*rng.NormFloat64()
			}
			src, err := data.NewMemory(x, y, 1)
			if err != nil {
				t.Fatal(err)
			}
			c := &Centers{Points: x.Slice(0, m)}
			for i := range m { // the rare rows, if there are any
				c.Indices = append(c.Indices, i)
			}
			if c.gains(t.Context(), kerneltest.Gaussian(0.5), passes{src, &trials}, nil, 1e-6, seed) {
				kept++
			}
		}
		t.Logf("rare rows %t: %d of %d kept, %d trials", rare, kept, seeds, trials)
		if want := map[bool]int{true: seeds, false: 0}[rare]; kept != want || rare && trials != 2*seeds || !rare && trials > 3*seeds/2 {
			t.Errorf("rare rows %t: %d of %d kept after %d trials", rare, kept, seeds, trials)
		}
	}
}
