package simd

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// This is the conformance suite. It compares the memory written by a kernel of any path,
// including the guards around it, with that of the portable one.

// arena is memory for one operand between guards that must not change.
type arena[T Float] struct{ all, in []T }

const guard = 32

func newArena[T Float](rng *rand.Rand, n int, hostile bool) arena[T] {
	a := arena[T]{all: make([]T, n+2*guard)}
	for i := range a.all {
		a.all[i] = T(rng.NormFloat64())
		if hostile && rng.IntN(20) == 0 {
			// No number is included whose square overflows, because with fused operations
			// it would not.
			special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1e-310, 1e15}
			a.all[i] = T(special[rng.IntN(len(special))])
		}
	}
	a.in = a.all[guard : guard+n]
	return a
}

// p returns the operand as a kernel takes it.
func (a arena[T]) p() *T { return &a.all[guard] }

// part returns n elements from i on as an operand, without guards of its own.
func (a arena[T]) part(i, n int) arena[T] {
	all := a.all[i : i+n+2*guard]
	return arena[T]{all, all[guard : guard+n]}
}

func (a arena[T]) clone() arena[T] {
	all := append([]T(nil), a.all...)
	return arena[T]{all, all[guard : len(all)-guard]}
}

// same fails unless got is want up to tol, relative to scale, and NaN and infinite where
// want is.
func same[T Float](t *testing.T, what string, got, want []T, tol, scale float64) {
	t.Helper()
	for i, w := range want {
		g := got[i]
		if g == w || g != g && w != w {
			continue
		}
		if d := math.Abs(float64(g) - float64(w)); !(d <= tol*scale*max(1, math.Abs(float64(w)))) || math.IsInf(float64(w), 0) {
			t.Fatalf("%s: element %d of %d is %g, want %g", what, i-guard, len(want)-2*guard, g, w)
		}
	}
}

func epsilon[T Float]() float64 {
	if Size[T]() == 4 {
		return 0x1p-23
	}
	return 0x1p-52
}

// depths returns the numbers of coordinates to test a path with. An interpreter, which is slow,
// takes the small ones.
func depths[T Float](k *Kernels[T], all ...int) []int {
	if strings.HasPrefix(k.Path, "interpreted") {
		return slices.DeleteFunc(all, func(n int) bool { return n > 9 })
	}
	return all
}

func TestKernels(t *testing.T) {
	onPaths(t, testKernels[float64])
	onPaths(t, testKernels[float32])
}

func testKernels[T Float](t *testing.T, k *Kernels[T]) {
	compareKernels(t, k, portable[T](), epsilon[T]())
}

// compareByFours compares the kernels that take 4 rows at a time with their definitions,
// to the bit.
func compareByFours[T Float](t *testing.T, k *Kernels[T], name string, n, more int, operand func(int) arena[T]) {
	t.Helper()
	step := 4*n + more
	a, x, u := operand(3*step+4*n), operand(4*n), operand(4)
	sums, y := operand(16), operand(4*n)
	refSums, refY := sums.clone(), y.clone()
	for l := range 4 * n {
		for r := range 4 {
			refSums.in[4*r+l%4] += T(a.in[r*step+l] * x.in[l])
		}
		for r := 3; r >= 0; r-- {
			refY.in[l] += T(u.in[r] * a.in[r*step+l])
		}
	}
	k.Dots(a.p(), step, x.p(), sums.p(), n)
	same(t, "dots "+name, sums.all, refSums.all, 0, 0)
	k.Steps(a.p(), step, u.p(), y.p(), n)
	same(t, "steps "+name, y.all, refY.all, 0, 0)

	nr := Columns[T]()
	b := operand(4 * n * nr)
	products, squares := operand(4*nr), operand(4*nr)
	refProducts, refSquares := products.clone(), squares.clone()
	for l := range 4 * n {
		for c, v := range b.in[l*nr:][:nr] {
			refProducts.in[l%4*nr+c] += T(v * x.in[l])
			refSquares.in[l%4*nr+c] += T(v * v)
		}
	}
	k.ColumnDots(n, b.p(), x.p(), products.p())
	same(t, "columnDots "+name, products.all, refProducts.all, 0, 0)
	k.ColumnSquares(n, b.p(), squares.p())
	same(t, "columnSquares "+name, squares.all, refSquares.all, 0, 0)
}

