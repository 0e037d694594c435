package kernel

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/inorder"
)

// Options holds the settings of an [Operator]. The zero value is ready to use.
type Options struct {
	// Workers is the number of goroutines that share a product. 0 or less means
	// runtime.GOMAXPROCS(0). It changes no bit of the results.
	Workers int
	// Precision is Float64 or, faster and less accurate, Float32.
	Precision Precision
	// Distances is AutoDistances, or another value to force one way.
	Distances Distances
}

// Operator is the n×M kernel matrix K = K(X, C) of a source X of n rows and M centres
// C, as a linear map. K is never stored. Every product streams over X once and
// evaluates K again, block by block.
//
// Several right-hand sides at once are the columns of a row-major matrix. v is M×c and u is
// n×c, for any c ≥ 1, which follows from the lengths. Concurrent calls wait for each other.
// Memory beside X and C is O(workers·(M·c + tile)), kept between calls.
//
// If the program has devices (docs/gpu.md), large products of dense resident rows run on
// them, and differ in rounding. If a device fails, the CPU takes over.
//
// The errors of a product are ctx.Err(), [ErrClosed], [ErrExited], [*ShapeError],
// [*SourceError], those of k.Check for a streamed block, and [*NonFiniteError] for X, v, u and
// the product itself. A panic of the kernel, or of a function of the caller, reaches the caller.
type Operator struct {
	kernel   Kernel
	src      Source
	resident Rows // all rows, if src has them
	prepared Prepared
	n, m     int
	workers  int

	panels    *panels // or nil
	precision Precision
	tileRows  int // rows of K at a time
	taskRows  int // rows that a worker takes at a time, a multiple of tileRows

	lock   chan struct{} // held during a product, guards the fields below
	closed bool
	gpu    gpu.Matrix // or nil
	pool   []*worker
	v, acc []float64
	sum    inorder.Sum // into acc
	runner inorder.Runner
}

// NewOperator packs the centres for k and returns the operator for the rows of src. The
// rows and centres must not change until Close. See [Select] for taking centres from src.
//
// Its errors are those of k.Check, [*DimensionError], [*NonFiniteError], and [*ParameterError]
// for opts. Rows that are not resident are checked as they are read.
func NewOperator(k Kernel, src Source, centers Rows, opts Options) (*Operator, error) {
	if opts.Precision != Float64 && opts.Precision != Float32 {
		return nil, &ParameterError{In: "kernel", Parameter: "Precision", Value: int(opts.Precision), Want: "Float64 or Float32"}
	}
	if d := opts.Distances; d != AutoDistances && d != DirectDistances && d != ExpandedDistances {
		return nil, &ParameterError{In: "kernel", Parameter: "Distances", Value: int(d), Want: "AutoDistances, DirectDistances or ExpandedDistances"}
	}
	if err := k.Check(centers); err != nil {
		return nil, fmt.Errorf("centers: %w", err)
	}
	if centers.Dim() != src.Dim() {
		return nil, &DimensionError{What: "centers", Got: centers.Dim(), Want: src.Dim()}
	}
	if err := CheckFinite("centers", centers); err != nil {
		return nil, err
	}
	o := &Operator{
		kernel: k, src: src, n: src.Len(), m: centers.Len(),
		workers: opts.Workers, lock: make(chan struct{}, 1),
	}
	if r, ok := src.(Resident); ok {
		o.resident = r.Rows()
		if err := checkBlock(k, o.resident, 0); err != nil {
			return nil, err
		}
	}
	if o.workers <= 0 {
		o.workers = runtime.GOMAXPROCS(0)
	}
	o.prepared, o.tileRows, o.taskRows = Prepare(k, centers), tileRows(o.m), taskRows
	if p, ok := o.prepared.(*panelPrepared); ok {
		o.panels, o.precision = newPanels(p, opts)
		o.gpu = onDevice(p, opts, o.precision, o.resident)
		o.prepared = p.other // for rows that are not dense
		o.tileRows = o.panels.height
		o.taskRows = (taskRows + o.tileRows - 1) / o.tileRows * o.tileRows
	}
	return o, nil
}

// checkBlock verifies a block of X that starts at row row0.
func checkBlock(k Kernel, x Rows, row0 int) error {
	if err := k.Check(x); err != nil {
		return fmt.Errorf("x from row %d: %w", row0, err)
	}
	return checkFiniteFrom("x", x, row0)
}

// Cols returns M.
func (o *Operator) Cols() int { return o.m }

