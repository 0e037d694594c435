package kernel

import (
	"context"
	"sync"

	"github.com/bkbtuner/bkb/internal/simd"
)

const (
	// taskRows is the least number of rows that a worker takes at a time. It is part of
	// the order of summation, so another value rounds differently.
	taskRows = 256
	// tileElements is the size of the block of K that one worker holds,
	// 256 KiB, to stay in its L2 cache.
	tileElements = 32 << 10
	// minTileRows keeps tiles from degenerating when M is large.
	minTileRows = 4
	// ahead is the number of partial sums that may wait, for each worker except one. If
	// a worker waited itself, waking it would take longer than a task.
	ahead = 3
)

// tileRows returns the height of a tile of M columns, a divisor of taskRows. It depends
// only on M.
func tileRows(m int) int {
	rows := taskRows
	for rows > minTileRows && rows*m > tileElements {
		rows /= 2
	}
	return rows
}

// request says whether a pass computes dst = K·v (forward), Kᵀ·u (backward), or Kᵀ
// f(K·v + u) (both).
type request struct {
	forward, backward bool
	dst, v, u         []float64
	f                 func(row int, t []float64)
}

// pass is one pass over X.
//
// The rows are divided into tasks of op.taskRows, which are handed out in order. Inside
// a task all sums run in row order. The partial sums of the tasks are added to the
// accumulator strictly in the order of the tasks. So the result does not depend on
// which worker computes which task. Only a few partial sums wait for their turn.
type pass struct {
	request
	op *Operator
	c  int

	mu      sync.Mutex
	reader  *Reader // nil when X is resident
	next    int     // first row of the next task
	stop    bool    // hand out no more tasks
	failed  int     // task to which err belongs
	err     error
	crashed any  // value of a recovered panic
	exited  bool // a worker's goroutine was ended
}

// task is a run of rows i0 ≤ i < i1 of x, where row is the number of the first.
type task struct {
	index, row int
	x          Rows
	i0, i1     int
}

// worker is the memory of one goroutine of a pass.
type worker struct {
	tile    []float64 // tileRows×M block of K, where it is not in panels
	t       []float64 // tileRows×c block of K·v
	part    []float64 // M×c partial sum of Kᵀ·t
	block   Rows      // block of a streamed source, to be read into again
	scratch Scratch
	panels  panelTile // if the operator has panels
}

// run makes the pass with as many workers as there are tasks for.
func (p *pass) run(ctx context.Context) error {
	o := p.op
	if o.resident == nil {
		r, err := OpenReader(ctx, o.src)
		if err != nil {
			return err
		}
		defer r.Close()
		p.reader = r
	}
	defer o.dropBlocks()
	tasks := (o.n + o.taskRows - 1) / o.taskRows
	workers := max(1, min(o.workers, tasks))
	for len(o.pool) < workers {
		w := new(worker)
		if o.panels != nil {
			w.panels = o.panels.newTile()
		}
		o.pool = append(o.pool, w)
	}
	if p.backward {
		o.sum.Reset(o.acc, ahead*(workers-1))
	}
	if workers == 1 {
		p.work(ctx, o.pool[0])
	} else {
		var wg sync.WaitGroup
		for _, w := range o.pool[:workers] {
			wg.Go(func() { p.work(ctx, w) })
		}
		wg.Wait()
	}
	if p.crashed != nil {
		panic(p.crashed)
	}
	if p.exited {
		return ErrExited
	}
	return p.err
}

// dropBlocks forgets blocks, which belong to the cursor of a pass.
func (o *Operator) dropBlocks() {
	for _, w := range o.pool {
		w.block = nil
	}
}

// work processes tasks until none is left. If it fails, it releases the workers that
// wait for its part.
func (p *pass) work(ctx context.Context, w *worker) {
	ended := false
	defer func() {
		if !ended { // recover returns nil after runtime.Goexit
			p.crash(recover())
		}
	}()
	p.takeTasks(ctx, w)
	ended = true
}

