//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"gorgonia.org/cu"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/inorder"
)

const (
	edge = 64 // order of a block on the diagonal
	// pivots is the number of columns between updates of the rest, that of package blocked.
	pivots = 32
	none   = cu.DevicePtr(0)
)

// factor is L, n×rank with rows n apart, on a device.
type factor struct {
	d       *device
	all     arena
	n, rank int64
	stride  int64
	l       cu.DevicePtr
	status  cu.DevicePtr // −1 until a factorisation ends early
	inverse cu.DevicePtr // of the blocks on the diagonal, or 0
	v       cu.DevicePtr // right-hand sides, solutions and tickets
	c       int64        // columns that v has room for
	sized   arena
}

// NewFactor copies a to the device and factors it. It changes a and perm only in the end, and
// restores a if a copy fails.
func (d *device) NewFactor(a []float64, n int, tolerance float64, perm []int) (gpu.Factor, int, error) {
	f, err := d.newFactor(int64(n))
	if err != nil {
		return nil, 0, err
	}
	if err := d.do(func() { upload(d, f.l, a[:n*n]) }); err != nil {
		return nil, 0, errors.Join(err, release(f))
	}
	diagonal := make([]float64, n)
	for i := range diagonal {
		diagonal[i] = a[i*n+i]
	}
	return f.factor(a, diagonal, tolerance, perm)
}

// factor factors the matrix on the device, and copies L to the lower triangle of a. It
// releases f if there is no factor.
func (f *factor) factor(a, diagonal []float64, tolerance float64, perm []int) (gpu.Factor, int, error) {
	var order []int64
	err := f.d.do(func() {
		if perm != nil {
			order = f.pivoted(diagonal, tolerance)
		} else {
			f.cholesky()
		}
		if f.rank > 0 && (perm != nil || f.rank == f.n) {
			f.lower(a)
		}
	})
	switch {
	case err != nil:
		return nil, 0, errors.Join(err, release(f))
	case f.rank == 0, perm == nil && f.rank < f.n:
		return nil, int(f.rank), release(f)
	}
	for i, p := range order {
		perm[i] = int(p)
	}
	return f, int(f.rank), nil
}

// newFactor takes memory for a matrix of order n.
func (d *device) newFactor(n int64) (*factor, error) {
	f := &factor{d: d, all: arena{d: d}, sized: arena{d: d}, n: n, stride: n}
	err := d.do(func() {
		free, _ := d.memory()
		if need := 8 * n * (n + edge + 2*usual); d.err == nil && need > free { // with inverses, right-hand sides and solutions
			d.err = &gpu.MemoryError{Device: d.info.Name, What: fmt.Sprintf("a factor of %d rows", n), Need: need, Free: free}
		}
		f.l = f.all.alloc(8 * n * n)
		f.begin()
	})
	if err != nil {
		return nil, errors.Join(err, release(f))
	}
	return f, nil
}

// begin makes the status.
func (f *factor) begin() {
	f.status = f.all.alloc(8)
	upload(f.d, f.status, []int64{-1})
}

func (f *factor) Close() error {
	return f.d.do(func() {
		f.sized.free()
		f.all.free()
	})
}

// at is the address of an element.
func (f *factor) at(i, j int64) cu.DevicePtr { return f.l + cu.DevicePtr(8*(i*f.stride+j)) }

// finish sets the rank from the status.
func (f *factor) finish() {
	s := []int64{0}
	download(f.d, s, f.status)
	f.rank = f.n
	if s[0] >= 0 {
		f.rank = s[0]
	}
	upload(f.d, f.status, []int64{-1}) // the solutions look at it
}

// update is the kernel of that name for a square C, of which it computes the lower triangle.
func (f *factor) update(c cu.DevicePtr, rows int64, a cu.DevicePtr, ai, al int64, weights cu.DevicePtr, depth int64, alpha, beta float64, lean int64) {
	f.d.launch("update", (rows+2*edge-1)/(2*edge), (rows+edge-1)/edge, c, f.stride, rows, rows, a, ai, al, a, ai, al, weights, depth, alpha, beta, int64(1), lean, f.status)
}

// trailing subtracts the product of columns k ≤ l < k+width of L, rows from e on, from the rest.
func (f *factor) trailing(k, width, e int64) {
	if e < f.n {
		f.update(f.at(e, e), f.n-e, f.at(e, k), f.stride, 1, none, width, -1, 1, 0)
	}
}

// cholesky factors blocks of columns, each with the rows below it:
//
//	L11 = chol(A11),  L21 = A21·L11⁻ᵀ,  A22 −= L21·L21ᵀ
func (f *factor) cholesky() {
	for k := int64(0); k < f.n; k += edge {
		width := min(edge, f.n-k)
		e := k + width
		f.d.launch("factor_block", 1, 1, f.at(k, k), f.stride, width, k, f.status)
		if rest := f.n - e; rest > 0 {
			f.d.launch("solve_block", (rest+15)/16, 1, f.at(k, k), f.stride, width, f.at(e, k), f.stride, int64(1), rest, int64(0), f.status)
		}
		f.trailing(k, width, e)
	}
	f.finish()
}

