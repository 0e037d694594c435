package sketch

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/inorder"
	"github.com/bkbtuner/bkb/internal/simd"
)

const (
	// writtenElements is the size of a tile of features that are written out, 256 KiB.
	// They are used twice and should be in L2 the second time.
	writtenElements = 1 << 15
	// aloneElements is the number of features that are too few to share among workers.
	aloneElements = 1 << 14
	// ahead is the number of partial sums that may wait, for each worker except one.
	ahead = 3
)

// FeatureOperator is Φ = φ(X), n×M, as a linear map. It multiplies with the features of
// one batch of rows after the other.
//
//	rows ── tiles, in order ──► workers: t = Φw, f(t), part = Φᵀt
//	dst ◄── parts added in the order of the tiles ──┘
//
// Cosines of dense rows and linear features are multiplied in registers and caches and
// never written out. Other features are written tile by tile.
//
// Vectors may have several columns. w is M×c, row-major, for any c ≥ 1 that follows from the
// length of w. Results do not depend on the number of workers. Memory beside the map is
// O(workers·M·c) and a tile of 256 KiB for each worker, kept between calls. One goroutine at a
// time may use it.
//
// The products return a *kernel.ShapeError, kernel.ErrExited, or the errors of [FeatureMap].Apply
// for the first bad tile. On an error dst of Apply is unspecified, and other results are
// unchanged. A panic of the map or of a function of the caller reaches the caller.
type FeatureOperator struct {
	phi     FeatureMap
	m       int
	fast    multiplier // nil if the map has none
	workers []*featureWorker
	acc     []float64   // M×c, becomes dst, which may overlap an argument
	sum     inorder.Sum // into acc
	runner  inorder.Runner

	device     gpu.Matrix // or nil
	deviceRows int        // that it takes
}

// multiplier is a map with products of its own.
type multiplier interface {
	// checkRows verifies all rows of a batch, as Apply does.
	checkRows(x kernel.Rows) error
	// multiplies reports whether there are products for rows like x.
	multiplies(x kernel.Rows) bool
	// height is the best number of rows of a tile, a multiple of 6.
	height() int
	// newProducts returns the memory of one goroutine.
	newProducts() tileProducts
}

// tileProducts computes t = Φw, f(t) and part = Φᵀt for rows i0 ≤ i < i1 of x. If w is
// missing, t is an input. If part is missing, t is the result.
type tileProducts interface {
	// set takes w, M×c. share takes the w of another goroutine.
	set(w []float64, c int)
	share(from tileProducts)
	multiply(x kernel.Rows, i0, i1, c int, forward bool, t []float64, f func(row int, t []float64), part []float64) error
}

// featureWorker is the memory of one goroutine.
type featureWorker struct {
	fast, written tileProducts
	t, part       []float64
}

// NewFeatureOperator returns the operator of a map for a number of workers, at least 1.
func NewFeatureOperator(phi FeatureMap, workers int) *FeatureOperator {
	o := &FeatureOperator{phi: phi, m: phi.Features()}
	o.fast, _ = phi.(multiplier)
	for range max(1, workers) {
		o.workers = append(o.workers, new(featureWorker))
	}
	return o
}

// Apply sets dst = Φ(X)·w, n×c.
func (o *FeatureOperator) Apply(dst []float64, x kernel.Rows, w []float64) error {
	c, err := o.columns("w (M×c)", w)
	if err != nil {
		return err
	}
	if err := o.check("dst (n×c)", dst, x.Len()*c); err != nil {
		return err
	}
	return o.run(&batch{x: x, c: c, forward: true, w: w, t: dst})
}

// Gram sets dst = Φ(X)ᵀf(Φ(X)·w), M×c, and evaluates features only once. f changes rows
// of Φw in place, and the first of them has the number row. It is called once for each
// row, concurrently, and must depend only on its arguments. dst may be w.
func (o *FeatureOperator) Gram(dst []float64, x kernel.Rows, w []float64, f func(row int, t []float64)) error {
	c, err := o.columns("w (M×c)", w)
	if err != nil {
		return err
	}
	if err := o.check("dst (M×c)", dst, len(w)); err != nil {
		return err
	}
	b := &batch{x: x, c: c, forward: true, w: w, f: f, dst: dst}
	if done, err := o.gramOnDevice(b); done {
		return err
	}
	return o.run(b)
}

func (o *FeatureOperator) columns(what string, v []float64) (int, error) {
	if len(v) == 0 || len(v)%o.m != 0 {
		return 0, &kernel.ShapeError{In: "sketch", What: what, Got: len(v), Want: fmt.Sprintf("a positive multiple of %d", o.m)}
	}
	return len(v) / o.m, nil
}

