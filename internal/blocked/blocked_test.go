package blocked

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/internal/simd"
)

// random returns a matrix with a gap after each row.
func random[T Float](rng *rand.Rand, rows, cols, gap int) Matrix[T] {
	m := Matrix[T]{rows, cols, cols + gap, make([]T, rows*(cols+gap))}
	for i := range m.Data {
		m.Data[i] = T(rng.NormFloat64())
	}
	return m
}

func (m Matrix[T]) clone() Matrix[T] {
	m.Data = slices.Clone(m.Data)
	return m
}

// wide converts m for gonum.
func wide[T Float](m Matrix[T]) blas64.General {
	g := blas64.General{Rows: m.Rows, Cols: m.Cols, Stride: max(1, m.Stride), Data: make([]float64, len(m.Data))}
	for i, v := range m.Data {
		g.Data[i] = float64(v)
	}
	return g
}

func transposition(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

func epsilon[T Float]() float64 {
	if simd.Size[T]() == 4 {
		return 0x1p-23
	}
	return 0x1p-52
}

// near fails unless got is want up to tol, including gaps.
func near[T Float](t *testing.T, what string, got Matrix[T], want []float64, tol float64) {
	t.Helper()
	for i, v := range got.Data {
		if d := math.Abs(float64(v) - want[i]); !(d <= tol*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: element (%d, %d) is %g, want %g ± %.2g", what, i/got.Stride, i%got.Stride, v, want[i], tol)
		}
	}
}

func equal[T Float](t *testing.T, what string, a, b Matrix[T]) {
	t.Helper()
	for i, v := range a.Data {
		if v != b.Data[i] && (v == v || b.Data[i] == b.Data[i]) {
			t.Fatalf("%s: elements (%d, %d) differ: %g, %g", what, i/a.Stride, i%a.Stride, v, b.Data[i])
		}
	}
}

// both runs a test for both precisions.
func both(t *testing.T, f32, f64 func(t *testing.T)) {
	t.Run("float32", f32)
	t.Run("float64", f64)
}

func TestGemm(t *testing.T) { both(t, testGemm[float32], testGemm[float64]) }

func testGemm[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	shapes := [][3]int{{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {6, 8, 4}, {6, 16, 4}, {7, 9, 5}, {13, 33, 17}, {121, 30, 257}, {130, 20, 390}, {5, 1100, 3}, {200, 150, 70}}
	for range 10 {
		shapes = append(shapes, [3]int{1 + rng.IntN(50), 1 + rng.IntN(50), rng.IntN(50)})
	}
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		for mode := range 4 {
			transA, transB := mode&1 == 1, mode&2 == 2
			a, b := random[T](rng, m, k, mode), random[T](rng, k, n, 3-mode)
			if transA {
				a = random[T](rng, k, m, mode)
			}
			if transB {
				b = random[T](rng, n, k, 3)
			}
			c := random[T](rng, m, n, mode)
			alpha, beta := T(-0.5), []T{0, 1, 2, -1}[mode]
			want := wide(c)
			if k == 0 { // not for gonum
				for i := range m {
					blas64.Scal(float64(beta), blas64.Vector{N: n, Inc: 1, Data: want.Data[i*want.Stride:]})
				}
			} else if m > 0 && n > 0 {
				blas64.Gemm(transposition(transA), transposition(transB), float64(alpha), wide(a), wide(b), float64(beta), want)
			}
			two := c.clone()
			Gemm(1, transA, a, transB, b, alpha, beta, c)
			near(t, fmt.Sprint("gemm ", s, mode), c, want.Data, 4*epsilon[T]()*float64(k+2))
			for _, workers := range []int{2, 3, 7} {
				again := two.clone()
				Gemm(workers, transA, a, transB, b, alpha, beta, again)
				equal(t, fmt.Sprint("gemm ", s, mode, " workers ", workers), again, c)
			}
		}
	}
}

func TestSyrk(t *testing.T) { both(t, testSyrk[float32], testSyrk[float64]) }

func testSyrk[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, s := range [][2]int{{0, 2}, {1, 1}, {5, 0}, {6, 3}, {17, 9}, {50, 70}, {131, 40}, {300, 20}} {
		n, k := s[0], s[1]
		for _, trans := range []bool{false, true} {
			a := random[T](rng, n, k, 1)
			if trans {
				a = random[T](rng, k, n, 2)
			}
			c := random[T](rng, n, n, 3)
			want := wide(c)
			if k == 0 {
				for i := range n {
					blas64.Scal(-1, blas64.Vector{N: i + 1, Inc: 1, Data: want.Data[i*want.Stride:]})
				}
			} else if n > 0 {
				sym := blas64.Symmetric{N: n, Stride: want.Stride, Data: want.Data, Uplo: blas.Lower}
				blas64.Syrk(transposition(trans), 2, wide(a), -1, sym)
			}
			two := c.clone()
			Syrk(1, trans, a, 2, -1, c)
			near(t, fmt.Sprint("syrk ", s, trans), c, want.Data, 8*epsilon[T]()*float64(k+2))
			for _, workers := range []int{2, 3} {
				again := two.clone()
				Syrk(workers, trans, a, 2, -1, again)
				equal(t, fmt.Sprint("syrk ", s, trans, " workers ", workers), again, c)
			}
		}
	}
}

// triangle returns a well-conditioned triangle, with arbitrary numbers above the diagonal.
func triangle[T Float](rng *rand.Rand, n int) Matrix[T] {
	l := random[T](rng, n, n, 2)
	for i := range n {
		row := l.row(i)
		for j := range i {
			row[j] /= T(math.Sqrt(float64(n)))
		}
		row[i] = 2 + T(rng.Float64())
	}
	return l
}

func TestSolve(t *testing.T) { both(t, testSolve[float32], testSolve[float64]) }

func testSolve[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, s := range [][2]int{{0, 3}, {3, 0}, {1, 1}, {5, 3}, {6, 8}, {7, 17}, {32, 40}, {97, 5}, {320, 130}, {321, 33}, {400, 50}, {700, 1}, {1300, 3}} {
		n, m := s[0], s[1]
		for mode := range 4 {
			trans, right := mode&1 == 1, mode&2 == 2
			l, b := triangle[T](rng, n), random[T](rng, n, m, 1)
			side, f := blas.Left, SolveLower[T]
			if right {
				b, side, f = random[T](rng, m, n, 1), blas.Right, SolveLowerRight[T]
			}
			want := wide(b)
			if n > 0 && m > 0 {
				w := wide(l)
				blas64.Trsm(side, transposition(trans), 1, blas64.Triangular{N: n, Stride: w.Stride, Data: w.Data, Uplo: blas.Lower, Diag: blas.NonUnit}, want)
			}
			two := b.clone()
			f(1, trans, l, b)
			near(t, fmt.Sprint("solve ", s, mode), b, want.Data, 20*epsilon[T]()*float64(n+1))
			for _, workers := range []int{2, 5} {
				again := two.clone()
				f(workers, trans, l, again)
				equal(t, fmt.Sprint("solve ", s, mode, " workers ", workers), again, b)
			}
			if !right {
				kept := NewTriangle(l)
				for _, workers := range []int{1, 5, 1} {
					again := two.clone()
					kept.Solve(workers, trans, again)
					equal(t, fmt.Sprint("solve ", s, mode, " with a triangle, workers ", workers), again, b)
				}
			}
		}
	}
}

// Several goroutines use one triangle within a larger matrix.
func TestTriangleAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 3))
	whole := triangle[float64](rng, 410)
	l := whole.Sub(30, 30, 407, 407)
	kept := NewTriangle(l)
	var all sync.WaitGroup
	for i := range 8 {
		b := random[float64](rng, l.Rows, 1+i%3, 0)
		all.Go(func() {
			want := b.clone()
			SolveLower(1, i%2 == 1, l, want)
			kept.Solve(1, i%2 == 1, b)
			equal(t, fmt.Sprint("call ", i), b, want)
		})
	}
	all.Wait()
}