// Apply sets dst = K·v, where dst is n×c and v is M×c. After an error dst is unspecified.
func (o *Operator) Apply(ctx context.Context, dst, v []float64) error {
	return o.product(ctx, request{forward: true, dst: dst, v: v},
		operand{"v (M×c)", v, o.m}, operand{"dst (n×c)", dst, o.n})
}

// ApplyT sets dst = Kᵀ·u, where dst is M×c and u is n×c. After an error dst is unchanged.
func (o *Operator) ApplyT(ctx context.Context, dst, u []float64) error {
	return o.product(ctx, request{backward: true, dst: dst, u: u},
		operand{"dst (M×c)", dst, o.m}, operand{"u (n×c)", u, o.n})
}

// Gram sets dst = Kᵀ(K·v + u) in one pass over X, evaluating K once. dst and v are M×c
// and may be the same slice. u is n×c, or nil for 0. After an error dst is unchanged.
func (o *Operator) Gram(ctx context.Context, dst, v, u []float64) error {
	args := []operand{{"v (M×c)", v, o.m}, {"dst (M×c)", dst, o.m}, {"u (n×c)", u, o.n}}
	if u == nil {
		args = args[:2]
	}
	return o.product(ctx, request{forward: true, backward: true, dst: dst, v: v, u: u}, args...)
}

// GramFunc sets dst = Kᵀ f(K·v), where f changes blocks of rows of K·v in place. t
// holds len(t)/c of them, and row is the number of the first. f is called once for
// every row, concurrently, in no particular order, and must depend only on its
// arguments. dst and v are M×c and may be the same slice. After an error dst is unchanged.
func (o *Operator) GramFunc(ctx context.Context, dst, v []float64, f func(row int, t []float64)) error {
	return o.product(ctx, request{forward: true, backward: true, dst: dst, v: v, f: f},
		operand{"v (M×c)", v, o.m}, operand{"dst (M×c)", dst, o.m})
}

// Close releases the operator's memory, after waiting for a running product. It always
// returns nil, and closing again has no effect.
func (o *Operator) Close() error {
	o.lock <- struct{}{}
	defer o.unlock()
	o.closed = true
	o.leaveDevice(nil)
	o.prepared, o.panels, o.resident, o.src = nil, nil, nil, nil
	o.pool, o.v, o.acc, o.sum = nil, nil, nil, inorder.Sum{}
	return nil
}

func (o *Operator) unlock() { <-o.lock }

// operand is an argument with per·c elements.
type operand struct {
	name string
	data []float64
	per  int
}

// columns returns c, or a ShapeError.
func columns(args []operand) (int, error) {
	c := 0
	for _, a := range args {
		if a.per == 0 {
			continue
		}
		if c == 0 {
			c = len(a.data) / a.per
			if c == 0 {
				return 0, &ShapeError{In: "kernel", What: a.name, Got: len(a.data), Want: fmt.Sprintf("a positive multiple of %d", a.per)}
			}
		}
	}
	c = max(c, 1)
	for _, a := range args {
		if len(a.data) != a.per*c {
			return 0, &ShapeError{In: "kernel", What: a.name, Got: len(a.data), Want: fmt.Sprintf("%d·%d (c = %[2]d)", a.per, c)}
		}
	}
	return c, nil
}

// product runs one pass over X.
func (o *Operator) product(ctx context.Context, r request, args ...operand) error {
	select {
	case o.lock <- struct{}{}:
		defer o.unlock()
	case <-ctx.Done():
		return ctx.Err()
	}
	if o.closed {
		return ErrClosed
	}
	c, err := columns(args)
	if err != nil {
		return err
	}
	if err := checkFiniteMatrix("v", r.v, c, 0); err != nil {
		return err
	}
	if err := checkFiniteMatrix("u", r.u, c, 0); err != nil {
		return err
	}
	o.v = append(o.v[:0], r.v...) // so that dst may be v
	r.v = o.v
	if r.backward {
		o.acc = slices.Grow(o.acc[:0], o.m*c)[:o.m*c]
	}
	if err := o.pass(ctx, r, c); err != nil {
		return err
	}
	if r.backward {
		if err := checkFiniteMatrix("the product", o.acc, c, 0); err != nil {
			return err
		}
		copy(r.dst, o.acc)
	}
	return nil
}

// pass makes one pass, on the device if the operator has one.
func (o *Operator) pass(ctx context.Context, r request, c int) error {
	if o.gpu != nil {
		return o.devicePass(ctx, r, c)
	}
	p := &pass{request: r, op: o, ctx: ctx, c: c}
	if o.panels != nil && r.forward {
		o.panels.set(o.v, c)
	}
	return p.run()
}
