package blocked

import "github.com/bkbtuner/bkb/internal/simd"

// pieces is how many pieces of 64 bytes of a row are multiplied at a time. Those of the
// vector, 16 KiB, stay in L1.
const pieces = 256

// Gemv sets y = alpha·op(a)·x + beta·y. Every element of a takes part in one operation, so
// nothing is packed, and 6 rows at a time are read in place. If beta is 0, y is not read. The
// vector y must not overlap a or x.
func Gemv[T Float](workers int, trans bool, a Matrix[T], x []T, alpha, beta T, y []T) {
	m, k := size(trans, a, "a")
	checkSame(k, len(x), "a and x")
	checkSame(m, len(y), "a and y")
	if k == 0 || alpha == 0 || beta != 0 {
		scale(beta, Matrix[T]{1, m, m, y}, false)
		beta = 1
	}
	if m == 0 || k == 0 || alpha == 0 {
		return
	}
	if float64(m)*float64(k) < 1<<17 {
		workers = 1
	}
	keep := beta != 0
	switch {
	case workers <= 1 && !trans: // without a closure, which would be allocated
		alongRows(a, x, y, alpha, keep)
	case workers <= 1:
		acrossRows(a, x, y, alpha, keep)
	case !trans:
		share(workers, m, simd.Rows, func(i0, i1 int) {
			alongRows(a.Sub(i0, 0, i1, k), x, y[i0:i1], alpha, keep)
		})
	default:
		share(workers, m, simd.Columns[T](), func(j0, j1 int) {
			acrossRows(a.Sub(0, j0, k, j1), x, y[j0:j1], alpha, keep)
		})
	}
}

// Product sets dst = op(a)·v + beta·dst, where v and dst have c columns, row-major. With one
// column it is [Gemv], else [Gemm].
func Product[T Float](workers int, trans bool, a Matrix[T], v []T, c int, beta T, dst []T) {
	if c == 1 {
		Gemv(workers, trans, a, v, 1, beta, dst)
		return
	}
	Gemm(workers, trans, a, false, New(len(v)/c, c, v), 1, beta, New(len(dst)/c, c, dst))
}

// alongRows sets y = alpha·a·x, and adds the old y if keep is set. It computes 6 sums at a time.
func alongRows[T Float](a Matrix[T], x, y []T, alpha T, keep bool) {
	const rows = simd.Rows
	m, k := a.Rows, a.Cols
	kern, nr := simd.For[T](), simd.Columns[T]()
	buf := take[T]()
	defer buf.give()
	xs := simd.Sized(&buf.b, (k+nr-1)/nr*nr)
	clear(xs[copy(xs, x):])
	lanes := simd.Sized(&buf.c, rows*simd.Lanes[T]())
	for i := 0; i < m; {
		// The last 6 overlap the ones before. If there are fewer than 6, each is taken 6 times.
		first, h, step := min(i, m-rows), rows, a.Stride
		if m < rows {
			first, h, step = i, 1, 0
		}
		var sum [rows]T
		for l := 0; l < k; l += pieces * nr {
			src, w := a.Data[first*a.Stride+l:], min(pieces*nr, k-l)
			full := w / nr * nr
			clear(lanes)
			if full > 0 {
				kern.MultiplyRows(&src[0], step, &xs[l], &lanes[0], full/nr)
			}
			if full < w {
				rest := ends(buf, src[full:], step, h, w-full)
				kern.MultiplyRows(&rest[0], nr, &xs[l+full], &lanes[0], 1)
			}
			for r := range h {
				for _, v := range lanes[r*simd.Lanes[T]():][:simd.Lanes[T]()] {
					sum[r] += v
				}
			}
		}
		for ; i < first+h; i++ {
			v := alpha * sum[i-first]
			if keep {
				v += y[i]
			}
			y[i] = v
		}
	}
}

// acrossRows sets y = alpha·aᵀ·x, and adds the old y if keep is set. It adds 6 rows of a at
// a time.
func acrossRows[T Float](a Matrix[T], x, y []T, alpha T, keep bool) {
	const rows = simd.Rows
	m, k := a.Cols, a.Rows
	kern, nr := simd.For[T](), simd.Columns[T]()
	buf := take[T]()
	defer buf.give()
	sum := simd.Sized(&buf.b, (m+nr-1)/nr*nr)
	clear(sum)
	u := simd.Sized(&buf.c, rows)
	for j := 0; j < m; j += pieces * nr {
		w := min(pieces*nr, m-j)
		full := w / nr * nr
		for l := 0; l < k; {
			h, add := rows, kern.AddRows
			if l+rows > k {
				h, add = 1, kern.AddRow
			}
			clear(u)
			for r := range h {
				u[r] = alpha * x[l+r]
			}
			src := a.Data[l*a.Stride+j:]
			if full > 0 {
				add(&src[0], a.Stride, &u[0], &sum[j], full/nr)
			}
			if full < w {
				rest := ends(buf, src[full:], a.Stride, h, w-full)
				add(&rest[0], nr, &u[0], &sum[j+full], 1)
			}
			l += h
		}
	}
	for i, v := range sum[:m] {
		if keep {
			v += y[i]
		}
		y[i] = v
	}
}

// ends copies h ≤ 6 rows of w elements, less than a piece, into pieces padded with zeros.
func ends[T Float](buf *buffers[T], src []T, step, h, w int) []T {
	nr := simd.Columns[T]()
	dst := simd.Sized(&buf.a, simd.Rows*nr)
	clear(dst)
	for r := range h {
		copy(dst[r*nr:][:nr], src[r*step:][:w])
	}
	return dst
}
