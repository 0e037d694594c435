package sketch

import (
	"context"
	"runtime"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/inorder"
	"github.com/bkbtuner/bkb/internal/simd"
)

// workspace is the memory of one goroutine.
type workspace struct {
	kernel.Scratch
	tile  []float64
	block kernel.Rows
}

// floats returns n numbers of unspecified value, in the same memory every time.
func (w *workspace) floats(n int) []float64 {
	return simd.Sized(&w.tile, n)
}

// workspaces keeps memory between passes. A choice of some hundred points makes a dozen
// passes, and half of the memory that it allocates is of workspaces.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// eachBlock calls f for all rows of src, in blocks of size rows, from several
// goroutines. workers is their number, or 0 for one per processor. f gets the number of
// the block's first row. Of several errors it returns that of the first row.
func eachBlock(ctx context.Context, k kernel.Kernel, src kernel.Source, size, workers int, f func(w *workspace, row int, x kernel.Rows) error) error {
	r, err := kernel.OpenReader(ctx, src)
	if err != nil {
		return err
	}
	defer r.Close()
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(1, min(workers, (src.Len()+size-1)/size))
	p := &sourcePass{ctx: ctx, k: k, reader: r, size: size, f: f, spaces: make([]*workspace, workers)}
	for i := range p.spaces {
		p.spaces[i] = workspaces.Get().(*workspace)
	}
	err = new(inorder.Runner).Run(workers, p)
	for _, w := range p.spaces { // not after a panic
		w.block = nil // rows of a source
		w.Release(kernel.Mark{})
		workspaces.Put(w)
	}
	return err
}

// sourcePass is the work of eachBlock. Tasks have the number of their first row.
type sourcePass struct {
	ctx    context.Context
	k      kernel.Kernel
	reader *kernel.Reader
	size   int
	f      func(w *workspace, row int, x kernel.Rows) error
	spaces []*workspace
}

func (p *sourcePass) Take(worker int) (row int, ok bool, err error) {
	w := p.spaces[worker]
	w.block, row, err = next(p.ctx, p.k, p.reader, p.size, w.block)
	return row, w.block != nil, err
}

func (p *sourcePass) Do(worker, row int) error {
	return p.f(p.spaces[worker], row, p.spaces[worker].block)
}

func (p *sourcePass) Stop() {}
