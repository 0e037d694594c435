package sketch

import (
	"context"
	"runtime"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
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

// blocks is one pass over a source, shared by several goroutines. Of several errors it
// keeps that of the first row.
type blocks struct {
	mu      sync.Mutex
	k       kernel.Kernel
	reader  *kernel.Reader
	size    int
	stop    bool
	err     error
	errRow  int
	crashed any
}

// eachBlock calls f for all rows of src, in blocks of size rows, from several
// goroutines. workers is their number, or 0 for one per processor. f gets the number of
// the block's first row.
func eachBlock(ctx context.Context, k kernel.Kernel, src kernel.Source, size, workers int, f func(w *workspace, row int, x kernel.Rows) error) error {
	r, err := kernel.OpenReader(ctx, src)
	if err != nil {
		return err
	}
	defer r.Close()
	b := &blocks{k: k, reader: r, size: size}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(1, min(workers, (src.Len()+size-1)/size))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { b.work(ctx, f) })
	}
	wg.Wait()
	if b.crashed != nil {
		panic(b.crashed)
	}
	return b.err
}

func (b *blocks) work(ctx context.Context, f func(w *workspace, row int, x kernel.Rows) error) {
	defer func() {
		if r := recover(); r != nil { // from a caller's kernel, passed on to the caller
			b.mu.Lock()
			defer b.mu.Unlock()
			b.crashed, b.stop = r, true
		}
	}()
	w := workspaces.Get().(*workspace)
	for {
		x, row, ok := b.take(ctx, w)
		if !ok {
			break
		}
		if err := f(w, row, x); err != nil {
			b.mu.Lock()
			b.fail(row, err)
			b.mu.Unlock()
			break
		}
	}
	w.block = nil // rows of a source
	w.Release(kernel.Mark{})
	workspaces.Put(w) // not after a panic
}

func (b *blocks) take(ctx context.Context, w *workspace) (kernel.Rows, int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop {
		return nil, 0, false
	}
	x, row, err := next(ctx, b.k, b.reader, b.size, w.block)
	if err != nil {
		b.fail(row, err)
		return nil, 0, false
	}
	if x == nil {
		b.stop = true
		return nil, 0, false
	}
	w.block = x
	return x, row, true
}

func (b *blocks) fail(row int, err error) {
	if b.err == nil || row < b.errRow {
		b.err, b.errRow = err, row
	}
	b.stop = true
}
