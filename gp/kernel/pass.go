package kernel

import (
	"context"

	"github.com/bkbtuner/bkb/internal/blocked"
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

// pass is one pass over X, in tasks of op.taskRows rows. Inside a task all sums run in row
// order, and the partial sums of the tasks are added in the order of the tasks. So the result
// does not depend on which worker computes which task.
type pass struct {
	request
	op     *Operator
	ctx    context.Context
	c      int
	reader *Reader // nil when X is resident
	next   int     // first row of the next task
}

// task is a run of rows i0 ≤ i < i1 of x, where row is the number of the first.
type task struct {
	row    int
	x      Rows
	i0, i1 int
}

// worker is the memory of one goroutine of a pass, with its present task.
type worker struct {
	task
	tile    []float64 // tileRows×M block of K, where it is not in panels
	t       []float64 // tileRows×c block of K·v
	part    []float64 // M×c partial sum of Kᵀ·t
	block   Rows      // block of a streamed source, to be read into again
	scratch Scratch
	panels  *panelTile // if the operator has panels
}

// run makes the pass with as many workers as there are tasks for.
func (p *pass) run() error {
	o := p.op
	if o.resident == nil {
		r, err := OpenReader(p.ctx, o.src)
		if err != nil {
			return err
		}
		defer r.Close()
		p.reader = r
	}
	workers := max(1, min(o.workers, (o.n+o.taskRows-1)/o.taskRows))
	for len(o.pool) < workers {
		w := new(worker)
		if o.panels != nil {
			w.panels = o.panels.newTile()
		}
		o.pool = append(o.pool, w)
	}
	for _, w := range o.pool[:workers] {
		simd.Sized(&w.t, o.tileRows*p.c)
		simd.Sized(&w.part, o.m*p.c)
	}
	defer o.dropBlocks()
	if p.backward {
		o.sum.Reset(o.acc, ahead*(workers-1))
	}
	return o.runner.Run(workers, p)
}

// dropBlocks forgets blocks, which belong to the cursor of a pass.
func (o *Operator) dropBlocks() {
	for _, w := range o.pool {
		w.block, w.x = nil, nil
	}
}

func (p *pass) Take(number int) (index int, ok bool, err error) {
	o, w, row := p.op, p.op.pool[number], p.next
	index, p.next = row/o.taskRows, min(row+o.taskRows, o.n)
	w.task = task{row: row, i0: row, i1: p.next, x: o.resident}
	if err := p.ctx.Err(); err != nil {
		return index, false, err
	}
	if p.reader != nil {
		if w.x, _, err = p.reader.Next(p.ctx, o.taskRows, w.block); err != nil {
			return index, false, err
		}
		w.block, w.i0, w.i1 = w.x, 0, p.next-row
	}
	return index, row < o.n, nil
}

func (p *pass) Stop() { p.op.sum.Stop() }

// Do makes a task, and adds its partial sum.
func (p *pass) Do(number, index int) error {
	w := p.op.pool[number]
	if err := p.compute(w, w.task); err != nil {
		return err
	}
	if p.backward {
		w.part, _ = p.op.sum.Add(index, w.part) // false only after another task failed
	}
	return nil
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
			blocked.Product(1, false, blocked.New(rows, o.m, w.tile), p.v, p.c, 0, t)
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
		blocked.Product(1, true, blocked.New(rows, o.m, w.tile), t, p.c, 1, w.part)
	}
	return nil
}

func addTo(dst, part []float64) {
	for j, v := range part {
		dst[j] += v
	}
}
