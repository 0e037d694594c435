package learners

import (
	"context"
	"errors"
	"runtime"

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

// EachBlock reads src from start to end in blocks of size rows. It calls f for each block with
// the number of its first row, concurrently and in no particular order. workers is the number of
// goroutines, or 0 for one per processor. Blocks begin at multiples of size. It checks that rows
// are finite and have the dimension of src, and that src has the length that it claims. It
// returns the error of the first bad block among those that were read.
func EachBlock(ctx context.Context, src kernel.Source, size, workers int, f func(row int, x kernel.Rows) error) error {
	return kernel.EachBlock(ctx, src, size, Workers(workers), func(_, row int, x kernel.Rows) error {
		if err := Shift(kernel.CheckFinite("x", x), row); err != nil {
			return err
		}
		return f(row, x)
	})
}

// Shift adds the number of the first row of a block to the row in a *kernel.NonFiniteError.
func Shift(err error, row int) error {
	var bad *kernel.NonFiniteError
	if errors.As(err, &bad) {
		bad.Row += row
	}
	return err
}