// compareKernels fails unless the results of two paths differ by rounding errors at most,
// with eps as the unit, or not at all if that is 0.
func compareKernels[T Float](t *testing.T, k, want *Kernels[T], eps float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, uint64(Size[T]())))
	nr := Columns[T]()
	for _, depth := range depths(k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 33, 90, 300) {
		for _, n := range []int{1, 2, 3, 4, 5, 9} {
			for _, hostile := range []bool{false, true} {
				name := fmt.Sprintf("k=%d n=%d hostile=%v", depth, n, hostile)
				scale := 30 * float64(depth+2)
				operand := func(n int) arena[T] { return newArena[T](rng, n, hostile) }
				a, b := operand((depth+Rows)*Rows), operand(n*depth*nr)
				ha, hb := operand(Rows), operand(n*nr)
				for s := range want.Tile {
					step := TileSize[T]() + depth%3*nr
					out := operand((n-1)*step + TileSize[T]())
					ref := out.clone()
					k.Tile[s](depth, a.p(), ha.p(), b.p(), hb.p(), out.p(), step, n)
					want.Tile[s](depth, a.p(), ha.p(), b.p(), hb.p(), ref.p(), step, n)
					same(t, fmt.Sprint("tile ", s, " ", name), out.all, ref.all, eps, scale)
				}
				panel := operand(n * Rows * nr)
				v, w := operand(n*nr), operand(n*nr)
				lanes := operand(Rows * Lanes[T]())
				sums := lanes.clone()
				k.Multiply(panel.p(), v.p(), lanes.p(), n)
				want.Multiply(panel.p(), v.p(), sums.p(), n)
				same(t, "multiply "+name, addLanes(lanes).all, addLanes(sums).all, eps, 30*float64(n*nr))
				ref := w.clone()
				k.MultiplyT(panel.p(), ha.p(), w.p(), n)
				want.MultiplyT(panel.p(), ha.p(), ref.p(), n)
				same(t, "multiplyT "+name, w.all, ref.all, eps, 60)

				step := n*nr + depth%3
				rows := operand((Rows-1)*step + n*nr)
				lanes = operand(Rows * Lanes[T]())
				sums = lanes.clone()
				k.MultiplyRows(rows.p(), step, v.p(), lanes.p(), n)
				want.MultiplyRows(rows.p(), step, v.p(), sums.p(), n)
				same(t, "multiplyRows "+name, addLanes(lanes).all, addLanes(sums).all, eps, 30*float64(n*nr))
				w = operand(n * nr)
				ref = w.clone()
				k.AddRows(rows.p(), step, ha.p(), w.p(), n)
				want.AddRows(rows.p(), step, ha.p(), ref.p(), n)
				same(t, "addRows "+name, w.all, ref.all, eps, 60)
				k.AddRow(rows.p(), step, hb.p(), w.p(), n)
				want.AddRow(rows.p(), step, hb.p(), ref.p(), n)
				same(t, "addRow "+name, w.all, ref.all, eps, 60)

				if k.Dots != nil {
					compareByFours(t, k, name, n, depth%3, operand)
				}

				w = operand(nr)
				ref = w.clone()
				k.Squares(depth, b.p(), w.p())
				want.Squares(depth, b.p(), ref.p())
				sum := 1.0 // of the squared numbers
				for _, v := range b.in {
					if v2 := float64(v) * float64(v); v2 < math.Inf(1) {
						sum += v2
					}
				}
				same(t, "squares "+name, w.all, ref.all, eps, sum)

				for keep := range 2 {
					ldc := n*nr + depth%3
					c := operand((Rows-1)*ldc + n*nr)
					ref := c.clone()
					k.Gemm(depth, a.p(), b.p(), b.p(), c.p(), ldc, n, keep, -0.75)
					want.Gemm(depth, a.p(), b.p(), b.p(), ref.p(), ldc, n, keep, -0.75)
					same(t, "gemm "+name, c.all, ref.all, eps, scale)
				}

				ld, step := 4*n+depth%5, 4+depth%3
				src, dst := operand(3*ld+4*n), operand(4*n*step)
				ref = dst.clone()
				k.Transpose(dst.p(), step, src.p(), ld, n)
				want.Transpose(ref.p(), step, src.p(), ld, n)
				same(t, "transpose "+name, dst.all, ref.all, 0, 0)

				from, to := nr+depth%3, nr+depth%5
				src, dst = operand(n*from), operand(n*to)
				ref = dst.clone()
				k.Pieces(dst.p(), to, src.p(), from, n)
				want.Pieces(ref.p(), to, src.p(), from, n)
				same(t, "pieces "+name, dst.all, ref.all, 0, 0)
			}
		}
	}
	for _, n := range []int{1, 2, 7} {
		x, sums := newArena[T](rng, 16*n, true), newArena[float64](rng, 16*n, false)
		xr, ref := x.clone(), sums.clone()
		k.Drain(sums.p(), x.p(), n)
		want.Drain(ref.p(), xr.p(), n)
		same(t, "drain", sums.all, ref.all, 0, 0)
		same(t, "drained", x.all, xr.all, 0, 0)
	}
}

