package sketch

import (
	"context"
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// next is r.Next with a check of the rows.
func next(ctx context.Context, k kernel.Kernel, r *kernel.Reader, max int, reuse kernel.Rows) (kernel.Rows, int, error) {
	x, row, err := r.Next(ctx, max, reuse)
	if err != nil || x == nil {
		return nil, row, err
	}
	return x, row, checkBlock(k, x, func(i int) int { return row + i })
}

// checkBlock verifies rows whose numbers in the source are number(0), …
func checkBlock(k kernel.Kernel, x kernel.Rows, number func(i int) int) error {
	if err := k.Check(x); err != nil {
		return fmt.Errorf("x from row %d: %w", number(0), err)
	}
	err := kernel.CheckFinite("x", x)
	var bad *kernel.NonFiniteError
	if errors.As(err, &bad) {
		bad.Row = number(bad.Row)
	}
	return err
}

// selectRows is [kernel.Select] with a check of the rows.
func selectRows(ctx context.Context, k kernel.Kernel, src kernel.Source, idx []int) (kernel.Rows, error) {
	x, err := kernel.Select(ctx, src, idx)
	if err != nil || len(idx) == 0 {
		return x, err
	}
	return x, checkBlock(k, x, func(i int) int { return idx[i] })
}

// allRows returns every row of src after a check. It is a view if src is resident.
func allRows(ctx context.Context, k kernel.Kernel, src kernel.Source) (kernel.Rows, error) {
	if r, ok := src.(kernel.Resident); ok {
		return r.Rows(), checkBlock(k, r.Rows(), func(i int) int { return i })
	}
	idx := make([]int, src.Len())
	for i := range idx {
		idx[i] = i
	}
	return selectRows(ctx, k, src, idx)
}
