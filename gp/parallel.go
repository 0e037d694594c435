package gp

import (
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/inorder"
)

// scratches is temporary memory for blocks. What one call has made the next one finds.
var scratches = sync.Pool{New: func() any { return new(kernel.Scratch) }}

// forBlocks is [inorder.Blocks] with temporary memory. Results do not depend on the number of
// workers if f writes each to its own place.
func forBlocks(n, size, workers int, f func(i0, i1 int, s *kernel.Scratch) error) error {
	return inorder.Blocks(n, size, workers, func(i0, i1 int) error {
		s := scratches.Get().(*kernel.Scratch)
		defer scratches.Put(s)
		return f(i0, i1, s)
	})
}
