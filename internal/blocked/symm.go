package blocked

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Symm sets c = a·b for a symmetric matrix. It reads the part above the diagonal, and takes
// the diagonal from a separate slice, because a factor may be stored below. While it runs, both
// diagonals are exchanged. The matrix c must not overlap a or b.
func Symm(a Matrix[float64], diagonal []float64, b, c Matrix[float64]) {
	a.checkSquare("a")
	b.check("b")
	c.check("c")
	checkSame(a.Rows, len(diagonal), "a and its diagonal")
	checkSame(a.Rows, b.Rows, "a and b")
	checkSame(a.Rows, c.Rows, "a and c")
	checkSame(b.Cols, c.Cols, "b and c")
	if b.empty() {
		return
	}
	exchange := func() {
		for i, v := range diagonal {
			at := &a.Data[i*a.Stride+i]
			diagonal[i], *at = *at, v
		}
	}
	exchange()
	defer exchange()
	general := func(m Matrix[float64]) blas64.General {
		return blas64.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}
	}
	blas64.Symm(blas.Left, 1, blas64.Symmetric{Uplo: blas.Upper, N: a.Rows, Stride: a.Stride, Data: a.Data}, general(b), 0, general(c))
}