// addLanes returns the sums over the lanes of 6 rows, between the same guards.
func addLanes[T Float](u arena[T]) arena[T] {
	n := len(u.in) / Rows
	all := append([]T(nil), u.all[:guard]...)
	for r := range Rows {
		s := T(0)
		for _, v := range u.in[r*n:][:n] {
			s += v
		}
		all = append(all, s)
	}
	all = append(all, u.all[guard+len(u.in):]...)
	return arena[T]{all, all[guard : guard+Rows]}
}

func TestPathsAgree(t *testing.T) {
	t.Run("float64", testPathsAgree[float64])
	t.Run("float32", testPathsAgree[float32])
}

// testPathsAgree compares the paths in assembly to the bit. Suggestions thus do not depend
// on the width of the registers. Only the sums of Blocks and Decay2 do, which suggestions do
// not use.
func testPathsAgree[T Float](t *testing.T) {
	all := testedPaths[T](t)
	all = all[:len(all)-1] // without the portable one
	for _, k := range all[1:] {
		compareKernels(t, all[0], k, 0)
		compareTrsm(t, all[0], k, 0)
		compareFunctions(t, all[0], k, Decay2)
		compareCholesky(t, all[0], k)
	}
}

func compareFunctions[T Float](t *testing.T, k, want *Kernels[T], except ...Func) {
	t.Helper()
	rng := rand.New(rand.NewPCG(10, 10))
	for f := range functions {
		if slices.Contains(except, f) {
			continue
		}
		par := newArena[T](rng, len(Params[T]{}), false)
		p := (*Params[T])(par.in)
		*p = Params[T]{T(0.3 * rng.Float64()), -1.5}
		p.SetPower(5)
		for _, n := range []int{1, 2, 5} {
			x := newArena[T](rng, n*TileSize[T](), true)
			copy(x.in, floats[T](n*TileSize[T]()/2, 100))
			ref := x.clone()
			k.Func[f](x.p(), n, par.p())
			want.Func[f](ref.p(), n, par.p())
			same(t, fmt.Sprint("function ", f, " n=", n), x.all, ref.all, 0, 0)
		}
	}
}

func compareCholesky[T Float](t *testing.T, k, want *Kernels[T]) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 11))
	for _, bad := range []int{Leaf, 0, 9, 31} {
		u := newArena[T](rng, Leaf*Leaf, false)
		for i := range Leaf {
			u.in[i*Leaf+i] += 40
			if i == bad {
				u.in[i*Leaf+i] = -400
			}
		}
		ref := u.clone()
		ok, refOK := new(int), new(int)
		k.Cholesky(u.p(), ok)
		want.Cholesky(ref.p(), refOK)
		if *ok != bad || *refOK != bad {
			t.Errorf("%d and %d pivots, want %d", *ok, *refOK, bad)
		}
		for i := range *ok {
			same(t, "cholesky", u.in[i*Leaf+i:(i+1)*Leaf], ref.in[i*Leaf+i:(i+1)*Leaf], 0, 0)
		}
		same(t, "cholesky before", u.all[:guard], ref.all[:guard], 0, 0)
		same(t, "cholesky after", u.all[guard+Leaf*Leaf:], ref.all[guard+Leaf*Leaf:], 0, 0)
	}
}

func TestBlocks(t *testing.T) {
	onPaths(t, testBlocks[float64])
	onPaths(t, testBlocks[float32])
}

