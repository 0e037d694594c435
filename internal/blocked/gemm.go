package blocked

import "github.com/bkbtuner/bkb/internal/simd"

// These are the sizes of the blocks. A block of blockM×blockK of A is in L2 beside the
// panels of B that a kernel takes side by side, and blockK×blockN of B is in any larger
// cache. They determine the order of summation.
const (
	blockM = 120 // a multiple of 6
	blockN = 1024
)

// blockK makes a block of A 240 KiB large.
func blockK[T Float]() int {
	if simd.Size[T]() == 4 {
		return 512
	}
	return 256
}

// Gemm sets c = alpha·op(a)·op(b) + beta·c, where op transposes if the flag before the matrix is
// set. If beta is 0, c is not read. c must not overlap a or b.
func Gemm[T Float](workers int, transA bool, a Matrix[T], transB bool, b Matrix[T], alpha, beta T, c Matrix[T]) {
	m, k := size(transA, a, "a")
	k2, n := size(transB, b, "b")
	c.check("c")
	checkSame(k, k2, "a·b")
	checkSame(m, c.Rows, "a and c")
	checkSame(n, c.Cols, "b and c")
	multiply(workers, a.operand(transA), b.operand(transB), m, n, k, alpha, beta, c, false)
}

// Syrk sets the lower triangle of c = alpha·a·aᵀ + beta·c, or of alpha·aᵀ·a + beta·c if trans is
// set. Elements above the diagonal are neither read nor written. If beta is 0, c is not read.
func Syrk[T Float](workers int, trans bool, a Matrix[T], alpha, beta T, c Matrix[T]) {
	n, k := size(trans, a, "a")
	c.checkSquare("c")
	checkSame(n, c.Rows, "a and c")
	o := a.operand(trans)
	multiply(workers, o, o.transposed(), n, n, k, alpha, beta, c, true)
}

// SyrkLower sets the lower triangle of c = lᵀ·l for a lower triangular l, which has zeros
// above the diagonal. It is lauum of LAPACK, but not in place. It takes about half of the
// operations of [Syrk] and has its bits. c must not overlap l.
func SyrkLower[T Float](workers int, l, c Matrix[T]) {
	l.checkSquare("l")
	c.checkSquare("c")
	checkSame(l.Rows, c.Rows, "l and c")
	n, o := l.Rows, l.operand(true)
	if float64(n)*float64(n)*float64(n) < 1<<18 {
		workers = 1
	}
	// Rows in the middle take the longest, so that two halves are about the same work.
	share(workers, n, blockM, func(from, to int) {
		for i0 := from; i0 < to; i0 += blockM {
			i1 := min(i0+blockM, to)
			product(o.from(i0, 0), o.transposed(), i1-i0, i1, i0, n, 1, 0, c.Sub(i0, 0, i1, i1), true, i0)
		}
	})
}

// size returns the size of op(a).
func size[T Float](trans bool, a Matrix[T], name string) (rows, cols int) {
	a.check(name)
	if trans {
		return a.Cols, a.Rows
	}
	return a.Rows, a.Cols
}

