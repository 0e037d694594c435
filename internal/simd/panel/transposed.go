package panel

import "github.com/bkbtuner/bkb/internal/simd"

// Transposed has the vectors of Columns as rows, to evaluate Kᵀ = k(Y, X) with the inputs X
// as columns. Triangular systems with K as their right-hand sides are solved in this
// layout. It is read-only and safe for concurrent use.
type Transposed[T Float] struct {
	c     *Columns[T]
	a     []T // [panels][d][6]
	start []T // [panels][6]
}

// NewTransposed packs y as rows, which c was packed from. For functions with norms, phases
// or a reach, ok is false.
func NewTransposed[T, S Float](c *Columns[T], y Rows[S]) (t *Transposed[T], ok bool) {
	y.check()
	if y.N != c.m || y.D != c.d {
		panic("panel: precondition: y is what the columns were packed from")
	}
	if c.plan.unit || c.f.Phase != nil || c.far != nil {
		return nil, false
	}
	padded := (y.N + simd.Rows - 1) / simd.Rows * simd.Rows
	t = &Transposed[T]{c: c, a: simd.Aligned[T](padded * max(1, c.d)), start: simd.Aligned[T](padded)}
	flat := make([]T, simd.Rows*c.d)
	for j := 0; j < y.N; j += simd.Rows {
		packPanel(c, y, j, min(simd.Rows, y.N-j), simd.Rows, t.a[j*c.d:], t.start[j:], nil, flat)
	}
	return t, true
}

// Buffer returns the number of elements in the buffer of [EvaluateTransposed].
func (t *Transposed[T]) Buffer() int {
	return simd.Columns[T]() * (t.c.d + simd.For[T]().Panels*(t.c.d+1))
}

// EvaluateTransposed sets dst to K of rows i0 ≤ i < i1 of x. Each nr of them give a panel,
// t.Padded()×nr, with dst[j·nr + r] = k(x_r, y_j). Missing rows and columns are 0. The
// buffer is temporary memory.
func EvaluateTransposed[T, S Float](t *Transposed[T], dst []T, x Rows[S], i0, i1 int, buffer []T) {
	c, nr, padded := t.c, simd.Columns[T](), len(t.start)
	if x.D != c.d || i0 < 0 || i1 > x.N {
		panic("panel: precondition: rows are in the range of x")
	}
	kern := simd.For[T]()
	group := kern.Panels * nr
	b, start, flat := buffer[:group*c.d], buffer[group*c.d:][:group], buffer[group*(c.d+1):][:nr*c.d]
	clear(start)
	for i := i0; i < i1 && padded > 0; i += group {
		n := min(group, i1-i)
		panels := (n + nr - 1) / nr
		for q := range panels {
			packPanel(c, x, i+q*nr, min(nr, n-q*nr), nr, b[q*nr*c.d:], start[q*nr:], nil, flat)
		}
		for p := 0; p < padded; p += simd.Rows {
			kern.Tile[c.plan.statistic](c.d, &t.a[p*c.d], &t.start[p], &buffer[0], &start[0], &dst[p*nr], padded*nr, panels)
		}
		for q := range panels {
			t.finish(dst[q*padded*nr:][:padded*nr], min(nr, n-q*nr))
		}
		dst = dst[panels*padded*nr:]
	}
}

// finish applies the function to the statistics of a panel of n rows of x.
func (t *Transposed[T]) finish(panel []T, n int) {
	c, nr, padded, size := t.c, simd.Columns[T](), len(t.start), simd.TileSize[T]()
	const most = 256 // tiles of one call
	for tile := 0; tile < padded/simd.Rows; tile += most {
		simd.For[T]().Func[c.plan.fn](&panel[tile*size], min(most, padded/simd.Rows-tile), &c.par[0])
	}
	if c.scale != 1 {
		for j := range panel {
			panel[j] = T(float64(panel[j]) * c.scale)
		}
	}
	clear(panel[c.m*nr:])
	for j := n; j < nr; j++ {
		for l := j; l < len(panel); l += nr {
			panel[l] = 0
		}
	}
}
