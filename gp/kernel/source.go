package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/internal/inorder"
)

// Source is a sequence of rows that can be read from the start as often as needed, in blocks. It
// may be in memory, mapped, or in a file. Its rows must be the same at every pass.
type Source interface {
	// Len returns the number of rows n.
	Len() int
	// Dim returns the number of coordinates d, or NoDim.
	Dim() int
	// Open starts a pass at row 0. Passes are independent.
	Open(ctx context.Context) (Cursor, error)
}

// Cursor is one pass over a [Source]. Only one goroutine at a time may use it.
type Cursor interface {
	// Next returns the next max rows, or all that are left if they are fewer, or io.EOF
	// if none are left. max ≥ 1. So the size of a block depends only on the reader, and
	// results do not depend on the source.
	//
	// A returned block stays valid and unchanged until Close, or until it is passed as
	// reuse to a later Next, which may overwrite and return it. reuse is nil or a block
	// that this cursor returned.
	Next(ctx context.Context, max int, reuse Rows) (Rows, error)
	// Close ends the pass.
	Close() error
}

// Resident is a [Source] with all rows addressable, in memory or mapped.
type Resident interface {
	Source
	// Rows returns all n rows.
	Rows() Rows
}

// FromRows returns rows as a [Resident] source, without copying them.
func FromRows(rows Rows) Resident { return resident{rows} }

type resident struct{ rows Rows }

func (s resident) Len() int   { return s.rows.Len() }
func (s resident) Dim() int   { return s.rows.Dim() }
func (s resident) Rows() Rows { return s.rows }

func (s resident) Open(context.Context) (Cursor, error) {
	return &residentCursor{rows: s.rows}, nil
}

type residentCursor struct {
	rows Rows
	at   int
}

func (c *residentCursor) Next(_ context.Context, max int, _ Rows) (Rows, error) {
	i := c.at
	if i == c.rows.Len() {
		return nil, io.EOF
	}
	c.at = i + min(max, c.rows.Len()-i)
	return c.rows.Slice(i, c.at), nil
}

func (c *residentCursor) Close() error { return nil }

// Reader is one pass over a whole source, which checks that the source keeps its contract.
type Reader struct {
	src    Source
	cursor Cursor
	at     int // first row of the next block
}

// OpenReader starts a pass. Its error is a [*SourceError].
func OpenReader(ctx context.Context, src Source) (*Reader, error) {
	cursor, err := src.Open(ctx)
	if err != nil {
		return nil, &SourceError{Row: 0, Err: err}
	}
	return &Reader{src: src, cursor: cursor}, nil
}

// Next returns the next max rows, or those that are left, and the number of the first. After the
// last row it returns nil. reuse is as in [Cursor]. Its errors are [*SourceError] and ctx.Err().
func (r *Reader) Next(ctx context.Context, max int, reuse Rows) (rows Rows, first int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, r.at, err
	}
	want := min(max, r.src.Len()-r.at)
	if want == 0 {
		return nil, r.at, r.atEnd(ctx, reuse)
	}
	rows, err = r.cursor.Next(ctx, want, reuse)
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it ends at row %d of %d", ErrSource, r.at, r.src.Len())
	case err == nil && rows.Len() != want:
		err = fmt.Errorf("%w: a block of %d rows where %d were asked", ErrSource, rows.Len(), want)
	case err == nil && rows.Dim() != r.src.Dim():
		err = &DimensionError{What: "block", Got: rows.Dim(), Want: r.src.Dim()}
	}
	if err != nil {
		return nil, r.at, &SourceError{Row: r.at, Err: err}
	}
	first = r.at
	r.at += want
	return rows, first, nil
}

// EachBlock calls f for all rows of src, in blocks of size rows that begin at multiples of it,
// from up to workers goroutines. f gets the number of its goroutine, that of the first row, and
// the rows, which are valid until it returns. Of several errors EachBlock returns that of the
// first block. The other errors are those of [Reader.Next].
func EachBlock(ctx context.Context, src Source, size, workers int, f func(worker, row int, x Rows) error) error {
	r, err := OpenReader(ctx, src)
	if err != nil {
		return err
	}
	defer r.Close()
	workers = max(1, min(workers, (src.Len()+size-1)/size))
	return new(inorder.Runner).Run(workers, &eachBlock{ctx, r, size, f, make([]Rows, workers)})
}

// eachBlock is the work of EachBlock. Tasks have the number of their first row.
type eachBlock struct {
	ctx    context.Context
	reader *Reader
	size   int
	f      func(worker, row int, x Rows) error
	blocks []Rows // of the workers
}

func (e *eachBlock) Take(worker int) (row int, ok bool, err error) {
	b := &e.blocks[worker]
	*b, row, err = e.reader.Next(e.ctx, e.size, *b)
	return row, *b != nil, err
}

func (e *eachBlock) Do(worker, row int) error { return e.f(worker, row, e.blocks[worker]) }

func (e *eachBlock) Stop() {}

// atEnd verifies that no row follows the last.
func (r *Reader) atEnd(ctx context.Context, reuse Rows) error {
	_, err := r.cursor.Next(ctx, 1, reuse)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		err = fmt.Errorf("%w: more than %d rows", ErrSource, r.src.Len())
	}
	return &SourceError{Row: r.at, Err: err}
}

// Close ends the pass.
func (r *Reader) Close() error { return r.cursor.Close() }

// selectBlock is the number of rows that Select reads at once.
const selectBlock = 1024

// Select returns a copy of rows idx[0], idx[1], … of src in that order, with repeated
// indices repeated. It reads src at most once. Use it to take centres from any source.
// Its errors are [*IndexError], [*SourceError] and ctx.Err().
func Select(ctx context.Context, src Source, idx []int) (Rows, error) {
	for _, i := range idx {
		if i < 0 || i >= src.Len() {
			return nil, &IndexError{Index: i, Len: src.Len()}
		}
	}
	if r, ok := src.(Resident); ok {
		return r.Rows().Select(idx), nil
	}
	order := slices.Clone(idx)
	slices.Sort(order)
	order = slices.Compact(order)
	found, err := gatherSorted(ctx, src, order)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(idx))
	for k, i := range idx {
		at[k], _ = slices.BinarySearch(order, i)
	}
	return found.Select(at), nil
}

// gatherSorted reads src up to the last of the increasing indices. Without
// indices it still reads one block, to learn the type of the rows.
func gatherSorted(ctx context.Context, src Source, order []int) (Rows, error) {
	r, err := OpenReader(ctx, src)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var parts []Rows
	var block Rows
	for len(parts) == 0 || len(order) > 0 {
		var row0 int
		if block, row0, err = r.Next(ctx, selectBlock, block); err != nil {
			return nil, err
		}
		if block == nil {
			return nil, &SourceError{Row: row0, Err: fmt.Errorf("%w: no rows", ErrSource)}
		}
		hit, _ := slices.BinarySearch(order, row0+block.Len())
		local := make([]int, hit)
		for k := range local {
			local[k] = order[k] - row0
		}
		order = order[hit:]
		if hit > 0 || len(parts) == 0 {
			parts = append(parts, block.Select(local))
		}
	}
	return parts[0].Concat(parts[1:]...)
}
