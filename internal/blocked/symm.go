package blocked

import "github.com/bkbtuner/bkb/internal/simd"

// symmBlock is the order of the blocks of a symmetric matrix on its diagonal.
const symmBlock = 192

// Symm sets c = a·b for a symmetric matrix. It reads the part above the diagonal, and takes
// the diagonal from a separate slice, because a factor may be stored below. The matrix c
// must not overlap a or b. With one column it works like Gemv, and rounds differently.
func Symm[T Float](workers int, a Matrix[T], diagonal []T, b, c Matrix[T]) {
	a.checkSquare("a")
	b.check("b")
	c.check("c")
	n := a.Rows
	checkSame(n, len(diagonal), "a and its diagonal")
	checkSame(n, b.Rows, "a and b")
	checkSame(n, c.Rows, "a and c")
	checkSame(b.Cols, c.Cols, "b and c")
	scale(0, c, false)
	order := min(n, symmBlock)
	buf := take[T]()
	defer buf.give()
	square := simd.Sized(&buf.c, order*order)
	for i0 := 0; i0 < n; i0 += symmBlock {
		i1 := min(i0+symmBlock, n)
		s := New(i1-i0, i1-i0, square[:(i1-i0)*(i1-i0)])
		for i := range s.Rows {
			s.Data[i*s.Stride+i] = diagonal[i0+i]
			for j, v := range a.row(i0 + i)[i0+i+1 : i1] {
				s.Data[i*s.Stride+i+1+j], s.Data[(i+1+j)*s.Stride+i] = v, v
			}
		}
		mine, rest := b.Sub(i0, 0, i1, b.Cols), b.Sub(i1, 0, n, b.Cols)
		to := c.Sub(i0, 0, i1, c.Cols)
		add(workers, false, s, mine, to)
		if i1 < n {
			right := a.Sub(i0, i1, i1, n)
			add(workers, false, right, rest, to)
			add(workers, true, right, mine, c.Sub(i1, 0, n, c.Cols))
		}
	}
}

// add adds op(a)·b to c.
func add[T Float](workers int, trans bool, a, b, c Matrix[T]) {
	if b.Cols == 1 && b.Stride == 1 && c.Stride == 1 {
		Gemv(workers, trans, a, b.Data, 1, 1, c.Data)
		return
	}
	Gemm(workers, trans, a, false, b, 1, 1, c)
}