// scale multiplies c, or its lower triangle.
func scale[T Float](beta T, c Matrix[T], lower bool) {
	if beta == 1 {
		return
	}
	for i := range c.Rows {
		row := c.row(i)
		if lower {
			row = row[:i+1]
		}
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}

// multiply sets c = alpha·a·b + beta·c. Every element of c is summed in the same order,
// independent of how the work is shared.
func multiply[T Float](workers int, a, b operand[T], m, n, k int, alpha, beta T, c Matrix[T], lower bool) {
	if k == 0 || alpha == 0 || beta != 0 {
		scale(beta, c, lower)
		beta = 1
	}
	if m == 0 || n == 0 || k == 0 || alpha == 0 {
		return
	}
	if float64(m)*float64(n)*float64(k) < 1<<18 {
		workers = 1
	}
	switch {
	case workers == 1:
		product(a, b, m, n, 0, k, alpha, beta, c, lower, 0)
	case lower:
		stripes(workers, m, func(i0, i1 int) {
			product(a.from(i0, 0), b, i1-i0, i1, 0, k, alpha, beta, c.Sub(i0, 0, i1, i1), true, i0)
		})
	case m >= n:
		share(workers, m, simd.Rows, func(i0, i1 int) {
			product(a.from(i0, 0), b, i1-i0, n, 0, k, alpha, beta, c.Sub(i0, 0, i1, n), false, 0)
		})
	default:
		share(workers, n, simd.Columns[T](), func(j0, j1 int) {
			product(a, b.from(0, j0), m, j1-j0, 0, k, alpha, beta, c.Sub(0, j0, m, j1), false, 0)
		})
	}
}

// stripes shares the rows of a lower triangle so that all pieces are about the same work.
// In each pair, the first comes from the top and the second from the bottom.
func stripes(workers, n int, f func(i0, i1 int)) {
	pieces := 2 * workers
	share(workers, workers, 1, func(w0, w1 int) {
		for w := w0; w < w1; w++ {
			for _, p := range []int{w, pieces - 1 - w} {
				if i0, i1 := n*p/pieces, n*(p+1)/pieces; i0 < i1 {
					f(i0, i1)
				}
			}
		}
	})
}

// product sets c = alpha·a·b + beta·c on one goroutine, for beta 0 or 1. With lower set,
// only elements (i, j) with j ≤ i + shift are touched. The columns of a before l1 are 0 and
// are left out, which does not change the order of summation.
func product[T Float](a, b operand[T], m, n, l1, k int, alpha, beta T, c Matrix[T], lower bool, shift int) {
	kern := simd.For[T]()
	nr := simd.Columns[T]()
	buf := take[T]()
	defer buf.give()
	for j0 := 0; j0 < n; j0 += blockN {
		nn := min(blockN, n-j0)
		for l0, kk := l1, 0; l0 < k; l0 += kk {
			kk = min(blockK[T]()-l0%blockK[T](), k-l0)
			keep := 1
			if l0 == l1 && beta == 0 {
				keep = 0
			}
			pb := simd.Sized(&buf.b, (nn+nr-1)/nr*nr*kk)
			pack(kern, pb, b.from(l0, j0).transposed(), nn, kk, nr)
			for i0 := 0; i0 < m; i0 += blockM {
				mm := min(blockM, m-i0)
				if lower && j0 > i0+mm-1+shift {
					continue
				}
				pa := simd.Sized(&buf.a, (mm+simd.Rows-1)/simd.Rows*simd.Rows*kk)
				pack(kern, pa, a.from(i0, l0), mm, kk, simd.Rows)
				block(kern, buf, pa, pb, mm, nn, kk, keep, alpha, c.Sub(i0, j0, i0+mm, j0+nn), lower, i0-j0+shift)
			}
		}
	}
}

// block sets c to the product of two packed blocks, plus c if keep is not 0.
func block[T Float](kern *simd.Kernels[T], buf *buffers[T], pa, pb []T, m, n, k, keep int, alpha T, c Matrix[T], lower bool, shift int) {
	nr := simd.Columns[T]()
	group := kern.Panels * nr
	for j0 := 0; j0 < n; j0 += group {
		for i := 0; i < m; i += simd.Rows {
			h, j1 := min(simd.Rows, m-i), min(j0+group, n)
			whole := 0 // columns of full tiles
			if h == simd.Rows {
				whole = visible(lower, j1-j0, i+shift-j0) / nr * nr
			}
			if whole > 0 {
				// The first row panels have the next column panels fetched, one each.
				next := min(j0+group+i/simd.Rows%kern.Panels*nr, (n-1)/nr*nr)
				kern.Gemm(k, &pa[i*k], &pb[j0*k], &pb[next*k], &c.Data[i*c.Stride+j0], c.Stride, whole/nr, keep, alpha)
			}
			if lower {
				j1 = min(j1, i+h+shift)
			}
			for j := j0 + whole; j < j1; j += nr {
				edge(kern, buf, pa[i*k:], pb[j*k:], h, min(nr, n-j), k, keep, alpha, c.Sub(i, j, i+h, j+min(nr, n-j)), lower, i+shift-j)
			}
		}
	}
}

// edge is block for one tile at an edge or on the diagonal. It uses a separate tile, with
// the same roundings.
func edge[T Float](kern *simd.Kernels[T], buf *buffers[T], pa, pb []T, h, w, k, keep int, alpha T, c Matrix[T], lower bool, shift int) {
	nr := simd.Columns[T]()
	tile := simd.Sized(&buf.c, simd.TileSize[T]())
	clear(tile)
	for r := range h {
		copy(tile[r*nr:], c.row(r)[:visible(lower, w, r+shift)])
	}
	kern.Gemm(k, &pa[0], &pb[0], &pb[0], &tile[0], nr, 1, keep, alpha)
	for r := range h {
		copy(c.row(r), tile[r*nr:][:visible(lower, w, r+shift)])
	}
}

// visible returns how many of w elements of a row are on or left of the diagonal, which is
// at index d.
func visible(lower bool, w, d int) int {
	if !lower {
		return w
	}
	return max(0, min(w, d+1))
}
