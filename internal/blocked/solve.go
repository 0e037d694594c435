package blocked

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

// SolveLower sets b = op(l)⁻¹·b for a lower triangular n×n matrix l, of which
// only the lower triangle is read, with op transposing if trans is set. b is
// n×m. A zero on the diagonal yields Inf and NaN.
func SolveLower[T Float](workers int, trans bool, l, b Matrix[T]) {
	l.checkSquare("l")
	b.check("b")
	checkSame(l.Rows, b.Rows, "l and b")
	solve(workers, trans, l, b, false, nil)
}

// SolveLowerRight sets b = b·op(l)⁻¹, where b is m×n.
func SolveLowerRight[T Float](workers int, trans bool, l, b Matrix[T]) {
	l.checkSquare("l")
	b.check("b")
	checkSame(l.Rows, b.Cols, "l and b")
	// bᵀ = op(l)⁻ᵀ·bᵀ
	solve(workers, !trans, l, b, true, nil)
}

// Inverse sets dst to the inverse of the lower triangular matrix l, with zeros
// above the diagonal. It is trtri of LAPACK, but not in place. dst must not overlap l. It takes
// about half of the operations of [SolveLower] for a unit matrix and has its bits.
func Inverse[T Float](workers int, l, dst Matrix[T]) {
	l.checkSquare("l")
	dst.checkSquare("dst")
	checkSame(l.Rows, dst.Rows, "l and dst")
	n := l.Rows
	scale(0, dst, false)
	for i := range n {
		dst.Data[i*dst.Stride+i] = 1
	}
	part := func(from, to int) {
		buf := take[T]()
		defer buf.give()
		solver[T]{kern: simd.For[T](), buf: buf}.invert(l, dst, from, to)
	}
	switch {
	case n == 0:
	case workers == 1 || float64(n)*float64(n)*float64(n) < 1<<18:
		part(0, n)
	default:
		stripes(workers, n, part)
	}
}

// solve solves L·Y = B for lower triangular L = l, or L = lᵀ with the order of all indices
// reversed. The columns of Y are those of b, or its rows if right is set, and are
// independent of each other. The map kept has packed triangles, by first row.
func solve[T Float](workers int, trans bool, l, b Matrix[T], right bool, kept map[int][]T) {
	if b.empty() {
		return
	}
	columns := b.Cols
	if right {
		columns = b.Rows
	}
	if workers == 1 || float64(l.Rows)*float64(l.Rows)*float64(columns) < 1<<18 {
		solvePart(trans, l, b, right, kept)
		return
	}
	share(workers, columns, simd.Columns[T](), func(from, to int) {
		if right {
			solvePart(trans, l, b.Sub(from, 0, to, b.Cols), right, kept)
		} else {
			solvePart(trans, l, b.Sub(0, from, b.Rows, to), right, kept)
		}
	})
}

func solvePart[T Float](trans bool, l, b Matrix[T], right bool, kept map[int][]T) {
	buf := take[T]()
	defer buf.give()
	solver[T]{simd.For[T](), buf, trans, right, kept}.solve(0, l, b)
}

// solver is a solution in progress on one goroutine.
type solver[T Float] struct {
	kern         *simd.Kernels[T]
	buf          *buffers[T]
	trans, right bool
	kept         map[int][]T // packed triangles, by first row
}

// Direct is the order of the largest triangle that is not split.
const Direct = 320

// solve splits the triangle in two:
//
//	L11·Y1 = B1,  L22·Y2 = B2 − L21·Y1
//
// The matrix l begins at row at of the whole.
func (s solver[T]) solve(at int, l, b Matrix[T]) {
	n := l.Rows
	if n <= Direct {
		s.base(at, l, b, dense)
		return
	}
	h := half(n)
	top, corner, bottom := l.Sub(0, 0, h, h), l.Sub(h, 0, n, h), l.Sub(h, h, n, n)
	var b1, b2 Matrix[T]
	if s.right {
		b1, b2 = b.Sub(0, 0, b.Rows, h), b.Sub(0, h, b.Rows, n)
	} else {
		b1, b2 = b.Sub(0, 0, h, b.Cols), b.Sub(h, 0, n, b.Cols)
	}
	if s.trans { // Lᵀ is upper, so start from the bottom
		s.solve(at+h, bottom, b2)
		s.subtract(corner, true, b2, b1)
		s.solve(at, top, b1)
		return
	}
	s.solve(at, top, b1)
	s.subtract(corner, false, b1, b2)
	s.solve(at+h, bottom, b2)
}

// invert solves L·Y = B as solve does, where columns from ≤ j < to of b are those of a unit
// matrix. Rows above the diagonal stay 0 and are left out.
func (s solver[T]) invert(l, b Matrix[T], from, to int) {
	n := l.Rows
	if n <= Direct {
		s.base(0, l, b.Sub(0, from, n, to), from)
		return
	}
	h := half(n)
	bottom := l.Sub(h, h, n, n)
	if end := min(to, h); from < end {
		s.invert(l.Sub(0, 0, h, h), b.Sub(0, 0, h, h), from, end)
		b2 := b.Sub(h, from, n, end)
		s.subtract(l.Sub(h, 0, n, h), false, b.Sub(0, from, h, end), b2)
		s.solve(h, bottom, b2)
	}
	if from = max(from, h); from < to {
		s.invert(bottom, b.Sub(h, h, n, n), from-h, to-h)
	}
}

// half returns the row at which a triangle of order n is split.
func half(n int) int { return (n/2 + 95) / 96 * 96 }