// Columns in panels have the solutions of Solve, and rows beyond them stay 0.
func TestSolvePanels(t *testing.T) {
	t.Run("float64", solvePanels[float64])
	t.Run("float32", solvePanels[float32])
}

func solvePanels[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 4))
	nr := simd.Columns[T]()
	for _, n := range []int{0, 1, 5, 6, 7, 64, 319, Direct} {
		l, panels := triangle[T](rng, n), 3
		b := random[T](rng, n, panels*nr, 0)
		padded := (n + simd.Rows - 1) / simd.Rows * simd.Rows
		at := func(i, j int) int { return j/nr*padded*nr + i*nr + j%nr }
		packed, rows := make([]T, panels*padded*nr), New[T](panels*nr, n, nil)
		for i := range n {
			for j := range panels * nr {
				rows.Data[j*n+i] = b.Data[i*b.Stride+j]
			}
		}
		for i := range packed {
			packed[i] = T(math.NaN())
		}
		PackPanels(packed, rows)
		NewTriangle(l).Solve(1, false, b)
		SolvePanels(PackTriangle(l), n, packed)
		for i := range padded {
			for j := range panels * nr {
				want := T(0)
				if i < n {
					want = b.Data[i*b.Stride+j]
				}
				if got := packed[at(i, j)]; got != want {
					t.Fatalf("n = %d: element (%d, %d) is %v, not %v", n, i, j, got, want)
				}
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("half a panel: no panic")
		}
	}()
	SolvePanels(PackTriangle(triangle[T](rng, 6)), 6, make([]T, 3*nr))
}

