package panel

import (
	"slices"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Block is a block of rows of K, and the memory for it. It belongs to one goroutine.
type Block[T Float] struct {
	c     *Columns[T]
	kern  *simd.Kernels[T]
	max   int
	rows  int
	a     []T       // [panels][d][6]
	start []T       // [panels][6], of expanded distances
	none  []T       // zeros for a block, where others start
	norms []float64 // |x_i|, if the function asks for norms
	k     []T       // [panels][tiles][6][nr]
	lanes []T       // [panels][6][lanes], sums with one vector
	t     []T       // one panel of a right-hand side
	run   []T       // sums over the rows of the block, if T is not float64
	flat  []T       // one panel of rows before they are interleaved

	// These are the rows beyond the reach of c, which c.far evaluates. See packFar.
	sides []side // of the panels of rows
	out   []bool // the rows that are beyond
	afar  []T    // a, packed for far
	spare []T    // a piece of K, and then its sums with a vector
	other []T
}

// side determines the columns with which a panel of rows is evaluated.
type side uint8

const (
	allNear side = iota // those of the block
	allFar
	mixed // each row with its own
)

// NewBlock returns a block of at most height rows. See [Columns.Height].
func NewBlock[T Float](c *Columns[T], height int) *Block[T] {
	b := new(Block[T])
	b.Reset(c, height)
	return b
}

// Reset makes b a block for other columns, and keeps its memory if that is large enough.
// The zero Block may be reset.
func (b *Block[T]) Reset(c *Columns[T], height int) {
	panels := (height + simd.Rows - 1) / simd.Rows
	b.c, b.kern, b.max, b.rows = c, simd.For[T](), height, 0
	simd.Sized(&b.a, panels*simd.Rows*max(1, c.d))
	simd.Sized(&b.start, panels*simd.Rows)
	simd.Sized(&b.k, panels*simd.Rows*c.padded())
	simd.Sized(&b.none, panels*simd.Rows)
	simd.Sized(&b.lanes, panels*simd.Rows*b.kern.Lanes)
	simd.Sized(&b.t, simd.Rows)
	simd.Sized(&b.run, c.padded())
	simd.Sized(&b.flat, simd.Rows*c.d)
	clear(b.run)
	simd.Sized(&b.norms, panels*simd.Rows)
	b.sides, b.out = slices.Grow(b.sides[:0], panels)[:panels], slices.Grow(b.out[:0], panels*simd.Rows)[:panels*simd.Rows]
	if c.far != nil {
		simd.Sized(&b.afar, len(b.a))
		simd.Sized(&b.spare, min(b.span(), c.tiles)*simd.TileSize[T]())
		simd.Sized(&b.other, simd.Rows*b.kern.Lanes)
	}
}

// subchunk is how many tiles of K are finished before the next. They take 24 KiB, so that
// the function and the product find them in L1.
const subchunk = 64

// span returns the number of tiles whose products are summed in lanes of type T. If tiles are
// finished in registers, every lane has 128 terms for any width of the registers.
func (b *Block[T]) span() int {
	if !b.finished() {
		return subchunk
	}
	return subchunk * b.kern.Lanes / simd.Lanes[T]()
}

// finished reports whether a kernel finishes tiles in registers.
func (b *Block[T]) finished() bool {
	return b.blocks(b.c) != nil && (b.c.far == nil || b.blocks(b.c.far) != nil)
}

func (b *Block[T]) blocks(c *Columns[T]) simd.BlocksFunc[T] {
	return b.kern.Blocks[c.plan.statistic][c.plan.fn]
}

// width returns the lanes of the sums of a row with the first vector.
func (b *Block[T]) width() int {
	if b.finished() {
		return b.kern.Lanes
	}
	return simd.Lanes[T]()
}

// Evaluate sets the block to rows i0 ≤ i < i1 of x, at most as many as its height. If v is
// not nil it also sets t = K·v, row-major rows×n. This costs little more, because each
// piece of K is still in cache.
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
		for s0 := t0; s0 < t1; {
			n := c.alike(s0, min(b.span(), t1-s0))
			for p, panels := 0, 0; p*simd.Rows < b.rows; p += panels {
				panels = b.together(p, s0, v)
				b.piece(p, panels, s0, n, v, t)
			}
			s0 += n
		}
	}
	if v != nil {
		b.scaleRows(t, v.n)
	}
}

// together returns how many row panels from p on are evaluated in one call at the tiles
// from s0 on. With several vectors it is one, so that these find its part of K in L1.
func (b *Block[T]) together(p, s0 int, v *Vectors[T]) int {
	n, side := 1, b.sideOf(p, s0)
	if v == nil || v.n != 1 || side == mixed || !b.finished() {
		return n
	}
	for (p+n)*simd.Rows < b.rows && b.sideOf(p+n, s0) == side {
		n++
	}
	return n
}

// sideOf returns the columns with which row panel p is evaluated at the tiles from s0 on.
func (b *Block[T]) sideOf(p, s0 int) side {
	if b.c.beyond != nil && b.c.beyond[s0] {
		return allFar
	}
	return b.sides[p]
}

// piece computes n tiles of some row panels from p on and tiles from s0 on, and adds their
// products with v to t. A mixed panel comes alone.
func (b *Block[T]) piece(p, panels, s0, n int, v *Vectors[T], t []float64) {
	size := simd.TileSize[T]()
	step := b.c.tiles * size
	k := b.k[p*step+s0*size:]
	switch b.sideOf(p, s0) {
	case allNear:
		b.fill(b.c, b.a, p, panels, s0, n, k, step, v, b.lanes)
	case allFar:
		b.fill(b.c.far, b.afar, p, panels, s0, n, k, step, v, b.lanes)
	case mixed:
		b.fill(b.c, b.a, p, 1, s0, n, k, step, v, b.lanes)
		b.fill(b.c.far, b.afar, p, 1, s0, n, b.spare, step, v, b.other)
		b.choose(p, k[:n*size])
	}
	if v == nil || v.n == 0 {
		return
	}
	for q := range panels {
		b.addLanes(p+q, 0, v.n, b.lanes[q*simd.Rows*b.width():], b.width(), t)
		b.multiply(p+q, s0, n, 1, v, t)
	}
}