// pivoted is the algorithm of blocked.PivotedCholesky. It returns the order of the rows.
func (f *factor) pivoted(diagonal []float64, tolerance float64) []int64 {
	n := f.n
	numbers := make([]int64, n)
	largest := 0.0
	for i := range numbers {
		numbers[i] = int64(i)
		if diagonal[i] > largest {
			largest = diagonal[i]
		}
	}
	scratch := arena{d: f.d}
	defer scratch.free()
	rest, order, chosen := scratch.alloc(8*n), scratch.alloc(8*n), scratch.alloc(8)
	best := scratch.alloc(16 * ((n + 255) / 256)) // candidates of the kernel column
	upload(f.d, rest, diagonal[:n])
	upload(f.d, order, numbers)
	for from := int64(0); from < n; from += pivots {
		to := min(from+pivots, n)
		for j := from; j < to; j++ {
			f.d.launch("pivot", 1, 1, f.l, f.stride, n, j, tolerance*largest, rest, order, best, chosen, f.status)
			if left := n - j - 1; left > 0 {
				f.d.launch("column", (left+255)/256, 1, f.l, f.stride, n, from, j, tolerance*largest, rest, best, chosen, f.status)
			}
		}
		f.trailing(from, to-from, to)
	}
	f.finish()
	download(f.d, numbers, order)
	return numbers
}

// lowerRows is the number of rows that are copied back at a time.
const lowerRows = 256

// lower sets the lower triangle of a. If the device fails, it restores the rows that it has
// set from the upper triangle, because a is symmetric.
func (f *factor) lower(a []float64) {
	diagonal := make([]float64, f.n)
	for i := range diagonal {
		diagonal[i] = a[int64(i)*(f.n+1)]
	}
	block := make([]float64, min(lowerRows, f.n)*f.stride)
	for i0 := int64(0); i0 < f.n; i0 += lowerRows {
		i1 := min(i0+lowerRows, f.n)
		download(f.d, block[:(i1-i0)*f.stride], f.at(i0, 0))
		if f.d.err != nil {
			for i := range i0 {
				for j := range i {
					a[i*f.n+j] = a[j*f.n+i]
				}
				a[i*f.n+i] = diagonal[i]
			}
			return
		}
		const piece = 16 // rows, so that all cores touch the new memory of a
		_ = inorder.Blocks(int(i1-i0), piece, runtime.GOMAXPROCS(0), func(r0, r1 int) error {
			for r := int64(r0); r < int64(r1); r++ {
				copy(a[(i0+r)*f.n:][:i0+r+1], block[r*f.stride:])
			}
			return nil
		})
	}
}

func (f *factor) Solve(v []float64, c int, trans bool) error {
	return f.d.do(func() { f.solve(v, int64(c), trans) })
}

// fewColumns is the most right-hand sides that are solved one by one, each in one pass over L.
const fewColumns = 16

// solve computes few solutions beside the right-hand sides in one launch.
func (f *factor) solve(v []float64, c int64, trans bool) {
	size := f.rank * c
	if c > f.c {
		f.sized.free()
		f.c = 0
		f.v = f.sized.alloc(8 * (size + f.rank*min(c, fewColumns) + fewColumns))
		if f.d.err == nil {
			f.c = c
		}
	}
	upload(f.d, f.v, v[:size])
	out, solve := f.v, f.solveMany
	if c <= fewColumns {
		out, solve = f.v+cu.DevicePtr(8*size), f.solveFew
	}
	back := int64(0)
	if trans {
		back = 1
	}
	solve(c, back)
	download(f.d, v[:size], out)
}

func (f *factor) solveFew(c, trans int64) {
	blocks, size := (f.rank+edge-1)/edge, f.rank*c
	if f.inverse == 0 {
		f.inverse = f.all.alloc(8 * blocks * edge * edge)
		f.d.launch("invert", blocks, 1, f.l, f.stride, f.rank, f.inverse)
	}
	out, tickets := f.v+cu.DevicePtr(8*size), f.v+cu.DevicePtr(16*size)
	f.d.set(out, math.MaxUint32, 2*size)
	f.d.set(tickets, 0, 2*c)
	f.d.launch("solve", blocks, c, f.l, f.stride, f.rank, f.inverse, f.v, out, c, trans, tickets)
}

// solveMany takes the blocks of rows in their order, or from the last to the first.
func (f *factor) solveMany(c, trans int64) {
	row := func(i int64) cu.DevicePtr { return f.v + cu.DevicePtr(8*i*c) }
	blocks := (f.rank + edge - 1) / edge
	for b := range blocks {
		if trans == 1 {
			b = blocks - 1 - b
		}
		k := b * edge
		width := min(edge, f.rank-k)
		f.d.launch("solve_block", (c+15)/16, 1, f.at(k, k), f.stride, width, row(k), int64(1), c, c, trans, f.status)
		// The rows that are left lose L21·x, or L12ᵀ·x.
		from, rest, a, ai, al := k+width, f.rank-k-width, f.at(k+width, k), f.stride, int64(1)
		if trans == 1 {
			from, rest, a, ai, al = 0, k, f.at(k, 0), 1, f.stride
		}
		if rest > 0 {
			f.d.launch("update", (rest+2*edge-1)/(2*edge), (c+edge-1)/edge, row(from), c, rest, c, a, ai, al, row(k), int64(1), c,
				none, width, -1.0, 1.0, int64(0), int64(0), f.status)
		}
	}
}

// Gram squares L with the weights and factors the result.
func (f *factor) Gram(g, w []float64, lambda float64) (gpu.Factor, error) {
	out, err := f.d.newFactor(f.rank)
	if err != nil {
		return nil, err
	}
	err = f.d.do(func() {
		scratch := arena{d: f.d}
		defer scratch.free()
		weights := scratch.alloc(8 * f.n)
		upload(f.d, weights, w[:f.n])
		out.update(out.l, out.n, f.l, 1, f.stride, weights, f.n, 1, 0, 1)
		f.d.launch("diagonal", (out.n+255)/256, 1, out.l, out.stride, out.n, none, lambda)
		if out.cholesky(); out.rank == out.n {
			out.lower(g)
		}
	})
	if err != nil || out.rank < out.n {
		return nil, errors.Join(err, release(out))
	}
	return out, nil
}
