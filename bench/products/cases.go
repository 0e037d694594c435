//go:build linux

package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
	"github.com/bkbtuner/bkb/sketch"
)

// wanted is a ratio peer/ours that the project requires, on one thread and on two. It has
// the least required ratio and the ratio to aim at, 0 for none.
type wanted struct {
	peer string
	gate [2]float64
	aim  float64 // on one thread or two
}

// task is a case, whose name has its kind, precision and sizes. It is compared only with
// the wanted peers. The fields gate and aim are shares of the FMA peak of one core, 0 for
// none.
type task struct {
	name      string
	gate, aim float64
	wanted    []wanted
	pair      bool    // also with two threads
	most      float64 // maximum seconds of one core, or 0
}

// products are kernel matrices, with gates for one thread and for two.
func products(name string, gate, aim float64, peers ...wanted) task {
	peers = append(peers, wanted{peer: "one worker", gate: [2]float64{0, 1.8}, aim: 1.9})
	return task{name: name, gate: gate, aim: aim, wanted: peers, pair: true}
}

func torch(gate, aim float64) wanted {
	return wanted{peer: "torch", gate: [2]float64{gate, 0}, aim: aim}
}

func numpy(gate, two, aim float64) wanted {
	return wanted{peer: "numpy", gate: [2]float64{gate, two}, aim: aim}
}

func sklearn(gate, two, aim float64) wanted {
	return wanted{peer: "sklearn", gate: [2]float64{gate, two}, aim: aim}
}

func gonum(gate, aim float64) wanted {
	return wanted{peer: "gonum", gate: [2]float64{gate, 0}, aim: aim}
}

// algebra is compared on one thread.
func algebra(name string, peers ...wanted) task { return task{name: name, wanted: peers} }

// tasks has the cases and their required ratios. Gates are required, and aims go further
// where they are set. Products are those of the learners, except for features of float32.
// The case direct is gram with direct differences forced. The peers do not compute it, so
// the gates are only aims there.
var tasks = []task{
	products("gram 32 20000 2000 18", 0.45, 0.55, torch(2.2, 2.5), numpy(4, 5, 4), sklearn(5, 8, 9)),
	products("gram 32 20000 2000 90", 0.65, 0.72, torch(1.4, 1.6), numpy(1.7, 2.8, 1.9), sklearn(2.7, 4.5, 4.5)),
	products("gram 64 20000 2000 18", 0.38, 0.43, torch(2.2, 2.5), numpy(4, 5, 4), sklearn(5, 8, 6)),
	products("gram 64 20000 2000 90", 0.65, 0.69, torch(1.4, 1.6), numpy(2.2, 3.5, 2.2), sklearn(2.7, 4.5, 3)),
	products("direct 32 20000 2000 18", 0, 0.45, torch(0, 2.2), numpy(0, 0, 4), sklearn(0, 0, 5)),
	products("direct 32 20000 2000 90", 0, 0.65, torch(0, 1.4), numpy(0, 0, 1.7), sklearn(0, 0, 2.7)),
	products("direct 64 20000 2000 18", 0, 0.38, torch(0, 2.2), numpy(0, 0, 4), sklearn(0, 0, 5)),
	products("direct 64 20000 2000 90", 0, 0.65, torch(0, 1.4), numpy(0, 0, 2.2), sklearn(0, 0, 2.7)),
	algebra("features 32 20000 2000 18", torch(0, 3), numpy(3.5, 0, 0)),
	algebra("features 32 20000 2000 90", torch(0, 2), numpy(2, 0, 0)),
	products("features 64 20000 2000 18", 0, 0, torch(0, 3), numpy(10, 0, 0)),
	products("features 64 20000 2000 90", 0, 0, torch(0, 2), numpy(5, 0, 0)),
	algebra("matern52 32 20000 2000 18", numpy(0, 0, 0)),
	algebra("matern52 64 20000 2000 18", numpy(0, 0, 0)),
	algebra("columns 64 20000 2000 18", numpy(0, 0, 0)),
	{name: "bkb 64 20000 200 6", wanted: []wanted{numpy(2.3, 0, 2.5), gonum(10, 12)}, most: 60e-3},
	algebra("ucb 64 20000 1000 6", numpy(15, 0, 0)),
	algebra("ucb 64 20000 2000 6", numpy(50, 0, 0)),
	algebra("gemm 64 1000 2000 18", numpy(1.1, 0, 1.1)),
	algebra("gemm 64 1024 1024 64", numpy(1.1, 0, 1.1)),
	algebra("gemm 64 4096 2048 90", numpy(1.1, 0, 1.1)),
	algebra("gemm 64 2048 2048 2048", numpy(0.95, 0, 1)),
	algebra("gemm 32 1000 2000 18", numpy(1.1, 0, 1.1)),
	algebra("gemm 32 1024 1024 64", numpy(1.1, 0, 1.1)),
	algebra("gemm 32 4096 2048 90", numpy(1.1, 0, 1.1)),
	algebra("gemm 32 2048 2048 2048", numpy(0.95, 0, 1)),
	algebra("cholesky 64 200", numpy(0, 0, 0), gonum(0, 0)),
	algebra("cholesky 64 500", numpy(0, 0, 0.9), gonum(0, 7)),
	algebra("cholesky 64 2000", numpy(0.8, 0, 0.9), gonum(7, 7)),
	algebra("cholesky 32 500", numpy(0, 0, 0)),
	algebra("cholesky 32 2000", numpy(0, 0, 0)),
	algebra("trsm 64 200 20000", numpy(0.75, 0, 0.9), gonum(0, 7)),
	algebra("trsm 64 500 2000", numpy(0.75, 0, 0.9), gonum(0, 7)),
	algebra("trsm 64 2000 2000", numpy(0.75, 0, 0.9), gonum(0, 7)),
	algebra("exp 64 4800", numpy(0, 0, 0)),
	algebra("exp 32 4800", numpy(0, 0, 0)),
	algebra("cos 64 4800", numpy(0, 0, 0)),
	algebra("cos 32 4800", numpy(0, 0, 0)),
}

