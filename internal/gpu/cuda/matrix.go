//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bkbtuner/bkb/internal/gpu"
)

const (
	slab = 8 // coordinates that a kernel reads at a time
	// scratchBytes is the memory for rows of K that are used once, to stay in L2, if a chunk
	// needs no more.
	scratchBytes = 32 << 20
	// reserve is the part of the free memory that a stored K leaves.
	reserve = 16
	// usual is the number of columns of vectors that the memory is checked for.
	usual = 8
)

// layout is the shape of a matrix in memory.
type layout struct {
	float  string // of names of kernels
	size   int64  // of an element of K
	side   int64  // rows of a panel
	n, m   int64
	d0     int64 // coordinates
	depth  int64 // padded
	np, mp int64 // panels of X and Y
}

func newLayout(p gpu.Problem) layout {
	l := layout{float: "double", size: 8, side: 64, n: int64(p.X.N), m: int64(p.Y.N)}
	if p.Single {
		l.float, l.size, l.side = "float", 4, 128
	}
	l.d0, l.depth = int64(p.Y.D), (int64(p.Y.D)+slab-1)/slab*slab
	l.np, l.mp = (l.n+l.side-1)/l.side, (l.m+l.side-1)/l.side
	return l
}

func (l layout) rows() int64    { return l.np * l.side }
func (l layout) columns() int64 { return l.mp * l.side }

// chunk is the number of panels whose products are added before they are added to others.
// It is fixed, so that the bits of a product do not depend on the memory, and those of Kv
// do not depend on the number of devices.
const chunk = 4

// blocks is the number of blocks of a launch, which bounds the memory for sums of chunks. It
// is many for each multiprocessor of a large device. Tests set it, and no bit depends on it.
var blocks = int64(16384)

func chunks(panels int64) int64 { return (panels + chunk - 1) / chunk }

// rowsAtOnce is the number of panels of rows of K that a launch multiplies by a vector.
func (l layout) rowsAtOnce() int64 { return max(1, min(l.np, blocks/chunks(l.mp))) }

// chunksAtOnce is the number of chunks of such panels of Kᵀ.
func (l layout) chunksAtOnce() int64 { return max(1, min(chunks(l.np), blocks/l.mp)) }

// sides is the memory of X and Y.
func (l layout) sides() int64 {
	side := func(panels int64) int64 { return panels * (l.side*(l.depth+1) + 1) * l.size }
	return side(l.np) + side(l.mp) + specBytes
}

// vectors is the memory for products with c columns.
func (l layout) vectors(c int64) int64 {
	width := (c + 3) / 4 * 4
	return 8 * ((l.rows()+l.columns())*width + 4*l.partial())
}

// partial is the number of sums of chunks of a product with one column.
func (l layout) partial() int64 {
	return l.side * max(l.rowsAtOnce()*chunks(l.mp), l.mp*l.chunksAtOnce())
}

// matrix is K on a device.
type matrix struct {
	layout
	d      *device
	first  layout // n and np can be less in a batch
	fused  bool   // the kernel computes products without K in memory
	fills  bool   // it is a Gramian
	cosine bool   // norms are phases
	all    arena
	sized  arena // for vectors of up to c columns
	c      int64
	spec   cu.DevicePtr
	x, y   side
	k      cu.DevicePtr // K, or a few panels of its rows
	panels int64        // of rows of K in k, np if it is stored
	filled bool         // the stored K
	u, v   cu.DevicePtr // n×c and M×c
	part   cu.DevicePtr
}

// side is X or Y in memory, and their norms, and the largest of each panel.
type side struct{ data, norms, most cu.DevicePtr }

// from is the side from panel p on.
func (s side) from(m *matrix, p int64) side {
	at := func(start cu.DevicePtr, elements int64) cu.DevicePtr { return start + cu.DevicePtr(p*elements*m.size) }
	return side{at(s.data, m.side*m.depth), at(s.norms, m.side), at(s.most, 1)}
}

// spec is that of product.cu.
type spec struct {
	statistic, function, power int64
	p0, p1, factor, reach      float64
}

const specBytes = int64(unsafe.Sizeof(spec{}))

func specOf(f gpu.Function) spec {
	s := spec{int64(f.Statistic), int64(f.Profile), int64(f.Exponent), f.P0, f.P1, f.Factor, -1}
	if f.Expand {
		s.reach = f.Reach
	}
	return s
}