// BenchmarkTriangle solves with one right-hand side.
func BenchmarkTriangle(b *testing.B) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, n := range []int{250, 1000, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, x := triangle[float64](rng, n), random[float64](rng, n, 1, 0)
			kept, rounds := NewTriangle(l), 0
			for b.Loop() {
				kept.Solve(1, rounds%2 == 1, x)
				clear(x.Data)
				rounds++
			}
			own := b.Elapsed().Seconds() / float64(rounds)
			start := time.Now()
			for i := range rounds {
				SolveLower(1, i%2 == 1, l, x)
				clear(x.Data)
			}
			b.ReportMetric(time.Since(start).Seconds()/float64(rounds)/own, "SolveLower/own")
		})
	}
}

func TestInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	l := triangle[float64](rng, 70)
	inv := random[float64](rng, 70, 70, 0)
	Inverse(2, l, inv)
	for i := range 70 {
		for j := range 70 {
			s, want := 0.0, 0.0
			for k := range i + 1 {
				s += l.row(i)[k] * inv.row(k)[j]
			}
			if i == j {
				want = 1
			}
			if math.Abs(s-want) > 1e-13 {
				t.Fatalf("(L·L⁻¹)(%d, %d) = %g", i, j, s)
			}
		}
	}
}

// Inverse and SyrkLower leave out products with zeros only. So they have the bits of the
// solution with the unit matrix and of its product, for any number of workers.
func TestInverseBits(t *testing.T) {
	t.Run("float32", inverseBits[float32])
	t.Run("float64", inverseBits[float64])
}

func inverseBits[T Float](t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	sizes := []int{0, 1, 6, 7, 120, 121, 256, 257, 320, 321, 400, 640, 1025}
	for range 20 {
		sizes = append(sizes, 1+rng.IntN(150))
	}
	for _, n := range sizes {
		l := triangle[T](rng, n)
		want, square := random[T](rng, n, n, 2), random[T](rng, n, n, 1)
		scale(0, want, false)
		for i := range n {
			want.row(i)[i] = 1
		}
		SolveLower(1, false, l, want)
		Syrk(1, true, want, 1, 0, square)
		for _, workers := range []int{1, 2, 3, 8} {
			inv, got := random[T](rng, n, n, 3), random[T](rng, n, n, 0)
			above := slices.Clone(got.Data)
			Inverse(workers, l, inv)
			SyrkLower(workers, inv, got)
			for i := range n {
				if !slices.Equal(inv.row(i), want.row(i)) {
					t.Fatalf("n = %d, %d workers: row %d of the inverse differs", n, workers, i)
				}
				if !slices.Equal(got.row(i)[:i+1], square.row(i)[:i+1]) {
					t.Fatalf("n = %d, %d workers: row %d of the square differs", n, workers, i)
				}
				if !slices.Equal(got.row(i)[i+1:], above[i*n+i+1:(i+1)*n]) {
					t.Fatalf("n = %d, %d workers: row %d was written above the diagonal", n, workers, i)
				}
			}
		}
	}
}