// comparison is a case ready to run. The fields flops and gonum may be 0 and nil, and so
// may one, which is ours with one worker. If prepare is set, it runs before each side and
// is not timed. The last side that ran leaves its result in result, as far as it is kept.
// If gonum writes elsewhere, its result is gonumResult.
type comparison struct {
	flops                     float64
	prepare, ours, one, gonum func()
	result, gonumResult       func() []float64
}

// wide copies numbers of either precision.
func wide[T simd.Float](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func build(name string, workers int) comparison {
	var kind string
	var bits int
	var s [3]int
	// Fewer than three sizes leave zeros, and an error that says so.
	if n, err := fmt.Sscan(name, &kind, &bits, &s[0], &s[1], &s[2]); n < 3 {
		log.Fatal(name, ": ", err)
	}
	if bits == 32 {
		return buildFor[float32](kind, s, workers)
	}
	return buildFor[float64](kind, s, workers)
}

func buildFor[T simd.Float](kind string, s [3]int, workers int) comparison {
	switch kind {
	case "gemm":
		return gemm[T](s[0], s[1], s[2])
	case "cholesky":
		return cholesky[T](s[0])
	case "trsm":
		return trsm[T](s[0], s[1])
	case "gram":
		return operator[T](kernel.NewGaussian, s, 1, kernel.Options{Workers: workers})
	case "direct":
		return operator[T](kernel.NewGaussian, s, 1, kernel.Options{Workers: workers, Distances: kernel.DirectDistances})
	case "columns":
		return operator[T](kernel.NewGaussian, s, rightHandSides, kernel.Options{Workers: workers})
	case "matern52":
		return operator[T](kernel.NewMatern52, s, 1, kernel.Options{Workers: workers})
	case "features":
		if simd.Size[T]() == 4 {
			return features32(s[0], s[1], s[2])
		}
		return features64(s[0], s[1], s[2], workers)
	case "bkb":
		return score(s[0], s[1], observed, s[2])
	case "ucb": // exact inference, against BKB with the same number of observations
		return score(s[0], inducing, s[1], s[2])
	case "exp":
		return elementwise(s[0], func(x []T) { simd.Apply(simd.ExpScaled, x, &simd.Params[T]{1}) })
	case "cos": // 2πx
		return elementwise(s[0], func(x []T) { simd.Apply(simd.CosTurns, x, new(simd.Params[T])) })
	}
	log.Fatal("no case ", kind)
	return comparison{}
}

func normals[T simd.Float](n int) []T {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.NormFloat64())
	}
	return x
}

