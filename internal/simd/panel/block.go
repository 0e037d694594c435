package panel

import "github.com/bkbtuner/bkb/internal/simd"

// Block is a block of rows of K, and the memory for it. It belongs to one
// goroutine.
type Block[T Float] struct {
	c     *Columns[T]
	kern  *simd.Kernels[T]
	max   int
	rows  int
	a     []T       // [panels][d][6]
	start []T       // [panels][6]
	norms []float64 // |x_i|, if the function asks for norms
	k     []T       // [panels][tiles][6][nr]
	lanes []T       // sums of one panel of rows with one vector
	t     []T       // one panel of a right-hand side
	run   []T       // sums over the rows of the block, if T is not float64
	flat  []T       // one panel of rows before they are interleaved
}

// NewBlock returns a block of at most height rows; see [Columns.Height].
func NewBlock[T Float](c *Columns[T], height int) *Block[T] {
	b := new(Block[T])
	b.Reset(c, height)
	return b
}

// Reset makes b a block for other columns, keeping its memory where that is
// enough. The zero Block may be reset.
func (b *Block[T]) Reset(c *Columns[T], height int) {
	panels := (height + simd.Rows - 1) / simd.Rows
	b.c, b.kern, b.max, b.rows = c, simd.For[T](), height, 0
	grow(&b.a, panels*simd.Rows*max(1, c.d))
	grow(&b.start, panels*simd.Rows)
	grow(&b.k, panels*simd.Rows*c.padded())
	grow(&b.lanes, simd.TileSize[T]()/2)
	grow(&b.t, simd.Rows)
	grow(&b.run, c.padded())
	grow(&b.flat, simd.Rows*c.d)
	if !c.plan.half {
		clear(b.start)
	}
	clear(b.run)
	grow(&b.norms, panels*simd.Rows)
}

// grow makes *s n elements of unspecified value.
func grow[E Float](s *[]E, n int) {
	if cap(*s) < n {
		*s = simd.Aligned[E](n)
	}
	*s = (*s)[:n]
}

// subchunk is how many tiles of K are finished before the next: 24 KiB,
// so that the function and the product find them in L1.
const subchunk = 64

// Evaluate sets the block to rows i0 ≤ i < i1 of x, of which there are at most
// its height. If v is not nil it also sets t = K·v, row-major rows×n, at the cost of
// little more, since each piece of K is still at hand.
func Evaluate[T, S Float](b *Block[T], x Rows[S], i0, i1 int, v *Vectors[T], t []float64) {
	c := b.c
	if i1-i0 > b.max || i0 < 0 || i1 > x.N || x.D != c.d {
		panic("panel: precondition: rows are in the range of x and of the block")
	}
	b.rows = i1 - i0
	packRows(b, x, i0)
	if v != nil {
		clear(t[:b.rows*v.n])
	}
	for t0 := 0; t0 < c.tiles; t0 += c.chunk {
		t1 := min(t0+c.chunk, c.tiles)
		for p := 0; p*simd.Rows < b.rows; p++ {
			for s0 := t0; s0 < t1; s0 += subchunk {
				b.piece(p, s0, min(subchunk, t1-s0), v, t)
			}
		}
	}
	if v != nil {
		b.scaleRows(t, v.n)
	}
}

// piece computes n tiles of row panel p from s0 on, and adds their products with v
// to t, the first in registers where the function is one for that.
func (b *Block[T]) piece(p, s0, n int, v *Vectors[T], t []float64) {
	c := b.c
	nr := simd.Columns[T]()
	a, ha := &b.a[p*simd.Rows*c.d], &b.start[p*simd.Rows]
	y, hy := &c.b[s0*nr*c.d], &c.start[s0*nr]
	k := &b.k[(p*c.tiles+s0)*simd.TileSize[T]()]
	if fused := b.kern.Fused[c.plan.statistic][c.plan.fn]; fused != nil && v != nil && v.n > 0 {
		clear(b.lanes)
		fused(c.d, a, ha, y, hy, k, n, &v.data[s0*nr], &b.lanes[0], &c.par[0])
		b.addLanes(p, 0, v.n, t)
		b.multiply(p, s0, n, 1, v, t)
		return
	}
	b.kern.Tile[c.plan.statistic](c.d, a, ha, y, hy, k, n)
	b.kern.Func[c.plan.fn](k, n, &c.par[0])
	if v != nil {
		b.multiply(p, s0, n, 0, v, t)
	}
}