func BenchmarkInverse(b *testing.B) {
	for _, n := range []int{160, 640, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := triangle[float64](rand.New(rand.NewPCG(5, 6)), n)
			inv, square := New[float64](n, n, nil), New[float64](n, n, nil)
			rounds := 0
			for b.Loop() {
				Inverse(1, l, inv)
				SyrkLower(1, inv, square)
				rounds++
			}
			own := b.Elapsed().Seconds() / float64(rounds)
			start := time.Now()
			for range rounds {
				scale(0, inv, false)
				for i := range n {
					inv.row(i)[i] = 1
				}
				SolveLower(1, false, l, inv)
				Syrk(1, true, inv, 1, 0, square)
			}
			b.ReportMetric(time.Since(start).Seconds()/float64(rounds)/own, "dense/own")
		})
	}
}

// gramian is a·aᵀ of rank at most k, plus d on the diagonal, with arbitrary numbers above
// it and between the rows.
func gramian[T Float](rng *rand.Rand, n, k int, d float64) Matrix[T] {
	a, c := random[T](rng, n, k, 0), random[T](rng, n, n, 3)
	for i := range n {
		for j := range i + 1 {
			s := 0.0
			for l := range k {
				s += float64(a.row(i)[l]) * float64(a.row(j)[l])
			}
			if i == j {
				s += d
			}
			c.row(i)[j] = T(s)
		}
	}
	return c
}

func TestCholesky(t *testing.T) { both(t, testCholesky[float32], testCholesky[float64]) }

func testCholesky[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{0, 1, 2, 5, 8, 9, 31, 32, 33, 64, 65, 100, 150, 333} {
		a := gramian[T](rng, n, n+3, 0.5)
		l := a.clone()
		if ok := Cholesky(1, l); ok != n {
			t.Fatalf("n = %d: pivot %d", n, ok)
		}
		checkFactor(t, fmt.Sprint("cholesky ", n), a, l, n, nil)
		two := a.clone()
		Cholesky(3, two)
		equal(t, fmt.Sprint("cholesky workers ", n), two, l)
		for i := range n {
			equal(t, "above the diagonal", l.Sub(i, i+1, i+1, n), a.Sub(i, i+1, i+1, n))
		}
		if n > 0 {
			bad := rng.IntN(n)
			a.row(bad)[bad] = -1
			if ok := Cholesky(2, a); ok != bad {
				t.Errorf("n = %d: pivot %d, want %d", n, ok, bad)
			}
		}
	}
}

// checkFactor verifies the residual of the first rank columns at the entries where it must
// be small.
func checkFactor[T Float](t *testing.T, what string, a, l Matrix[T], rank int, perm []int) {
	t.Helper()
	n := a.Rows
	at := func(i int) int {
		if perm == nil {
			return i
		}
		return perm[i]
	}
	largest := 0.0
	for i := range n {
		largest = max(largest, math.Abs(float64(a.row(i)[i])))
	}
	for i := range n {
		for j := range min(i+1, rank) {
			s := 0.0
			for k := range j + 1 {
				s += float64(l.row(i)[k]) * float64(l.row(j)[k])
			}
			p, q := at(i), at(j)
			if want := float64(a.row(max(p, q))[min(p, q)]); !(math.Abs(s-want) <= 5*float64(n+5)*epsilon[T]()*largest) {
				t.Fatalf("%s: (LLᵀ)(%d, %d) = %g, want %g", what, i, j, s, want)
			}
		}
	}
}

func TestPivotedCholesky(t *testing.T) {
	both(t, testPivotedCholesky[float32], testPivotedCholesky[float64])
}