// takeTasks takes tasks until none is left.
func (p *pass) takeTasks(ctx context.Context, w *worker) {
	simd.Sized(&w.t, p.op.tileRows*p.c)
	simd.Sized(&w.part, p.op.m*p.c)
	for {
		t, ok := p.take(ctx, w)
		if !ok {
			return
		}
		if err := p.compute(w, t); err != nil {
			p.fail(t.index, err)
			return
		}
		if p.backward {
			if w.part, ok = p.op.sum.Add(t.index, w.part); !ok {
				return
			}
		}
	}
}

// take returns the next task, or false when there is none or a pass has failed.
func (p *pass) take(ctx context.Context, w *worker) (task, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop {
		return task{}, false
	}
	row := p.next
	t := task{index: row / p.op.taskRows, row: row, i0: row, i1: min(row+p.op.taskRows, p.op.n), x: p.op.resident}
	err := ctx.Err()
	if err == nil && p.reader != nil {
		t.x, _, err = p.reader.Next(ctx, p.op.taskRows, w.block)
		w.block = t.x
		t.i0, t.i1 = 0, t.i1-t.i0
	}
	if err != nil {
		p.failLocked(t.index, err)
		return task{}, false
	}
	if row == p.op.n {
		p.stop = true
		return task{}, false
	}
	p.next = row + t.i1 - t.i0
	return t, true
}

// compute makes the block products of one task, tile by tile.
func (p *pass) compute(w *worker, t task) error {
	o := p.op
	if p.reader != nil {
		if err := checkBlock(o.kernel, t.x, t.row); err != nil {
			return err
		}
	}
	if p.backward {
		clear(w.part)
	}
	if w.panels != nil && p.backward {
		w.panels.begin(p.c)
	}
	for i := t.i0; i < t.i1; i += o.tileRows {
		end := min(i+o.tileRows, t.i1)
		if err := p.tile(w, t.x, i, end, t.row+i-t.i0); err != nil {
			return err
		}
	}
	if w.panels != nil && p.backward {
		w.panels.addTo(w.part)
	}
	return nil
}

// tile evaluates rows i0 ≤ i < i1 of K and uses them at once, in panels if the
// kernel and the rows allow it. row is the number of the first.
func (p *pass) tile(w *worker, x Rows, i0, i1, row int) error {
	o, rows := p.op, i1-i0
	part := func(s []float64) []float64 { return s[row*p.c:][:rows*p.c] }
	t := w.t[:rows*p.c]
	kv := t
	switch {
	case !p.forward:
		t, kv = part(p.u), nil
	case !p.backward:
		t = part(p.dst)
		kv = t
	}
	inPanels := w.panels != nil && w.panels.evaluate(x, i0, i1, kv)
	if !inPanels {
		simd.Sized(&w.tile, o.tileRows*o.m)
		o.prepared.Fill(w.tile, o.m, x, i0, i1, &w.scratch)
	}
	if p.forward {
		if !inPanels {
			multiply(t, w.tile, p.v, rows, o.m, p.c)
		}
		if p.u != nil {
			addTo(t, part(p.u))
		}
		if err := checkFiniteMatrix("Kv", t, p.c, row); err != nil {
			return err
		}
		if p.f != nil {
			p.f(row, t)
			if err := checkFiniteMatrix("f(Kv)", t, p.c, row); err != nil {
				return err
			}
		}
	}
	switch {
	case p.backward && inPanels:
		w.panels.addTransposed(t)
	case p.backward:
		addTransposed(w.part, w.tile, t, rows, o.m, p.c)
	}
	return nil
}

// fail ends the pass. Of several errors it keeps that of the first task, so that the
// error does not depend on the number of workers.
func (p *pass) fail(index int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked(index, err)
}

func (p *pass) failLocked(index int, err error) {
	if p.err == nil || index < p.failed {
		p.err, p.failed = err, index
	}
	p.stop = true
	p.op.sum.Stop()
}

// crash ends the pass after a panic with that value, or after runtime.Goexit with nil.
func (p *pass) crash(value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if value == nil {
		p.exited = true
	} else {
		p.crashed = value
	}
	p.stop = true
	p.op.sum.Stop()
}