// packRows packs rows from i0 on, panel by panel.
func packRows[T, S Float](b *Block[T], x Rows[S], i0 int) {
	for p := 0; p < b.rows; p += simd.Rows {
		packPanel(b.c, b.c.plan.scaleX, x, i0+p, min(simd.Rows, b.rows-p), simd.Rows, b.a[p*b.c.d:], b.start[p:], b.norms[p:], b.flat)
	}
}

// interleave turns width rows of d elements, one after the other, into a panel.
func interleave[T Float](kern *simd.Kernels[T], dst, rows []T, d, width int) {
	n := d / 4
	for r := 0; n > 0 && r < width; r += 4 {
		r := min(r, width-4) // the last four overlap if width is 6
		kern.Transpose(&dst[r], width, &rows[r*d], d, n)
	}
	for l := 4 * n; l < d; l++ {
		for r := range width {
			dst[l*width+r] = rows[r*d+l]
		}
	}
}

// multiply adds the product of n tiles from s0 on of row panel p with the vectors
// from first on to t.
func (b *Block[T]) multiply(p, s0, n, first int, v *Vectors[T], t []float64) {
	c := b.c
	nr, tile := simd.Columns[T](), simd.TileSize[T]()
	for q := first; q < v.n; q++ {
		clear(b.lanes)
		b.kern.Multiply(&b.k[(p*c.tiles+s0)*tile], &v.data[q*c.padded()+s0*nr], &b.lanes[0], n)
		b.addLanes(p, q, v.n, t)
	}
}

// addLanes adds the sums of row panel p over their lanes to column q of t, rows×n.
func (b *Block[T]) addLanes(p, q, n int, t []float64) {
	lanes := simd.Columns[T]() / 2
	for r := range min(simd.Rows, b.rows-p*simd.Rows) {
		s := 0.0
		for _, e := range b.lanes[r*lanes:][:lanes] {
			s += float64(e)
		}
		t[(p*simd.Rows+r)*n+q] += s
	}
}

func (b *Block[T]) scaleRows(t []float64, n int) {
	if !b.c.plan.unit {
		return
	}
	for i := range b.rows {
		for q := range n {
			t[i*n+q] *= b.norms[i]
		}
	}
}

// Multiply sets t = K·v for the block that was evaluated last.
func (b *Block[T]) Multiply(v *Vectors[T], t []float64) {
	clear(t[:b.rows*v.n])
	for p := 0; p*simd.Rows < b.rows; p++ {
		for s0 := 0; s0 < b.c.tiles; s0 += subchunk {
			b.multiply(p, s0, min(subchunk, b.c.tiles-s0), 0, v, t)
		}
	}
	b.scaleRows(t, v.n)
}

// AddTransposed adds Kᵀt to the sum; t is row-major, rows×n.
func (b *Block[T]) AddTransposed(sum *Sum[T], t []float64) {
	c := b.c
	size := c.padded()
	for q := range sum.n {
		to := sum.data[q*size:][:size]
		// float64 sums go straight to their place, others after the block.
		run, direct := any(to).([]T)
		if !direct {
			run = b.run
		}
		for p := 0; p*simd.Rows < b.rows; p++ {
			for r := range b.t {
				b.t[r] = 0
				if i := p*simd.Rows + r; i < b.rows {
					v := t[i*sum.n+q]
					if c.plan.unit {
						v *= b.norms[i]
					}
					b.t[r] = T(v)
				}
			}
			b.forTiles(func(s0, n int) {
				b.kern.MultiplyT(&b.k[(p*c.tiles+s0)*simd.TileSize[T]()], &b.t[0], &run[s0*simd.Columns[T]()], n)
			})
		}
		if !direct && size > 0 {
			b.kern.Drain(&to[0], &run[0], size/16)
		}
	}
}

// forTiles calls f for pieces of a row panel short enough for one call.
func (b *Block[T]) forTiles(f func(s0, n int)) {
	const most = 1024
	for s0 := 0; s0 < b.c.tiles; s0 += most {
		f(s0, min(most, b.c.tiles-s0))
	}
}

// Copy sets dst[i·ld + j] = k(x_i, y_j) for the rows of the block.
func (b *Block[T]) Copy(dst []float64, ld int) {
	c := b.c
	nr := simd.Columns[T]()
	for i := 0; i < b.rows && c.m > 0; i++ {
		row := dst[i*ld:][:c.m]
		at := b.k[(i/simd.Rows*c.tiles*simd.Rows+i%simd.Rows)*nr:]
		for j := 0; j < c.m; j += nr {
			from := at[j*simd.Rows:][:min(nr, c.m-j)]
			for q, v := range from {
				row[j+q] = float64(v) * c.scale
			}
		}
		if c.plan.unit {
			for j := range row {
				row[j] *= b.norms[i] * c.norms[j]
			}
		}
	}
}