func testPivotedCholesky[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	tolerance := T(100 * epsilon[T]())
	for _, s := range [][2]int{{0, 0}, {1, 1}, {5, 0}, {5, 2}, {31, 7}, {32, 40}, {70, 33}, {100, 64}, {150, 150}, {150, 65}} {
		n, rank := s[0], min(s[0], s[1])
		a := gramian[T](rng, n, s[1], 0)
		l, perm := a.clone(), make([]int, n)
		if got := PivotedCholesky(1, l, tolerance, perm); got != rank {
			// The last pivots of a square matrix may have any value.
			if s[1] != n || got < n-3 {
				t.Fatalf("%v: rank %d", s, got)
			}
			rank = got
		}
		checkFactor(t, fmt.Sprint("pivoted ", s), a, l, rank, perm)
		sorted := slices.Clone(perm)
		slices.Sort(sorted)
		for i, p := range sorted {
			if i != p {
				t.Fatalf("%v: no permutation: %v", s, perm)
			}
		}
		for j := 1; j < rank; j++ {
			if l.row(j)[j] > l.row(j - 1)[j-1]*(1+T(epsilon[T]()*100)) {
				t.Errorf("%v: diagonal grows at %d", s, j)
			}
		}
		for i := range n {
			equal(t, "above the diagonal", l.Sub(i, i+1, i+1, n), above(a, i))
		}
		two, perm2 := a.clone(), make([]int, n)
		if PivotedCholesky(3, two, tolerance, perm2) != rank || !slices.Equal(perm, perm2) {
			t.Errorf("%v: depends on the workers", s)
		}
	}
	// The first of equal pivots is chosen, and never NaN.
	a := New[T](3, 3, nil)
	a.row(0)[0], a.row(1)[1], a.row(2)[2] = T(math.NaN()), 2, 2
	perm := make([]int, 3)
	if rank := PivotedCholesky(1, a, 0, perm); rank != 2 || perm[0] != 1 || perm[1] != 2 {
		t.Errorf("rank %d, %v", rank, perm)
	}
}

func above[T Float](a Matrix[T], i int) Matrix[T] { return a.Sub(i, i+1, i+1, a.Cols) }

// TestGonum compares whole factors with those of gonum.
func TestGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	const n = 120
	a := gramian[float64](rng, n, n+20, 1)
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			sym.SetSym(i, j, a.row(i)[j])
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(sym) {
		t.Fatal("gonum has no factor")
	}
	var want mat.TriDense
	chol.LTo(&want)
	Cholesky(2, a)
	for i := range n {
		for j := range i + 1 {
			if math.Abs(a.row(i)[j]-want.At(i, j)) > 1e-10 {
				t.Fatalf("L(%d, %d) = %g, want %g", i, j, a.row(i)[j], want.At(i, j))
			}
		}
	}
}

func TestNonFinite(t *testing.T) {
	nan := math.NaN()
	a, b := New(2, 2, []float64{1, nan, 0, math.Inf(1)}), New(2, 2, []float64{1, 0, 0, 1})
	c := New(2, 2, []float64{nan, nan, nan, nan})
	Gemm(1, false, a, false, b, 1, 0, c)
	if c.Data[1] == c.Data[1] || !math.IsInf(c.Data[3], 1) && c.Data[3] == c.Data[3] {
		t.Error(c.Data)
	}
	if ok := Cholesky(1, New(2, 2, []float64{1, 0, nan, 1})); ok != 1 {
		t.Errorf("pivot %d of a matrix with NaN", ok)
	}
}

func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	rng := rand.New(rand.NewPCG(7, 7))
	a, b := gramian[float64](rng, 100, 110, 1), random[float64](rng, 100, 60, 0)
	l, c := a.clone(), random[float64](rng, 100, 60, 0)
	diagonal, x, y := make([]float64, 100), random[float64](rng, 100, 1, 0), random[float64](rng, 100, 1, 0)
	run := func() {
		copy(l.Data, a.Data)
		Cholesky(1, l)
		SolveLower(1, true, l, b)
		Gemm(1, false, l, false, b, 1, 0, c)
		Symm(a, diagonal, b, c)
		Symm(a, diagonal, x, y)
	}
	run()
	if n := testing.AllocsPerRun(20, run); n > 0.5 {
		t.Errorf("%v allocations", n)
	}
}

func TestPreconditions(t *testing.T) {
	m := func(r, c int) Matrix[float32] { return New[float32](r, c, nil) }
	for name, f := range map[string]func(){
		"gemm":    func() { Gemm(1, false, m(2, 3), false, m(2, 3), 1, 0, m(2, 3)) },
		"syrk":    func() { Syrk(1, false, m(2, 3), 1, 0, m(3, 3)) },
		"solve":   func() { SolveLower(1, false, m(2, 2), m(3, 2)) },
		"right":   func() { SolveLowerRight(1, false, m(2, 2), m(2, 3)) },
		"square":  func() { Cholesky(1, m(2, 3)) },
		"data":    func() { New(2, 2, make([]float32, 3)) },
		"pivoted": func() { PivotedCholesky(1, m(2, 2), 0, make([]int, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
