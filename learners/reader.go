package learners

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// BlockRows returns the number of rows of m numbers that a block should have. A block
// takes 2 MiB or less and has 16 to 1024 rows.
func BlockRows(m int) int { return min(max(1<<18/max(m, 1), 16), 1024) }

// Workers returns the number of goroutines that Options.Workers = n stands for.
func Workers(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// EachBlock reads src from start to end in blocks of size rows. It calls f for each
// block with the number of its first row, concurrently and in no particular order.
// workers is the number of goroutines, or 0 for one per processor. Blocks begin at
// multiples of size. It checks that rows are finite and have the dimension of src, and
// that src has the length that it claims. It returns the error of the first bad block
// among those that were read.
func EachBlock(ctx context.Context, src kernel.Source, size, workers int, f func(row int, x kernel.Rows) error) error {
	in, err := kernel.OpenReader(ctx, src)
	if err != nil {
		return err
	}
	defer in.Close()
	r := &reader{in: in, size: size}
	var group sync.WaitGroup
	for range max(1, min(Workers(workers), (src.Len()+size-1)/size)) {
		group.Go(func() {
			var x kernel.Rows
			for {
				var row int
				var ok bool
				if x, row, ok = r.take(ctx, x); !ok {
					return
				}
				if err := Shift(kernel.CheckFinite("x", x), row); err != nil {
					r.fail(row, err)
				} else if err := f(row, x); err != nil {
					r.fail(row, err)
				}
			}
		})
	}
	group.Wait()
	return r.err
}

// reader hands the blocks of a pass to goroutines.
type reader struct {
	mu     sync.Mutex
	in     *kernel.Reader
	size   int
	ended  bool
	err    error
	errRow int
}

func (r *reader) take(ctx context.Context, reuse kernel.Rows) (kernel.Rows, int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.ended {
		return nil, 0, false
	}
	x, row, err := r.in.Next(ctx, r.size, reuse)
	if err != nil {
		r.err, r.errRow = err, row
	}
	r.ended = x == nil
	return x, row, !r.ended
}

func (r *reader) fail(row int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || row < r.errRow {
		r.err, r.errRow = err, row
	}
}

// Shift adds the number of the first row of a block to the row in a
// *kernel.NonFiniteError.
func Shift(err error, row int) error {
	var bad *kernel.NonFiniteError
	if errors.As(err, &bad) {
		bad.Row += row
	}
	return err
}