// subtract sets to −= op(l)·y, or its transpose.
func (s solver[T]) subtract(l Matrix[T], trans bool, y, to Matrix[T]) {
	if s.right {
		product(y.operand(false), l.operand(!trans), to.Rows, to.Cols, 0, y.Cols, -1, 1, to, false, 0)
		return
	}
	product(l.operand(trans), y.operand(false), to.Rows, to.Cols, 0, y.Rows, -1, 1, to, false, 0)
}

// dense is the lead of right-hand sides that may not have zeros.
const dense = math.MinInt / 2

// base solves with packed operands. The right-hand sides are in column panels, which the
// kernel solves in place, 6 rows at a time, using the rows above. Column j of b is 0 above
// row j + lead, and these rows are left out.
func (s solver[T]) base(at int, l, b Matrix[T], lead int) {
	const rows = simd.Rows
	nr, n := simd.Columns[T](), l.Rows
	np := Padded(n)
	triangle, ok := s.kept[at]
	if !ok {
		triangle = s.packTriangle(simd.Sized(&s.buf.a, panelOffset(np)), l)
	}
	columns := b.Cols
	if s.right {
		columns = b.Rows
	}
	most := 16 // panels at a time, so that all stay in L2
	if lead != dense {
		most = s.kern.Panels // fewer columns have more rows above the diagonal in common
	}
	for j0 := 0; j0 < columns; j0 += most * nr {
		m := min(most*nr, columns-j0)
		panels := simd.Sized(&s.buf.b, (m+nr-1)/nr*nr*np)
		full := 0 // the part that goes row by row, for better memory access
		if !s.right {
			full = m / nr
			for j := range full {
				clear(panels[(j*np+n)*nr : (j+1)*np*nr])
			}
			for l := 0; l < n && full > 0; l++ {
				s.kern.Pieces(&panels[l*nr], np*nr, &b.row(s.index(l, n))[j0], nr, full)
			}
		}
		for j := full * nr; j < m; j += nr {
			s.packColumns(panels[j*np:][:nr*np], b, n, j0+j, min(nr, m-j))
		}
		first := max(0, lead+j0) / rows * rows
		for p := first; p < np; p += rows {
			s.kern.Trsm(p-first, &triangle[panelOffset(p)+first*rows], &panels[first*nr], &panels[p*nr], np*nr, (m+nr-1)/nr)
		}
		for l := 0; l < n && full > 0; l++ {
			s.kern.Pieces(&b.row(s.index(l, n))[j0], nr, &panels[l*nr], np*nr, full)
		}
		for j := full * nr; j < m; j += nr {
			s.unpackColumns(panels[j*np:][:nr*np], b, n, j0+j, min(nr, m-j))
		}
	}
}

// panelOffset returns the start of the panel of rows p, p+1, …, because panels grow by 6
// columns each.
func panelOffset(p int) int {
	q := p / simd.Rows
	return simd.Rows * simd.Rows * q * (q + 1) / 2
}

// packTriangle packs panels of 6 rows, each up to its diagonal block, with the diagonal
// inverted. Missing rows are those of the unit matrix. The memory is dst, if that has the length.
func (s solver[T]) packTriangle(dst []T, l Matrix[T]) []T {
	const rows = simd.Rows
	n := l.Rows
	if size := panelOffset(Padded(n)); len(dst) != size {
		dst = simd.Aligned[T](size)
	}
	for p := 0; p < n; p += rows {
		panel, h := dst[panelOffset(p):panelOffset(p+rows)], min(rows, n-p)
		if s.trans { // element (i, j) is l(n−1−j, n−1−i)
			clear(panel)
			for c := range p + h {
				from := l.row(n - 1 - c)
				for r := max(0, c-p); r < h; r++ {
					panel[c*rows+r] = from[n-1-p-r]
				}
			}
		} else {
			packPanel(s.kern, panel[:p*rows], l.Sub(p, 0, n, n).operand(false), h, p, rows)
			clear(panel[p*rows:])
			for r := range h {
				for c, v := range l.row(p + r)[p : p+r+1] {
					panel[(p+c)*rows+r] = v
				}
			}
		}
		for r := range rows {
			d := &panel[(p+r)*rows+r]
			if r >= h {
				*d = 1
			}
			*d = 1 / *d
		}
	}
	return dst
}

// packColumns packs w columns from j on.
func (s solver[T]) packColumns(y []T, b Matrix[T], n, j, w int) {
	nr := simd.Columns[T]()
	clear(y[n*nr:])
	switch {
	case s.right && !s.trans:
		packPanel(s.kern, y[:n*nr], b.Sub(j, 0, b.Rows, n).operand(false), w, n, nr)
	case s.right:
		for c := range nr {
			for l := range n {
				v := T(0)
				if c < w {
					v = b.Data[(j+c)*b.Stride+n-1-l]
				}
				y[l*nr+c] = v
			}
		}
	default:
		for l := range n {
			row := y[l*nr:][:nr]
			clear(row[copy(row, b.row(s.index(l, n))[j:j+w]):])
		}
	}
}

// unpackColumns is the inverse of packColumns.
func (s solver[T]) unpackColumns(y []T, b Matrix[T], n, j, w int) {
	nr := simd.Columns[T]()
	if !s.right {
		for l := range n {
			copy(b.row(s.index(l, n))[j:], y[l*nr:][:w])
		}
		return
	}
	l := 0
	if !s.trans && w == nr {
		for ; l+4 <= n; l += 4 {
			s.kern.Transpose(&b.Data[j*b.Stride+l], b.Stride, &y[l*nr], nr, nr/4)
		}
	}
	for ; l < n; l++ {
		for c := range w {
			b.Data[(j+c)*b.Stride+s.index(l, n)] = y[l*nr+c]
		}
	}
}

// index returns the outside number of row l of n.
func (s solver[T]) index(l, n int) int {
	if s.trans {
		return n - 1 - l
	}
	return l
}