// testBlocks compares with the three steps of the same path, which the other tests compare
// with the portable one. Tiles are equal to the bit, and sums are in another order.
func testBlocks[T Float](t *testing.T, k *Kernels[T]) {
	rng := rand.New(rand.NewPCG(7, uint64(Size[T]())))
	nr, size, found := Columns[T](), TileSize[T](), 0
	for s := range k.Blocks {
		for f, blocks := range k.Blocks[s] {
			if blocks == nil {
				continue
			}
			found++
			for _, depth := range depths(k, 0, 1, 2, 3, 4, 5, 7, 8, 18, 33, 90, 300) {
				for _, n := range []int{1, 2, 3, 4, 5, 9} {
					panels := 1 + rng.IntN(3)
					hostile := rng.IntN(2) == 0
					operand := func(n int) arena[T] { return newArena[T](rng, n, hostile) }
					a, b, ha, hb := operand(panels*depth*Rows), operand(n*depth*nr), operand(panels*Rows), operand(n*nr)
					v, u := operand(n*nr), operand(panels*Rows*k.Lanes)
					step := n*size + rng.IntN(3)*nr
					out := operand((panels-1)*step + n*size)
					par := newArena[T](rng, len(Params[T]{}), false)
					copy(par.in, []T{T(rng.Float64() / float64(depth+1)), T(rng.NormFloat64())})
					refU, refOut := u.clone(), out.clone()
					blocks(depth, a.p(), ha.p(), b.p(), hb.p(), out.p(), step, n, panels, v.p(), u.p(), par.p())
					name := fmt.Sprintf("statistic %d function %d k=%d n=%d panels=%d hostile=%v", s, f, depth, n, panels, hostile)
					for p := range panels {
						to, sums := refOut.part(p*step, n*size), newArena[T](rng, Rows*Lanes[T](), false)
						clear(sums.in)
						for r, v := range addLanes(refU.part(p*Rows*k.Lanes, Rows*k.Lanes)).in {
							sums.in[r*Lanes[T]()] = v
						}
						k.Tile[s](depth, a.part(p*depth*Rows, depth*Rows).p(), ha.part(p*Rows, Rows).p(), b.p(), hb.p(), to.p(), size, n)
						k.Func[f](to.p(), n, par.p())
						k.Multiply(to.p(), v.p(), sums.p(), n)
						got, want := addLanes(u.part(p*Rows*k.Lanes, Rows*k.Lanes)), addLanes(sums)
						if hostile {
							sameKind(t, name+" sums", got.in, want.in)
						} else {
							same(t, name+" sums", got.in, want.in, epsilon[T](), 30*float64(n*nr))
						}
					}
					same(t, name, out.all, refOut.all, 0, 0)
					same(t, name+" before the sums", u.all[:guard], refU.all[:guard], 0, 0)
					same(t, name+" after the sums", u.all[guard+len(u.in):], refU.all[guard+len(u.in):], 0, 0)
				}
			}
		}
	}
	if found == 0 && k.Path != "portable" {
		t.Error("no tile is finished in registers")
	}
}

// sameKind fails unless NaN is where NaN is, and ±Inf where ±Inf is.
func sameKind[T Float](t *testing.T, what string, got, want []T) {
	t.Helper()
	for i, w := range want {
		g := float64(got[i])
		if w := float64(w); math.IsNaN(w) != math.IsNaN(g) || (math.IsInf(w, 0) || math.IsInf(g, 0)) && w != g {
			t.Fatalf("%s: element %d is %g, want %g", what, i-guard, got[i], w)
		}
	}
}

func TestTrsmKernel(t *testing.T) {
	onPaths(t, testTrsmKernel[float64])
	onPaths(t, testTrsmKernel[float32])
}

func testTrsmKernel[T Float](t *testing.T, k *Kernels[T]) {
	compareTrsm(t, k, portable[T](), epsilon[T]())
}

func compareTrsm[T Float](t *testing.T, k, want *Kernels[T], eps float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(6, 6))
	nr := Columns[T]()
	for _, depth := range []int{0, 1, 3, 4, 6, 12, 96} {
		for _, n := range []int{1, 2, 4, 5, 9} {
			a := newArena[T](rng, (depth+Rows)*Rows, false)
			for i := range a.in[depth*Rows:] { // a well-conditioned triangle
				a.in[depth*Rows+i] *= 0.3
			}
			// As in a panel, c follows b.
			step := (depth+Rows)*nr + n%3
			bc := newArena[T](rng, (n-1)*step+(depth+Rows)*nr, false)
			ref := bc.clone()
			k.Trsm(depth, a.p(), bc.p(), &bc.all[guard+depth*nr], step, n)
			want.Trsm(depth, a.p(), ref.p(), &ref.all[guard+depth*nr], step, n)
			same(t, fmt.Sprint("trsm k=", depth, " n=", n), bc.all, ref.all, eps, 30*float64(depth+Rows))
		}
	}
}

