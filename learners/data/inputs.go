package data

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// inputsOnly turns a pass over pairs into a pass over inputs.
type inputsOnly struct {
	pairs  PairCursor
	blocks []*Block // handed out
}

// OpenInputs starts a pass over the inputs of src.
func OpenInputs(ctx context.Context, src Source) (kernel.Cursor, error) {
	pairs, err := src.OpenPairs(ctx)
	return &inputsOnly{pairs: pairs}, err
}

func (c *inputsOnly) Next(ctx context.Context, max int, reuse kernel.Rows) (kernel.Rows, error) {
	var old *Block
	if i := slices.IndexFunc(c.blocks, func(b *Block) bool { return b.X == reuse }); i >= 0 {
		old = c.blocks[i]
		c.blocks = slices.Delete(c.blocks, i, i+1)
	}
	b, err := c.pairs.Next(ctx, max, old)
	if err != nil {
		return nil, err
	}
	if len(c.blocks) == 64 { // a reader that never returns blocks
		c.blocks = c.blocks[1:]
	}
	c.blocks = append(c.blocks, b)
	return b.X, nil
}

func (c *inputsOnly) Close() error { return c.pairs.Close() }

// CheckRows reports indices that do not increase within 0 ≤ i < n.
func CheckRows(rows []int, n int) error { return checkRows(rows, n, false) }

// checkRows also accepts rows that repeat.
func checkRows(rows []int, n int, repeats bool) error {
	if rows != nil && len(rows) == 0 {
		return errors.New("dataset: there are no rows")
	}
	for k, i := range rows {
		if i < 0 || i >= n {
			return &kernel.IndexError{Index: i, Len: n}
		}
		if k > 0 && (i < rows[k-1] || i == rows[k-1] && !repeats) {
			return fmt.Errorf("dataset: row %d follows row %d, indices must increase", i, rows[k-1])
		}
	}
	return nil
}

// ReusePoints returns n×d points, in the memory of reuse if that is large enough.
func ReusePoints[T kernel.Float](n, d int, reuse kernel.Rows) *kernel.Points[T] {
	if p, ok := reuse.(*kernel.Points[T]); ok && cap(p.Data()) >= n*d {
		return kernel.NewPoints(n, d, p.Data()[:n*d])
	}
	return kernel.NewPoints[T](n, d, nil)
}
