package panel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Columns are M packed vectors y_1 … y_M with a function. They are one side of the matrix
// K, k(x_i, y_j). They are read-only and safe for concurrent use.
type Columns[T Float] struct {
	f     Function
	plan  plan
	par   *simd.Params[T]
	scale float64 // the factor of f
	m, d  int
	tiles int       // column panels
	b     []T       // [tiles][d][nr]
	start []T       // [tiles][nr], where the sums start
	norms []float64 // |y_j| if the function asks for norms
	mean  []float64 // subtracted from all inputs
	chunk int       // tiles whose columns fill a quarter of L2

	// With a reach, far has the same with direct differences. It is for rows with |a|²/2
	// beyond limit, and for the tiles that have a column beyond.
	limit  T
	far    *Columns[T]
	beyond []bool // [tiles], or nil if there is none
}

// Pack packs the rows of y as columns, twice if f has a Reach. The values must be finite.
func Pack[T, S Float](f Function, y Rows[S]) *Columns[T] {
	c := packColumns[T](f, y)
	if !f.Expand || f.Reach == 0 {
		return c
	}
	c.limit = T(f.Reach * f.unit())
	f.Expand = false
	if c.findBeyond() > c.tiles/2 {
		return packColumns[T](f, y)
	}
	c.far = packColumns[T](f, y)
	return c
}

// findBeyond marks the tiles with a column out of reach, and returns how many they are.
func (c *Columns[T]) findBeyond() (n int) {
	nr := simd.Columns[T]()
	beyond := make([]bool, c.tiles)
	for t := range beyond {
		for _, h := range c.start[t*nr:][:nr] {
			beyond[t] = beyond[t] || !(-h <= c.limit)
		}
		if beyond[t] {
			n++
		}
	}
	if n > 0 {
		c.beyond = beyond
	}
	return n
}

// alike returns how many tiles from t0 on, at most most, are all in reach or all beyond.
func (c *Columns[T]) alike(t0, most int) int {
	if c.beyond == nil {
		return most
	}
	n := 1
	for n < most && c.beyond[t0+n] == c.beyond[t0] {
		n++
	}
	return n
}

// packColumns is Pack without regard to a reach.
func packColumns[T, S Float](f Function, y Rows[S]) *Columns[T] {
	y.check()
	nr := simd.Columns[T]()
	c := &Columns[T]{
		f: f, plan: f.plan(y.D, simd.Size[T]() == 4), par: parameters[T](&f),
		scale: f.Factor, m: y.N, d: y.D, tiles: (y.N + nr - 1) / nr,
	}
	if f.Factor == 0 {
		c.scale = 1
	}
	if f.Phase != nil && len(f.Phase) != y.N {
		panic("panel: precondition: one phase for each column")
	}
	c.mean = make([]float64, y.D)
	if c.plan.center {
		for i := range y.N {
			for l, v := range y.row(i) {
				c.mean[l] += float64(v) / float64(y.N)
			}
		}
	}
	if c.plan.unit {
		c.norms = make([]float64, c.padded())
	}
	c.b, c.start = simd.Aligned[T](c.tiles*nr*max(1, y.D)), simd.Aligned[T](c.tiles*nr)
	kern := simd.For[T]()
	c.chunk = kern.L2 / 4 / max(1, 64*y.D)
	c.chunk = max(kern.Panels, min(c.tiles, c.chunk/kern.Panels*kern.Panels))
	flat := make([]T, nr*y.D)
	for j := 0; j < y.N; j += nr {
		var norms []float64
		if c.plan.unit {
			norms = c.norms[j:]
		}
		packPanel(c, y, j, min(nr, y.N-j), nr, c.b[j*y.D:], c.start[j:], norms, flat)
	}
	for j, phase := range f.Phase {
		c.start[j] = T(phase)
	}
	return c
}

