package simd

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"unsafe"
)

//go:generate go -C ../../tools run ./simdgen

// Float is the element type of panels.
type Float interface{ float32 | float64 }

// Rows is the number of rows of a tile and of a row panel.
const Rows = 6

// Columns is the number of columns of a tile and of a column panel. It is 16 for float32
// and 8 for float64, 64 bytes either way.
func Columns[T Float]() int { return 64 / Size[T]() }

// Size is the number of bytes of an element.
func Size[T Float]() int {
	var z T
	return int(unsafe.Sizeof(z))
}

// TileSize is the number of elements of a tile.
func TileSize[T Float]() int { return Rows * Columns[T]() }

// Lanes is the number of sums that [Kernels].Multiply keeps for a row. They fill 32 bytes.
func Lanes[T Float]() int { return Columns[T]() / 2 }

// Leaf is the order of the matrices that [Kernels].Cholesky factors.
const Leaf = 32

// Statistic is the number that a tile computes for a pair of vectors.
type Statistic int

// The statistics, sums over the coordinates.
const (
	Dot        Statistic = iota // Σ a·b
	Squared                     // Σ (a − b)²
	Manhattan                   // Σ |a − b|
	Mismatches                  // Σ [a ≠ b]
	statistics
)

// Func is a function that is applied to every element of a panel. Its parameters p are in
// the Params that come with it.
type Func int

// The functions have their largest errors in units in the last place of the result (see
// TestUlp). Where only an argument a of e^−a is rounded before, that adds up to a further
// ulp for each unit of a.
const (
	// Affine is p0·x + p1.
	Affine Func = iota
	// ExpScaled is e^min(p0·x, 0), and 0 below the normal numbers. Its error is 1.2 ulp in
	// addition to the rounding of p0·x.
	ExpScaled
	// Decay2 is 2^min(x, 0), and 0 below the normal numbers, with error 1.2 ulp.
	Decay2
	// Fall2 is 2^(−p0·x) for p0·x ≥ 0, and 0 below the normal numbers. Its error is 1.2 ulp
	// in addition to the rounding of p0·x. For p0·x < 0 it is unspecified.
	Fall2
	// Matern12 is e^−a, a = √max(p0·x, 0).
	Matern12
	// Matern32 is (1 + a)·e^−a with the same a.
	Matern32
	// Matern52 is (1 + a + a²/3)·e^−a with the same a.
	Matern52
	// RationalQuadratic is (1 + max(p0·x, 0))^p1 for p1 < 0.
	RationalQuadratic
	// Power is (p0·x + p1)^n for 0 ≤ n < 128. See [Params.SetPower].
	Power
	// ArcCosine is (sin θ + (π − θ) cos θ)/π for cos θ = x, with x cut to [−1, 1].
	ArcCosine
	// CosTurns is cos 2πx for every x, with error 2.8 ulp.
	CosTurns
	functions
)

// Params are the numbers that go with a function.
type Params[T Float] [9]T

// SetPower prepares the exponent n of [Power].
func (p *Params[T]) SetPower(n int) {
	if n < 0 || n > 127 {
		panic("simd: precondition: an exponent from 0 to 127")
	}
	for i := range 7 {
		p[2+i] = 0
		if n>>i&1 == 1 {
			p[2+i] = allBits[T]()
		}
	}
}

// allBits is the NaN with every bit set.
func allBits[T Float]() T {
	var v T
	switch v := any(&v).(type) {
	case *float32:
		*v = math.Float32frombits(math.MaxUint32)
	case *float64:
		*v = math.Float64frombits(math.MaxUint64)
	}
	return v
}

// TileFunc computes one row panel against n column panels:
//
//	out[t·step + r·nr + c] = ha[r] + hb[t][c] + statistic over k of a[·][r], b[t][·][c].
type TileFunc[T Float] func(k int, a, ha, b, hb, out *T, step, n int)

// BlocksFunc does Tile, Func and Multiply in one, for several row panels. The tiles of a row
// panel follow each other, step elements after those of the last, and u has the sums of one
// row panel after the other.
type BlocksFunc[T Float] func(k int, a, ha, b, hb, out *T, step, n, panels int, v, u, par *T)

