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
	tile []float64
}

// floats returns n numbers of unspecified value, in the same memory every time.
func (w *workspace) floats(n int) []float64 {
	return simd.Sized(&w.tile, n)
}

// workspaces keeps memory between passes.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// eachBlock calls f for all rows of src, in blocks of size rows, from several
// goroutines. workers is their number, or 0 for one per processor. f gets the number of
// the block's first row. Of several errors it returns that of the first row.
func eachBlock(ctx context.Context, k kernel.Kernel, src kernel.Source, size, workers int, f func(w *workspace, row int, x kernel.Rows) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	spaces := make([]*workspace, max(1, min(workers, (src.Len()+size-1)/size)))
	for i := range spaces {
		spaces[i] = workspaces.Get().(*workspace)
	}
	err := kernel.EachBlock(ctx, src, size, len(spaces), func(worker, row int, x kernel.Rows) error {
		if err := checkBlock(k, x, func(i int) int { return row + i }); err != nil {
			return err
		}
		return f(spaces[worker], row, x)
	})
	for _, w := range spaces { // not after a panic
		w.Release(kernel.Mark{})
		workspaces.Put(w)
	}
	return err
}