// packPanel packs n ≤ width rows of x from i on side by side, with their starting sums and,
// if the function needs them, their norms. The last row replaces missing ones, so that no
// finite number becomes infinite.
func packPanel[T, S Float](c *Columns[T], x Rows[S], i, n, width int, dst, start []T, norms []float64, flat []T) {
	d := c.d
	for r := range width {
		row, v := flat[r*d:][:d], x.row(i+min(r, n-1))
		if c.plan.unit {
			norms[r] = normalise(c.plan.scale, v, row)
		} else {
			for l, e := range v {
				row[l] = T((float64(e) - c.mean[l]) * c.plan.scale[l])
			}
		}
		if c.plan.half {
			start[r] = halfSquare(row)
		}
	}
	interleave(simd.For[T](), dst[:width*d], flat, d, width)
}

// normalise divides a scaled vector by its norm, unless that is 0.
func normalise[T, S Float](scale []float64, v []S, out []T) (norm float64) {
	at := func(l int) float64 { return float64(v[l]) * scale[l] }
	for l := range v {
		norm += at(l) * at(l)
	}
	norm = math.Sqrt(norm)
	for l := range v {
		e := at(l)
		if norm > 0 {
			e /= norm
		}
		out[l] = T(e)
	}
	return norm
}

// halfSquare is −|a|²/2 of a packed vector, as it was rounded.
func halfSquare[T Float](a []T) T {
	var h0, h1 float64
	l := 0
	for ; l+2 <= len(a); l += 2 {
		h0 += float64(a[l]) * float64(a[l])
		h1 += float64(a[l+1]) * float64(a[l+1])
	}
	if l < len(a) {
		h0 += float64(a[l]) * float64(a[l])
	}
	return T(-(h0 + h1) / 2)
}

// padded is the length of a vector over columns with its padding.
func (c *Columns[T]) padded() int { return c.tiles * simd.Columns[T]() }

// Height returns how many rows of K fill about half of L2. This is the best number of rows
// for a [Block], a multiple of 6 from 12 to 96. It depends only on M.
func (c *Columns[T]) Height() int {
	rows := simd.For[T]().L2 / 16 * 7 / max(1, c.padded()*simd.Size[T]()) / simd.Rows * simd.Rows
	return max(2*simd.Rows, min(rows, 16*simd.Rows))
}

// Vectors are the columns of an M×n matrix v, packed for products from the
// right. They are read-only once set.
type Vectors[T Float] struct {
	c    *Columns[T]
	n    int
	data []T // [n][padded]
}

// Set takes the row-major M×n matrix v, and keeps memory of an earlier use.
func (w *Vectors[T]) Set(c *Columns[T], v []float64, n int) {
	if len(v) != c.m*n {
		panic("panel: precondition: v is M×n")
	}
	size := c.padded()
	w.c, w.n = c, n
	clear(simd.Sized(&w.data, n*size))
	for q := range n {
		to := w.data[q*size:][:c.m]
		for j := range to {
			x := v[j*n+q] * c.scale
			if c.norms != nil {
				x *= c.norms[j]
			}
			to[j] = T(x)
		}
	}
}

// Sum is an M×n matrix of sums Kᵀt, in float64.
type Sum[T Float] struct {
	c    *Columns[T]
	n    int
	data []float64 // [n][padded]
}

// Reset makes the sum 0, for n columns, and keeps memory of an earlier use.
func (s *Sum[T]) Reset(c *Columns[T], n int) {
	size := c.padded()
	s.c, s.n = c, n
	clear(simd.Sized(&s.data, n*size))
}

// AddTo adds the sum to the row-major M×n matrix w.
func (s *Sum[T]) AddTo(w []float64) {
	size := s.c.padded()
	for q := range s.n {
		for j, v := range s.data[q*size:][:s.c.m] {
			if s.c.norms != nil {
				v *= s.c.norms[j]
			}
			w[j*s.n+q] += v * s.c.scale
		}
	}
}