func TestCholeskyKernel(t *testing.T) {
	onPaths(t, testCholeskyKernel[float64])
	onPaths(t, testCholeskyKernel[float32])
}

func testCholeskyKernel[T Float](t *testing.T, k *Kernels[T]) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, bad := range []int{Leaf, 0, 1, 7, 8, 17, 31} { // the pivot that fails
		for _, pivot := range []float64{-1, 0, math.NaN()} {
			u := newArena[T](rng, Leaf*Leaf, false)
			a := make([]float64, Leaf*Leaf)
			g := make([]float64, Leaf*Leaf)
			for i := range g {
				g[i] = rng.NormFloat64()
			}
			for i := range Leaf {
				for j := range Leaf {
					s := 0.0
					for l := range Leaf {
						s += g[i*Leaf+l] * g[j*Leaf+l]
					}
					if i == j {
						s += 10
					}
					if bad < Leaf && (i == bad || j == bad) {
						s = 0
						if i == j {
							s = pivot
						}
					}
					a[i*Leaf+j] = s
					u.in[i*Leaf+j] = T(s)
				}
			}
			before := u.clone()
			ok := -1
			k.Cholesky(u.p(), &ok)
			if ok != bad {
				t.Fatalf("%d pivots, want %d", ok, bad)
			}
			same(t, "guard", u.all[:guard], before.all[:guard], 0, 0)
			same(t, "guard", u.all[len(u.all)-guard:], before.all[len(u.all)-guard:], 0, 0)
			for i := range ok {
				for j := i; j < ok; j++ {
					s := 0.0
					for l := range i + 1 {
						s += float64(u.in[l*Leaf+i]) * float64(u.in[l*Leaf+j])
					}
					if math.Abs(s-a[i*Leaf+j]) > 200*epsilon[T]()*math.Sqrt(a[i*Leaf+i]*a[j*Leaf+j]) {
						t.Fatalf("UᵀU differs at %d, %d: %g, want %g", i, j, s, a[i*Leaf+j])
					}
				}
			}
		}
	}
}

// TestApplyPlaces checks that the result for an element does not depend on its position,
// and that no other memory is touched.
func TestApplyPlaces(t *testing.T) {
	onPaths(t, testApplyPlaces[float64])
	onPaths(t, testApplyPlaces[float32])
}

func testApplyPlaces[T Float](t *testing.T, k *Kernels[T]) {
	rng := rand.New(rand.NewPCG(9, 9))
	for f := range functions {
		par := Params[T]{0.3, -1.5}
		par.SetPower(5)
		for _, n := range []int{0, 1, 5, 47, 48, 95, 96, 97, 300} {
			x := newArena[T](rng, n, true)
			y := x.clone()
			k.Apply(f, y.in, &par)
			for i := range x.in {
				one := []T{x.in[i]}
				k.Apply(f, one, &par)
				x.in[i] = one[0]
			}
			same(t, fmt.Sprint("function ", f), y.all, x.all, 0, 0)
		}
	}
}

func TestChoose(t *testing.T) {
	all := Paths[float64]()
	if all[len(all)-1].Path != "portable" {
		t.Fatal("the portable path must come last")
	}
	for _, k := range all {
		if got := choose(all, k.Path); got != k {
			t.Errorf("BKB_SIMD=%s chose %s", k.Path, got.Path)
		}
		if err := check(all, k.Path); err != nil {
			t.Error(err)
		}
	}
	if choose(all, "") != all[0] || check(all, "") != nil {
		t.Error("the default is not the first")
	}
	var bad *EnvironmentError
	if err := check(all, "typo"); !errors.As(err, &bad) || bad.Value != "typo" || len(bad.Paths) != len(all) {
		t.Errorf("BKB_SIMD=typo: %v", err)
	}
	if choose(all, "typo") != all[0] {
		t.Error("a typo does not choose the first")
	}
}

// TestEnvironment fails if the path for which these tests are run is missing.
func TestEnvironment(t *testing.T) {
	if err := Check(); err != nil {
		t.Error(err)
	}
}

func TestNoAllocation(t *testing.T) {
	x := make([]float32, 1000)
	par := &Params[float32]{-1}
	if n := testing.AllocsPerRun(100, func() { Apply(ExpScaled, x, par) }); n > 0.5 {
		t.Errorf("%v allocations", n)
	}
}
