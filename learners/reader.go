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

// EachBlock calls f for each block of size rows of src with the number of its first row, in no
// particular order, from some goroutines, or one per processor if workers is 0. It checks that rows
// are finite and have the dimension of src, and that src has the length that it claims.
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
