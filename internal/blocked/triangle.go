package blocked

import (
	"sync"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Triangle is a lower triangular matrix for many solutions, those of [SolveLower], to the bit.
// The triangles on its diagonal stay packed, in about 320n/2 elements for each direction. Several
// goroutines may use it at once.
type Triangle[T Float] struct {
	l         Matrix[T]
	plain     packedTriangles[T]
	transpose packedTriangles[T]
}

type packedTriangles[T Float] struct {
	once sync.Once
	kept map[int][]T // by first row
}

// NewTriangle returns l to solve with. l must not change from then on.
func NewTriangle[T Float](l Matrix[T]) *Triangle[T] {
	l.checkSquare("l")
	return &Triangle[T]{l: l}
}

// Solve sets b = op(l)⁻¹·b, as [SolveLower].
func (t *Triangle[T]) Solve(workers int, trans bool, b Matrix[T]) {
	b.check("b")
	checkSame(t.l.Rows, b.Rows, "l and b")
	if b.empty() {
		return
	}
	solve(workers, trans, t.l, b, false, t.packed(trans))
}

// packed returns the packed triangles of a direction.
func (t *Triangle[T]) packed(trans bool) map[int][]T {
	p := &t.plain
	if trans {
		p = &t.transpose
	}
	p.once.Do(func() {
		p.kept = make(map[int][]T)
		s := solver[T]{kern: simd.For[T](), trans: trans}
		s.pack(p.kept, 0, t.l)
	})
	return p.kept
}

// pack packs the triangles that solve uses.
func (s solver[T]) pack(kept map[int][]T, at int, l Matrix[T]) {
	n := l.Rows
	if n > Direct {
		h := half(n)
		s.pack(kept, at, l.Sub(0, 0, h, h))
		s.pack(kept, at+h, l.Sub(h, h, n, n))
		return
	}
	kept[at] = s.packTriangle(nil, l)
}

// Padded returns n rounded up to a multiple of [simd.Rows].
func Padded(n int) int { return (n + simd.Rows - 1) / simd.Rows * simd.Rows }

// PackTriangle packs l for [SolvePanels].
func PackTriangle[T Float](l Matrix[T]) []T {
	l.checkSquare("l")
	return solver[T]{kern: simd.For[T]()}.packTriangle(nil, l)
}

// SolvePanels sets b = l⁻¹·b for a packed triangle l of order n and columns in panels. A panel
// has the elements of [simd.Columns] columns, row by row, and its rows are n, [Padded] with
// zeros. Up to n = [Direct] it has the bits of [SolveLower].
func SolvePanels[T Float](triangle []T, n int, b []T) {
	nr := simd.Columns[T]()
	size := Padded(n) * nr
	if size > 0 && len(b)%size != 0 {
		panic("blocked: precondition: the panels are whole")
	}
	for p := 0; p < n && len(b) > 0; p += simd.Rows {
		simd.For[T]().Trsm(p, &triangle[panelOffset(p)], &b[0], &b[p*nr], size, len(b)/size)
	}
}

// PackPanels sets panels, as for [SolvePanels], to the columns that are the rows of b.
func PackPanels[T Float](panels []T, b Matrix[T]) {
	n, nr := b.Cols, simd.Columns[T]()
	for i := 0; i < b.Rows; i += nr {
		y := panels[:Padded(n)*nr]
		packPanel(simd.For[T](), y[:n*nr], b.Sub(i, 0, b.Rows, n).operand(false), min(nr, b.Rows-i), n, nr)
		clear(y[n*nr:])
		panels = panels[len(y):]
	}
}