func gemm[T simd.Float](m, n, k int) comparison {
	a, b, c := blocked.New(m, k, normals[T](m*k)), blocked.New(k, n, normals[T](k*n)), blocked.New[T](m, n, nil)
	out := comparison{
		flops:  2 * float64(m) * float64(n) * float64(k),
		ours:   func() { blocked.Gemm(1, false, a, false, b, 1, 0, c) },
		result: func() []float64 { return wide(c.Data) },
	}
	if a, ok := any(a).(blocked.Matrix[float64]); ok {
		b, c := any(b).(blocked.Matrix[float64]), any(c).(blocked.Matrix[float64])
		out.gonum = func() { blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, general(a), general(b), 0, general(c)) }
	}
	return out
}

func general(m blocked.Matrix[float64]) blas64.General {
	return blas64.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}
}

func cholesky[T simd.Float](n int) comparison {
	g := blocked.New(n, n+10, normals[T](n*(n+10)))
	a, w := blocked.New[T](n, n, nil), blocked.New[T](n, n, nil)
	blocked.Syrk(1, false, g, 1, 0, a)
	out := comparison{
		flops:   math.Pow(float64(n), 3) / 3,
		prepare: func() { copy(w.Data, a.Data) },
		ours: func() {
			if blocked.Cholesky(1, w) != n {
				log.Fatal("not positive definite")
			}
		},
		result: func() []float64 { return lower(n, wide(w.Data)) },
	}
	if a, ok := any(a).(blocked.Matrix[float64]); ok {
		sym := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				sym.SetSym(i, j, a.Data[i*n+j])
			}
		}
		var chol mat.Cholesky
		out.gonum = func() { chol.Factorize(sym) }
		out.gonumResult = func() []float64 {
			var l mat.TriDense
			chol.LTo(&l)
			return l.RawTriangular().Data
		}
	}
	return out
}

// lower clears the part above the diagonal.
func lower(n int, x []float64) []float64 {
	for i := range n {
		clear(x[i*n+i+1 : (i+1)*n])
	}
	return x
}

func trsm[T simd.Float](n, m int) comparison {
	l, b, w := blocked.New(n, n, normals[T](n*n)), blocked.New(n, m, normals[T](n*m)), blocked.New[T](n, m, nil)
	for i := range n {
		for j := range i {
			l.Data[i*n+j] /= T(math.Sqrt(float64(n)))
		}
		l.Data[i*n+i] = 2
	}
	out := comparison{
		flops:   float64(n) * float64(n) * float64(m),
		prepare: func() { copy(w.Data, b.Data) },
		ours:    func() { blocked.SolveLower(1, false, l, w) },
		result:  func() []float64 { return wide(w.Data) },
	}
	if l, ok := any(l).(blocked.Matrix[float64]); ok {
		w := any(w).(blocked.Matrix[float64])
		out.gonum = func() {
			t := blas64.Triangular{N: n, Stride: n, Data: l.Data, Uplo: blas.Lower, Diag: blas.NonUnit}
			blas64.Trsm(blas.Left, blas.NoTrans, 1, t, general(w))
		}
	}
	return out
}

// rightHandSides is the number of right-hand sides in the case columns, for ten classes.
const rightHandSides = 10