// Kernels are the innermost loops for one element type on one kind of machine. All memory
// is packed as doc.go shows. Counts n and panels are positive, and k is not negative.
// Pointers of panels that are only read may have any value if k is 0.
//
// No call allocates. A call must stay well below 0.1 ms, because it cannot be interrupted.
// Callers keep the product of n, k and the row panels below about 100,000.
type Kernels[T Float] struct {
	// Path is the name of the implementation, "avx512", "avx2" or "portable".
	Path string
	// Lanes is the number of sums that Blocks keeps for a row.
	Lanes int
	// Panels is the number of column panels that kernels take side by side, which are best
	// in cache together. They take any number, and the results are the same to the bit.
	Panels int
	// L2 is the size in bytes of the second-level cache that blocks of operands are made
	// for. It belongs to the path and not to the machine, because the size of blocks
	// determines the order of summation.
	L2 int
	// Tile computes statistics of pairs.
	Tile [statistics]TileFunc[T]
	// Blocks finishes tiles in registers, for some pairs. It is nil for others. The tiles
	// are those of Tile and Func to the bit.
	Blocks [statistics][functions]BlocksFunc[T]
	// Func applies a function in place to n tiles.
	Func [functions]func(x *T, n int, par *T)
	// Multiply adds to u[r][lane], 32 bytes for each row, the product of a row panel of n
	// tiles with v. The caller sums over lanes. All paths in assembly have the same bits.
	Multiply func(k, v, u *T, n int)
	// MultiplyT adds the product of the transposed row panel with u to w.
	MultiplyT func(k, u, w *T, n int)
	// MultiplyRows and AddRows are Multiply and MultiplyT for 6 rows of a matrix in place,
	// step elements apart. The count n is of pieces of 64 bytes. AddRow is AddRows for the
	// first of them.
	MultiplyRows func(a *T, step int, v, u *T, n int)
	AddRows      func(a *T, step int, u, w *T, n int)
	AddRow       func(a *T, step int, u, w *T, n int)
	// Squares adds the sums over k of the squares of a column panel to s.
	Squares func(k int, b, s *T)
	// Gemm sets c[r·ldc + j] = alpha·Σ a[l][r]·b[l][j] for one row panel and n column
	// panels, and adds the old value if keep is not 0. A column panel that is needed later
	// is at next, and is fetched into cache.
	Gemm func(k int, a, b, next, c *T, ldc, n, keep int, alpha T)
	// Trsm sets c = L⁻¹(c − Σ a[l]·b[l]) on n tiles. The next b and c are step elements further.
	// The 6×6 triangle L follows a as six more columns, with its diagonal inverted.
	Trsm func(k int, a, b, c *T, step, n int)
	// Transpose sets dst[l·step + r] = src[r·ld + l] for 4 rows r and 4n columns l.
	Transpose func(dst *T, step int, src *T, ld, n int)
	// Pieces copies n runs of a tile's columns, the next dstStep and srcStep elements further.
	Pieces func(dst *T, dstStep int, src *T, srcStep, n int)
	// Cholesky factors the Leaf×Leaf matrix u = UᵀU in its upper triangle, and overwrites
	// the part below. It stops at the first pivot that is not positive, and sets ok to the
	// number of pivots before it.
	Cholesky func(u *T, ok *int)
	// Dots adds the products of 4 rows of a matrix in place, step elements apart, with x to
	// s[r][c], over n groups of 4 columns. Steps adds u[3]·(row 3) to y, then row 2, and so
	// on. ColumnDots adds the products of the columns of a column panel with w to s[i][c],
	// over n groups of 4 rows i, and ColumnSquares those of the columns with themselves. All
	// round every product, as gonum's Dot and AddScaled do, so that their callers have the
	// bits that they had with gonum. They are nil for float32, and for the portable path.
	Dots          func(a *T, step int, x, s *T, n int)
	Steps         func(a *T, step int, u, y *T, n int)
	ColumnDots    func(n int, b, w, s *T)
	ColumnSquares func(n int, b, s *T)
	// Drain adds n groups of 16 sums x to w, and clears x.
	Drain func(w *float64, x *T, n int)

	peak func(n int)
}

