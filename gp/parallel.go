package gp

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// scratches is temporary memory for blocks. What one call has made the next one finds.
var scratches = sync.Pool{New: func() any { return new(kernel.Scratch) }}

// forBlocks calls f concurrently for consecutive blocks of at most size of the numbers
// 0 … n−1, and returns the error of the first bad block. The blocks do not depend on
// the number of workers. So neither do the results if f writes each to its own place.
func forBlocks(n, size, workers int, f func(i0, i1 int, s *kernel.Scratch) error) error {
	blocks := (n + size - 1) / size
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, blocks)
	errs := make([]error, blocks)
	if workers <= 1 {
		s := scratches.Get().(*kernel.Scratch)
		defer scratches.Put(s)
		for b := range blocks {
			if err := f(b*size, min((b+1)*size, n), s); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			s := scratches.Get().(*kernel.Scratch)
			defer scratches.Put(s)
			for b := int(next.Add(1)) - 1; b < blocks; b = int(next.Add(1)) - 1 {
				errs[b] = f(b*size, min((b+1)*size, n), s)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