// gramFlops counts the inner products and the two products with K. Functions do not count.
func gramFlops(n, m, d, columns int) float64 {
	return float64(n) * float64(m) * float64(2*d+4*columns)
}

// operator is Kᵀ(Kv) as the learners compute it, with x packed anew each time.
func operator[T simd.Float](k func(lengthScales ...float64) (*kernel.Base, error), s [3]int, columns int, opts kernel.Options) comparison {
	n, m, d := s[0], s[1], s[2]
	x, y := kernel.NewPoints(n, d, normals[T](n*d)), kernel.NewPoints(m, d, normals[T](m*d))
	v, w := normals[float64](m*columns), make([]float64, m*columns)
	kern, err := k(math.Sqrt(float64(d)))
	if err != nil {
		log.Fatal(err)
	}
	if simd.Size[T]() == 4 {
		opts.Precision = kernel.Float32
	}
	with := func(workers int) func() {
		opts.Workers = workers
		op, err := kernel.NewOperator(kern, kernel.FromRows(x), y, opts)
		if err != nil {
			log.Fatal(err)
		}
		return func() {
			if err := op.Gram(context.Background(), w, v, nil); err != nil {
				log.Fatal(err)
			}
		}
	}
	return comparison{flops: gramFlops(n, m, d, columns), ours: with(opts.Workers), one: with(1), result: func() []float64 { return slices.Clone(w) }}
}

// features64 is Φᵀ(Φv) of random features as the learners compute it.
func features64(n, m, d, workers int) comparison {
	k, err := kernel.NewGaussian(math.Sqrt(float64(d)))
	if err != nil {
		log.Fatal(err)
	}
	phi, err := sketch.NewFourierCosine(k, d, m, 1)
	if err != nil {
		log.Fatal(err)
	}
	x, v, w := kernel.NewPoints(n, d, normals[float64](n*d)), normals[float64](m), make([]float64, m)
	with := func(workers int) func() {
		op := sketch.NewFeatureOperator(phi, workers)
		return func() {
			if err := op.Gram(w, x, v, nil); err != nil {
				log.Fatal(err)
			}
		}
	}
	return comparison{flops: gramFlops(n, m, d, 1), ours: with(workers), one: with(1), result: func() []float64 { return slices.Clone(w) }}
}

// features32 is the same in float32, which no learner uses. It has panels only, one block
// after the other.
func features32(n, m, d int) comparison {
	type T = float32
	x := panel.Rows[T]{Data: normals[T](n * d), N: n, D: d}
	y := panel.Rows[T]{Data: normals[T](m * d), N: m, D: d}
	phi := panel.Pack[T](panel.Function{Statistic: simd.Dot, Func: simd.CosTurns, Phase: normals[float64](m)}, y)
	v, w, t := normals[float64](m), make([]float64, m), make([]float64, phi.Height())
	var packed panel.Vectors[T]
	var sum panel.Sum[T]
	block := panel.NewBlock(phi, phi.Height())
	return comparison{flops: gramFlops(n, m, d, 1), ours: func() {
		packed.Set(phi, v, 1)
		sum.Reset(phi, 1)
		for i := 0; i < n; i += len(t) {
			end := min(i+len(t), n)
			panel.Evaluate(block, x, i, end, &packed, t)
			block.AddTransposed(&sum, t[:end-i])
		}
		clear(w)
		sum.AddTo(w)
	}, result: func() []float64 { return slices.Clone(w) }}
}

// elementwise applies f a thousand times to data in cache, on both sides.
func elementwise[T simd.Float](n int, f func([]T)) comparison {
	x, y := normals[T](n), make([]T, n)
	for i := range x {
		x[i] = -8 * max(x[i]-T(int(x[i])), T(int(x[i]))-x[i])
	}
	return comparison{ours: func() {
		for range 1000 {
			copy(y, x)
			f(y)
		}
	}, result: func() []float64 { return wide(y) }}
}