// NewMatrix copies X and Y to the device.
func (d *device) NewMatrix(p gpu.Problem) (gpu.Matrix, error) {
	m, err := d.newMatrix(p, false)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// NewGramian does so for K(X, X).
func (d *device) NewGramian(p gpu.Problem) (gpu.Gramian, error) {
	if p.Single || p.X.N != p.Y.N {
		panic("cuda: precondition: a Gramian is in float64 and of equal X and Y")
	}
	m, err := d.newMatrix(p, true)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (d *device) newMatrix(p gpu.Problem, fills bool) (*matrix, error) {
	l := newLayout(p)
	m := &matrix{layout: l, d: d, all: arena{d: d}, sized: arena{d: d}}
	m.first, m.cosine, m.fills = l, p.Function.Profile == gpu.Cosine, fills
	m.fused = p.Function.Statistic == gpu.Squared && p.Function.Profile == gpu.Decay
	err := d.do(m.plan)
	if err == nil {
		if p.Single {
			err = load[float32](m, p)
		} else {
			err = load[float64](m, p)
		}
	}
	if err != nil {
		return nil, errors.Join(err, release(m))
	}
	return m, nil
}

// plan checks the memory and takes it.
func (m *matrix) plan() {
	free, _ := m.d.memory()
	row := m.side * m.columns() * m.size // bytes of a panel of rows of K
	need := m.sides() + m.vectors(usual)
	if m.fills {
		need += 8 * m.n * (edge + 2*usual) // of the factor
	}
	m.panels = 0
	switch {
	case need+row*m.np <= free-free/reserve:
		m.panels = m.np
	case !m.fused || m.fills:
		m.panels = min(m.np, max(1, min(scratchBytes/row, (free-need)/row)/chunk)*chunk)
	}
	if need += row * m.panels; m.d.err == nil && need > free {
		what := fmt.Sprintf("a product with %d rows, %d coordinates and %d centres in %s", m.n, m.d0, m.m, map[int64]string{4: "float32", 8: "float64"}[m.size])
		m.d.err = &gpu.MemoryError{Device: m.d.info.Name, What: what, Need: need, Free: free}
	}
	for _, b := range []struct {
		to *cu.DevicePtr
		n  int64
	}{
		{&m.spec, specBytes},
		{&m.x.data, m.np * m.side * m.depth * m.size},
		{&m.x.norms, m.rows() * m.size},
		{&m.x.most, m.np * m.size},
		{&m.y.data, m.mp * m.side * m.depth * m.size},
		{&m.y.norms, m.columns() * m.size},
		{&m.y.most, m.mp * m.size},
		{&m.k, row * m.panels},
	} {
		if b.n > 0 { // K may not be stored
			*b.to = m.all.alloc(b.n)
		}
	}
	m.grow(1)
}

// grow takes memory for vectors of c columns.
func (m *matrix) grow(c int64) {
	if c <= m.c {
		return
	}
	m.sized.free()
	m.c = 0
	width := (c + 3) / 4 * 4
	m.u, m.v, m.part = m.sized.alloc(8*m.first.rows()*width), m.sized.alloc(8*m.columns()*width), m.sized.alloc(32*m.first.partial())
	if m.d.err == nil {
		m.c = width
	}
}

// load packs X and Y in panels and copies them.
func load[T float32 | float64](m *matrix, p gpu.Problem) error {
	s := specOf(p.Function)
	words := *(*[specBytes / 8]int64)(unsafe.Pointer(&s))
	if err := m.d.do(func() { upload(m.d, m.spec, words[:]) }); err != nil {
		return err
	}
	for _, one := range []struct {
		to   side
		rows gpu.Rows
	}{{m.x, p.X}, {m.y, p.Y}} {
		if m.cosine && one.rows.Phase == nil {
			one.rows.Phase = make([]float64, one.rows.N)
		}
		if err := loadSide[T](m, one.to, one.rows); err != nil {
			return err
		}
	}
	return nil
}

// packed is the number of panels that are packed and copied at a time, 6 MB of float32
// for 90 coordinates.
const packed = 128

func loadSide[T float32 | float64](m *matrix, to side, rows gpu.Rows) error {
	panels := (rows.N + int(m.side) - 1) / int(m.side)
	norms, largest := make([]T, panels*int(m.side)), make([]T, panels)
	buffer := make([]T, min(packed, panels)*int(m.side*m.depth))
	for p0 := 0; p0 < panels; p0 += packed {
		p1 := min(p0+packed, panels)
		clear(buffer)
		var group sync.WaitGroup
		workers := runtime.GOMAXPROCS(0)
		for w := range workers {
			group.Go(func() {
				row := make([]float64, rows.D)
				for p := p0 + w; p < p1; p += workers {
					largest[p] = pack(buffer[(p-p0)*int(m.side*m.depth):], norms[p*int(m.side):], row, rows, p*int(m.side), int(m.side))
				}
			})
		}
		group.Wait()
		at := to.data + cu.DevicePtr(int64(p0)*m.side*m.depth*m.size)
		if err := m.d.do(func() { upload(m.d, at, buffer[:(p1-p0)*int(m.side*m.depth)]) }); err != nil {
			return err
		}
	}
	return m.d.do(func() {
		upload(m.d, to.norms, norms)
		upload(m.d, to.most, largest)
	})
}

// pack writes a panel from row i0 on, and norms or phases. It returns the largest norm.
func pack[T float32 | float64](dst, norms []T, row []float64, rows gpu.Rows, i0, side int) T {
	largest := T(0)
	for r := range min(side, rows.N-i0) {
		rows.Row(row, i0+r)
		norm := 0.0
		for k, v := range row {
			t := T(v)
			dst[k*side+r] = t
			norm += float64(t) * float64(t)
		}
		largest = max(largest, T(norm))
		norms[r] = T(norm)
		if rows.Phase != nil {
			norms[r] = T(rows.Phase[i0+r])
		}
	}
	return largest
}

func (m *matrix) Fill(dst []float64) error {
	return m.d.do(func() {
		row := make([]float64, m.side*m.columns()) // of panels
		for p0 := int64(0); p0 < m.np; p0 += m.panels {
			p1 := min(p0+m.panels, m.np)
			m.fill(p0, p1)
			for p := p0; p < p1 && m.d.err == nil; p++ {
				download(m.d, row, m.k+cu.DevicePtr(8*(p-p0)*m.side*m.columns()))
				for r := p * m.side; r < min((p+1)*m.side, m.n); r++ {
					copy(dst[r*m.m:(r+1)*m.m], row[(r-p*m.side)*m.columns():])
				}
			}
		}
		m.filled = m.d.err == nil && m.Stored()
	})
}

// Factor takes the memory of K. Its rows may be further apart than they are long.
func (m *matrix) Factor(l, diagonal []float64, tolerance float64, perm []int) (gpu.Factor, int, error) {
	if !m.Stored() {
		panic("cuda: precondition: a Gramian is factored in memory, and once")
	}
	f := &factor{d: m.d, all: arena{d: m.d}, sized: arena{d: m.d}, n: m.n, stride: m.columns()}
	err := m.d.do(func() {
		m.fill(0, m.np)
		f.begin()
		scratch := arena{d: m.d}
		defer scratch.free()
		d := scratch.alloc(8 * m.n)
		upload(m.d, d, diagonal[:m.n])
		m.d.launch("diagonal", (m.n+255)/256, 1, m.k, f.stride, m.n, d, 0.0)
		m.all.move(m.k, m.bytes(), &f.all)
		f.l, m.k = m.k, 0
	})
	if err != nil {
		return nil, 0, errors.Join(err, release(f))
	}
	return f.factor(l, diagonal, tolerance, perm)
}

// bytes is the memory of the stored part of K.
func (m *matrix) bytes() int64 { return m.side * m.columns() * m.size * m.panels }

func (m *matrix) SetX(x gpu.Rows) error {
	if int64(x.N) > m.first.n {
		panic(fmt.Sprintf("cuda: precondition: a batch of %d rows where %d are the most", x.N, m.first.n))
	}
	m.n, m.np, m.filled = int64(x.N), (int64(x.N)+m.side-1)/m.side, false
	if m.cosine && x.Phase == nil {
		x.Phase = make([]float64, x.N)
	}
	if m.size == 4 {
		return loadSide[float32](m, m.x, x)
	}
	return loadSide[float64](m, m.x, x)
}

func (m *matrix) Stored() bool { return m.panels >= m.np && m.k != 0 }

func (m *matrix) Close() error {
	return m.d.do(func() {
		m.sized.free()
		m.all.free()
	})
}

func (m *matrix) Apply(dst, v []float64, c int) error { return m.multiply(dst, v, int64(c), false) }

func (m *matrix) ApplyT(dst, u []float64, c int) error { return m.multiply(dst, u, int64(c), true) }

func (m *matrix) Gram(dst, v []float64, c int) error {
	return m.multiply(dst, v, int64(c), false, true)
}

// multiply sets dst to the product of v with K, or with Kᵀ where trans is set, one after another.
func (m *matrix) multiply(dst, v []float64, c int64, trans ...bool) error {
	return m.d.do(func() {
		m.grow(c)
		var to cu.DevicePtr
		for i, trans := range trans {
			from, length, padded := m.v, m.m, m.columns()
			to = m.u
			if trans {
				from, to, length, padded = m.u, m.v, m.n, m.rows()
			}
			if i == 0 {
				upload(m.d, from, v)
			}
			m.d.set(from+cu.DevicePtr(8*length*c), 0, 2*(padded-length)*c) // rows that do not exist
			m.passes(from, to, c, trans)
		}
		if m.d.err == nil {
			m.d.check("cuCtxSynchronize", cu.Synchronize())
		}
		download(m.d, dst, to)
	})
}

// passes multiplies with all of K at once, or with a few panels of its rows at a time.
func (m *matrix) passes(from, to cu.DevicePtr, c int64, trans bool) {
	if m.panels == 0 {
		m.product(from, to, c, trans, 0, m.np)
		return
	}
	for p0 := int64(0); p0 < m.np; p0 += m.panels {
		p1 := min(p0+m.panels, m.np)
		if !m.filled {
			m.fill(p0, p1)
			m.filled = m.d.err == nil && m.Stored()
		}
		m.product(from, to, c, trans, p0, p1)
	}
}

// fill computes the panels p0 ≤ p < p1 of rows of K. A grid has at most 65,535 blocks in y.
func (m *matrix) fill(p0, p1 int64) {
	m.d.launch("fill_"+m.float, p1-p0, m.mp, m.spec, m.x.data, m.x.norms, m.x.most, m.y.data, m.y.norms, m.y.most, m.depth, p0, m.k, m.columns())
}

// product multiplies with the panels p0 ≤ p < p1 of rows of K, where p0 begins a chunk. It
// adds products with Kᵀ to those of the rows before p0.
func (m *matrix) product(from, to cu.DevicePtr, c int64, trans bool, p0, p1 int64) {
	for p := p0; p < p1; {
		next := min(p1, p+m.rowsAtOnce())
		if trans {
			// The kernel cuts evenly, so that panels beyond the last chunk are apart.
			next = p1
			if full := min((p1-p)/chunk, m.chunksAtOnce()); full > 0 {
				next = p + full*chunk
			}
		}
		m.launchProduct(from, to, c, trans, p0, p, next)
		p = next
	}
}

// launchProduct multiplies with the panels p ≤ q < next of rows of K in one launch for each
// four columns. The first row of panel p0 is the first in m.k.
func (m *matrix) launchProduct(from, to cu.DevicePtr, c int64, trans bool, p0, p, next int64) {
	x, y := m.x.from(m, p), m.y
	rows, columns := next-p, m.mp
	kernel, k := "fused", m.k
	if k != 0 {
		kernel = "rows"
		k += cu.DevicePtr((p - p0) * m.side * m.columns() * m.size)
	}
	first := cu.DevicePtr(8 * p * m.side * c) // of u
	existing := min(m.n-p*m.side, rows*m.side)
	dst, src, add := to+first, from, int64(0)
	if trans {
		x, y = y, x
		rows, columns = columns, rows
		if k != 0 {
			kernel = "columns"
		}
		dst, src, existing = to, from+first, m.m
		if p > 0 {
			add = 1
		}
	}
	cut := chunks(columns)
	for q := int64(0); q < c; {
		width := int64(1)
		if c-q > 1 {
			width = 4
		}
		m.d.launch(fmt.Sprintf("%s_%s_%d", kernel, m.float, width), rows, cut,
			m.spec, x.data, x.norms, x.most, y.data, y.norms, y.most, m.depth, k, m.columns(), rows*m.side, columns, src, c, q, m.part)
		m.d.launch("collect", (existing+255)/256, 1, dst, m.part, cut, width, rows*m.side, existing, c, q, add)
		q += width
	}
}
