package blocked

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Cholesky overwrites the lower triangle of the symmetric matrix a with L, a = L·Lᵀ. Only
// the lower triangle is read and written. It returns n, or the index of the first pivot
// that is not positive. In the latter case a is unspecified.
func Cholesky[T Float](workers int, a Matrix[T]) int {
	a.checkSquare("a")
	return factor(workers, a)
}

// factor splits the matrix in two:
//
//	L11 = chol(A11),  L21 = A21·L11⁻ᵀ,  L22 = chol(A22 − L21·L21ᵀ)
func factor[T Float](workers int, a Matrix[T]) int {
	n := a.Rows
	if n <= simd.Leaf {
		return factorLeaf(a)
	}
	h := (n/2 + simd.Leaf - 1) / simd.Leaf * simd.Leaf
	a11, a21, a22 := a.Sub(0, 0, h, h), a.Sub(h, 0, n, h), a.Sub(h, h, n, n)
	if ok := factor(workers, a11); ok < h {
		return ok
	}
	solve(workers, false, a11, a21, true, nil)
	o := a21.operand(false)
	multiply(workers, o, o.transposed(), n-h, n-h, h, -1, 1, a22, true)
	return h + factor(workers, a22)
}

// factorLeaf factors a small matrix with the kernel, padded with the unit matrix, or
// directly if it is tiny.
func factorLeaf[T Float](a Matrix[T]) int {
	const leaf = simd.Leaf
	n := a.Rows
	if n <= 8 {
		return factorTiny(a)
	}
	buf := take[T]()
	defer buf.give()
	u := simd.Sized(&buf.c, leaf*leaf)
	clear(u)
	for i := range leaf {
		if i >= n {
			u[i*leaf+i] = 1
			continue
		}
		for j, v := range a.row(i)[:i+1] {
			u[j*leaf+i] = v
		}
	}
	simd.For[T]().Cholesky(&u[0], &buf.ok)
	for i := range n {
		row := a.row(i)[:i+1]
		for j := range row {
			row[j] = u[j*leaf+i]
		}
	}
	return min(buf.ok, n)
}

func factorTiny[T Float](a Matrix[T]) int {
	for j := range a.Rows {
		rj := a.row(j)[:j+1]
		d := rj[j]
		for _, v := range rj[:j] {
			d -= v * v
		}
		if !(d > 0) {
			return j
		}
		root := T(math.Sqrt(float64(d)))
		rj[j] = root
		for i := j + 1; i < a.Rows; i++ {
			ri := a.row(i)
			s := ri[j]
			for l, v := range rj[:j] {
				s -= ri[l] * v
			}
			ri[j] = s / root
		}
	}
	return a.Rows
}
