package sketch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// reader reads a source in blocks. It checks that the source keeps its contract and
// refuses rows that the kernel cannot read.
type reader struct {
	k      kernel.Kernel
	src    kernel.Source
	cursor kernel.Cursor
	at     int // first row of the next block
}

func openReader(ctx context.Context, k kernel.Kernel, src kernel.Source) (*reader, error) {
	cursor, err := src.Open(ctx)
	if err != nil {
		return nil, &kernel.SourceError{Row: 0, Err: err}
	}
	return &reader{k: k, src: src, cursor: cursor}, nil
}

// next returns the next block of at most max rows and the number of its first
// row, or nil after the last. reuse is as in [kernel.Cursor].
func (r *reader) next(ctx context.Context, max int, reuse kernel.Rows) (kernel.Rows, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, r.at, err
	}
	row, want := r.at, min(max, r.src.Len()-r.at)
	if want == 0 {
		return nil, row, r.atEnd(ctx, reuse)
	}
	x, err := r.cursor.Next(ctx, want, reuse)
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it ends at row %d of %d", kernel.ErrSource, row, r.src.Len())
	case err == nil && x.Len() != want:
		err = fmt.Errorf("%w: a block of %d rows where %d were asked", kernel.ErrSource, x.Len(), want)
	}
	if err != nil {
		return nil, row, &kernel.SourceError{Row: row, Err: err}
	}
	r.at += want
	return x, row, checkBlock(r.k, x, func(i int) int { return row + i })
}

// atEnd verifies that no row follows the last.
func (r *reader) atEnd(ctx context.Context, reuse kernel.Rows) error {
	_, err := r.cursor.Next(ctx, 1, reuse)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		err = fmt.Errorf("%w: more than %d rows", kernel.ErrSource, r.src.Len())
	}
	return &kernel.SourceError{Row: r.at, Err: err}
}

func (r *reader) close() { _ = r.cursor.Close() }

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