func (o *FeatureOperator) check(what string, v []float64, want int) error {
	if len(v) != want {
		return &kernel.ShapeError{In: "sketch", What: what, Got: len(v), Want: fmt.Sprint(want)}
	}
	return nil
}

// batch is one product.
type batch struct {
	op      *FeatureOperator
	x       kernel.Rows
	c       int
	forward bool // t = Φw comes first
	w, t    []float64
	f       func(row int, t []float64)
	dst     []float64 // nil if t is the result
	fast    bool
	rows    int // of a tile
	next    int // tile
}

func (o *FeatureOperator) run(b *batch) error {
	b.op = o
	n := b.x.Len()
	if o.fast != nil && o.fast.multiplies(b.x) {
		if err := o.fast.checkRows(b.x); err != nil {
			return err
		}
		b.fast = true
	}
	b.rows = o.tileRows(n, b.fast)
	tiles := (n + b.rows - 1) / b.rows
	workers := min(len(o.workers), max(1, tiles))
	if n*o.m < aloneElements {
		workers = 1
	}
	for _, w := range o.workers[:workers] {
		w.prepare(b, o.workers[0])
	}
	if b.dst != nil {
		simd.Sized(&o.acc, len(b.dst))
		o.sum.Reset(o.acc, ahead*(workers-1))
	}
	if err := o.runner.Run(workers, b); err != nil {
		return err
	}
	copy(b.dst, o.acc)
	return nil
}

// tileRows returns the rows of a tile, which depend only on n and M. Tiles that are
// multiplied in registers are of similar size and even in number.
func (o *FeatureOperator) tileRows(n int, fast bool) int {
	if !fast {
		return max(1, min(n, 256, writtenElements/o.m)/simd.Rows) * simd.Rows
	}
	tiles := max(1, (n+o.fast.height()-1)/o.fast.height())
	tiles += tiles % 2
	return max(1, (n+tiles*simd.Rows-1)/(tiles*simd.Rows)) * simd.Rows
}

// prepare allocates the memory for a batch. The first worker takes w for all.
func (w *featureWorker) prepare(b *batch, first *featureWorker) {
	p := w.products(b)
	switch {
	case !b.forward:
	case w == first:
		p.set(b.w, b.c)
	default:
		p.share(first.products(b))
	}
	if b.t == nil {
		simd.Sized(&w.t, b.rows*b.c)
	}
	if b.dst != nil {
		simd.Sized(&w.part, b.op.m*b.c)
	}
}

func (w *featureWorker) products(b *batch) tileProducts {
	if b.fast {
		if w.fast == nil {
			w.fast = b.op.fast.newProducts()
		}
		return w.fast
	}
	if w.written == nil {
		w.written = &writtenProducts{phi: b.op.phi, m: b.op.m}
	}
	return w.written
}

// Take implements [inorder.Work], with tiles as tasks.
func (b *batch) Take(int) (int, bool, error) {
	b.next++
	return b.next - 1, (b.next-1)*b.rows < b.x.Len(), nil
}

// Do multiplies with a tile.
func (b *batch) Do(number, tile int) error {
	w, i0, i1 := b.op.workers[number], tile*b.rows, min((tile+1)*b.rows, b.x.Len())
	t := w.t
	if b.t != nil {
		t = b.t[i0*b.c:]
	}
	var part []float64
	if b.dst != nil {
		part = w.part
	}
	err := w.products(b).multiply(b.x, i0, i1, b.c, b.forward, t[:(i1-i0)*b.c], b.f, part)
	if err == nil && b.dst != nil {
		w.part, _ = b.op.sum.Add(tile, part) // false only after another tile failed
	}
	return err
}

func (b *batch) Stop() { b.op.sum.Stop() }

// writtenProducts writes features out.
type writtenProducts struct {
	phi  FeatureMap
	m    int
	w    []float64
	data []float64
}

func (p *writtenProducts) set(w []float64, _ int)  { p.w = append(p.w[:0], w...) }
func (p *writtenProducts) share(from tileProducts) { p.w = from.(*writtenProducts).w }

func (p *writtenProducts) multiply(x kernel.Rows, i0, i1, c int, forward bool, t []float64, f func(row int, t []float64), part []float64) error {
	n := i1 - i0
	if len(p.data) < n*p.m {
		p.data = make([]float64, n*p.m)
	}
	phi := blocked.New(n, p.m, p.data[:n*p.m])
	if err := p.phi.Apply(phi.Data, x.Slice(i0, i1)); err != nil {
		var bad *kernel.NonFiniteError
		if errors.As(err, &bad) {
			bad.Row += i0
		}
		return err
	}
	if forward {
		blocked.Product(1, false, phi, p.w, c, 0, t)
	}
	if f != nil {
		f(i0, t)
	}
	if part != nil {
		blocked.Product(1, true, phi, t, c, 0, part)
	}
	return nil
}