// fill sets k to n tiles from s0 on of some row panels from p on, step elements apart, and
// lanes to their products with the first vector. It does so in registers if the function
// allows it, for any number of panels, else for one.
func (b *Block[T]) fill(c *Columns[T], a []T, p, panels, s0, n int, k []T, step int, v *Vectors[T], lanes []T) {
	nr, size := simd.Columns[T](), simd.TileSize[T]()
	x, y, hy := &a[p*simd.Rows*c.d], &c.b[s0*nr*c.d], &c.start[s0*nr]
	hx := &b.none[0]
	if c.plan.half {
		hx = &b.start[p*simd.Rows]
	}
	multiply := v != nil && v.n > 0
	if multiply {
		clear(lanes[:panels*simd.Rows*b.width()])
	}
	if blocks := b.blocks(c); b.finished() && multiply {
		for most := b.most(panels); n > 0; n -= most {
			now := min(most, n)
			blocks(c.d, x, hx, y, hy, &k[0], step, now, panels, &v.data[s0*nr], &lanes[0], &c.par[0])
			if s0 += now; now < n {
				y, hy, k = &c.b[s0*nr*c.d], &c.start[s0*nr], k[now*size:]
			}
		}
		return
	}
	b.kern.Tile[c.plan.statistic](c.d, x, hx, y, hy, &k[0], size, n)
	b.kern.Func[c.plan.fn](&k[0], n, &c.par[0])
	if multiply {
		b.kern.Multiply(&k[0], &v.data[s0*nr], &lanes[0], n)
	}
}

// most returns how many tiles of some row panels go into one call, so that it stays below 0.1 ms.
func (b *Block[T]) most(panels int) int {
	p := b.kern.Panels
	return max(p, 40000/((b.c.d+16)*panels)/p*p)
}

// choose replaces the rows of panel p that are beyond reach, in k and lanes, by
// those in spare and other.
func (b *Block[T]) choose(p int, k []T) {
	nr, size, lanes := simd.Columns[T](), simd.TileSize[T](), b.width()
	for r := range simd.Rows {
		if !b.out[p*simd.Rows+r] {
			continue
		}
		for t := r * nr; t < len(k); t += size {
			copy(k[t:t+nr], b.spare[t:])
		}
		copy(b.lanes[r*lanes:][:lanes], b.other[r*lanes:])
	}
}

// packRows packs rows from i0 on, panel by panel.
func packRows[T, S Float](b *Block[T], x Rows[S], i0 int) {
	for p := 0; p < b.rows; p += simd.Rows {
		n := min(simd.Rows, b.rows-p)
		packPanel(b.c, x, i0+p, n, simd.Rows, b.a[p*b.c.d:], b.start[p:], b.norms[p:], b.flat)
		b.sides[p/simd.Rows] = allNear
		if b.c.far != nil {
			packFar(b, x, i0, p, n)
		}
	}
}

// packFar also packs the n rows from p on for direct differences if one of them, or a
// column, is beyond reach.
func packFar[T, S Float](b *Block[T], x Rows[S], i0, p, n int) {
	beyond := 0
	for r := range simd.Rows {
		b.out[p+r] = !(-b.start[p+r] <= b.c.limit)
		if b.out[p+r] {
			beyond++
		}
	}
	if beyond == 0 && b.c.beyond == nil {
		return
	}
	packPanel(b.c.far, x, i0+p, n, simd.Rows, b.afar[p*b.c.d:], nil, nil, b.flat)
	switch beyond {
	case 0:
	case simd.Rows:
		b.sides[p/simd.Rows] = allFar
	default:
		b.sides[p/simd.Rows] = mixed
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
		clear(b.lanes[:simd.Rows*simd.Lanes[T]()])
		b.kern.Multiply(&b.k[(p*c.tiles+s0)*tile], &v.data[q*c.padded()+s0*nr], &b.lanes[0], n)
		b.addLanes(p, q, v.n, b.lanes, simd.Lanes[T](), t)
	}
}

// addLanes adds the sums of row panel p over their lanes to column q of t, rows×n.
func (b *Block[T]) addLanes(p, q, n int, sums []T, lanes int, t []float64) {
	for r := range min(simd.Rows, b.rows-p*simd.Rows) {
		s := 0.0
		for _, e := range sums[r*lanes:][:lanes] {
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

// AddTransposed adds Kᵀt to the sum, with t row-major, rows×n.
func (b *Block[T]) AddTransposed(sum *Sum[T], t []float64) {
	c := b.c
	size := c.padded()
	for q := range sum.n {
		to := sum.data[q*size:][:size]
		// float64 sums go directly to their place, others after the block.
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
	same, ok := any(b.k).([]float64)
	ok = ok && c.scale == 1
	for i := 0; i < b.rows && c.m > 0; i++ {
		row := dst[i*ld:][:c.m]
		start := (i/simd.Rows*c.tiles*simd.Rows + i%simd.Rows) * nr
		for j := 0; j < c.m; j += nr {
			at, n := start+j*simd.Rows, min(nr, c.m-j)
			if ok {
				copy(row[j:], same[at:][:n])
				continue
			}
			for q, v := range b.k[at:][:n] {
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
