package blocked

import "math"

// pivotBlock is the number of columns between updates of the rest.
const pivotBlock = 32

// PivotedCholesky factors the symmetric positive semi-definite n×n matrix a as PᵀaP = L·Lᵀ.
// It always takes the largest diagonal element that is left, the first of equals. It stops
// after rank columns, when none is above tolerance·max_i a_ii. The slice perm, of length n,
// receives P, so column j of L belongs to row perm[j] of a.
//
// The first rank columns of the lower triangle of a become those of L. The rest is
// unspecified, except that nothing above the diagonal is touched. A NaN on the diagonal is
// never chosen. The trace of the remainder is at most (n − rank)·tolerance·max_i a_ii.
func PivotedCholesky[T Float](workers int, a Matrix[T], tolerance T, perm []int) (rank int) {
	a.checkSquare("a")
	checkSame(a.Rows, len(perm), "a and perm")
	p := pivoting[T]{a: a, n: a.Rows, perm: perm, left: make([]T, a.Rows)}
	largest := T(0)
	for i := range perm {
		perm[i] = i
		p.left[i] = a.Data[i*a.Stride+i]
		if p.left[i] > largest {
			largest = p.left[i]
		}
	}
	stop := tolerance * largest
	for from := 0; from < p.n; from += pivotBlock {
		to := min(from+pivotBlock, p.n)
		for j := from; j < to; j++ {
			if !p.column(from, j, stop) {
				return j
			}
		}
		if to < p.n {
			o := a.Sub(to, from, p.n, to).operand(false)
			multiply(workers, o, o.transposed(), p.n-to, p.n-to, to-from, -1, 1, a.Sub(to, to, p.n, p.n), true)
		}
	}
	return p.n
}

// pivoting is a factorisation in progress. The slice left is the diagonal of the part that
// is not yet factored. The matrix itself is only updated block by block.
type pivoting[T Float] struct {
	a    Matrix[T]
	n    int
	perm []int
	left []T
}

// column chooses pivot j and computes column j of L. The columns from index from on are not
// yet subtracted from the matrix. It returns false if no pivot is above stop.
func (p *pivoting[T]) column(from, j int, stop T) bool {
	best := -1
	for i := j; i < p.n; i++ {
		if p.left[i] > stop && p.left[i] > 0 && (best < 0 || p.left[i] > p.left[best]) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	p.swap(j, best)
	a := p.a
	root := T(math.Sqrt(float64(p.left[j])))
	rj := a.row(j)[:j+1]
	rj[j] = root
	for i := j + 1; i < p.n; i++ {
		ri := a.row(i)[:j+1]
		v := (ri[j] - Dot(ri[from:j], rj[from:j])) / root
		ri[j] = v
		p.left[i] -= v * v
	}
	return true
}

// swap exchanges rows and columns i < j of the lower triangle.
func (p *pivoting[T]) swap(i, j int) {
	if i == j {
		return
	}
	a := p.a
	p.perm[i], p.perm[j] = p.perm[j], p.perm[i]
	p.left[i], p.left[j] = p.left[j], p.left[i]
	ri, rj := a.row(i), a.row(j)
	for l := range i {
		ri[l], rj[l] = rj[l], ri[l]
	}
	for l := i + 1; l < j; l++ {
		e := &a.Data[l*a.Stride+i]
		*e, rj[l] = rj[l], *e
	}
	for l := j + 1; l < p.n; l++ {
		r := a.row(l)
		r[i], r[j] = r[j], r[i]
	}
	ri[i], rj[j] = rj[j], ri[i]
}

// Dot returns aᵀb, summed in four interleaved parts.
func Dot[T Float](a, b []T) T {
	b = b[:len(a)]
	var s0, s1, s2, s3 T
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}