// wanted is the path that the environment names, or empty.
var wanted = os.Getenv(variable)

const variable = "BKB_SIMD"

// These are the kernels in use. They are chosen once, when the program starts, by the
// processor and the environment, and never change.
var (
	active32 = choose(Paths[float32](), wanted)
	active64 = choose(Paths[float64](), wanted)
)

// choose returns the path of a name, or the best if there is none. See [Check].
func choose[T Float](paths []*Kernels[T], name string) *Kernels[T] {
	for _, k := range paths {
		if k.Path == name {
			return k
		}
	}
	return paths[0]
}

// Check returns an [*EnvironmentError] if BKB_SIMD names a path that does not exist.
// Programs call it when they start, because a package must not end a program.
func Check() error { return check(Paths[float64](), wanted) }

func check[T Float](paths []*Kernels[T], name string) error {
	e := &EnvironmentError{Value: name}
	for _, k := range paths {
		if name == "" || name == k.Path {
			return nil
		}
		e.Paths = append(e.Paths, k.Path)
	}
	return e
}

// EnvironmentError reports that BKB_SIMD names no path that this build has for this machine.
type EnvironmentError struct {
	Value string
	Paths []string // the existing ones
}

func (e *EnvironmentError) Error() string {
	return fmt.Sprintf("%s is %q in the environment, want one of %s, or nothing for the best of them",
		variable, e.Value, strings.Join(e.Paths, ", "))
}

// For returns the kernels in use. Do not change them.
func For[T Float]() *Kernels[T] {
	if k, ok := any(active32).(*Kernels[T]); ok {
		return k
	}
	return any(active64).(*Kernels[T])
}

// Paths returns the kernels that this machine can run, from the best to the portable ones.
func Paths[T Float]() []*Kernels[T] { return append(machine[T](), portable[T]()) }

// Apply applies f to all of x. An element's result does not depend on its position.
func Apply[T Float](f Func, x []T, par *Params[T]) { For[T]().Apply(f, x, par) }

// Apply applies f to all of x.
func (k *Kernels[T]) Apply(f Func, x []T, par *Params[T]) {
	size := TileSize[T]()
	n := len(x) / size
	const most = 256 // tiles of one call
	for i := 0; i < n; i += most {
		k.Func[f](&x[i*size], min(most, n-i), &par[0])
	}
	rest := x[n*size:]
	if len(rest) == 0 {
		return
	}
	t := takeTile[T]()
	clear(t[copy(t[:], rest):])
	k.Func[f](&t[0], 1, &par[0])
	copy(rest, t[:])
	giveTile(t)
}

// Tiles for the ends of slices.
var tiles32, tiles64 = sync.Pool{New: func() any { return new([96]float32) }}, sync.Pool{New: func() any { return new([96]float64) }}

func takeTile[T Float]() *[96]T {
	if Size[T]() == 4 {
		return tiles32.Get().(*[96]T)
	}
	return tiles64.Get().(*[96]T)
}

func giveTile[T Float](t *[96]T) {
	if t, ok := any(t).(*[96]float32); ok {
		tiles32.Put(t)
		return
	}
	tiles64.Put(any(t))
}

// Aligned returns n zeros that start at a multiple of 64 bytes, a cache line.
func Aligned[T Float](n int) []T {
	const line = 64
	size := Size[T]()
	b := make([]T, n+line/size)
	off := 0
	if r := int(uintptr(unsafe.Pointer(&b[0])) % line); r != 0 {
		off = (line - r) / size
	}
	return b[off : off+n : off+n]
}

// Sized returns n elements of unspecified value and keeps them in *s. It allocates them, as
// [Aligned] does, if the memory of *s is too small.
func Sized[T Float](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = Aligned[T](n)
	}
	*s = (*s)[:n]
	return *s
}

// Peak makes n rounds of 12 independent multiply-adds of vectors, if the path in use has
// any, and returns their flops. It exists to be timed.
func Peak[T Float](n int) (flops float64) {
	k := For[T]()
	if k.peak == nil {
		return 0
	}
	k.peak(n)
	return float64(n) * 2 * 12 * float64(k.Lanes)
}
