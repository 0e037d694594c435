package minibatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// Sampling says how rows are chosen.
type Sampling string

const (
	// Replacement draws every row independently.
	Replacement Sampling = "replacement"
	// Reshuffle deals all rows in a new random order in every pass.
	Reshuffle Sampling = "reshuffle"
	// Cycle takes the rows in their own order in every pass.
	Cycle Sampling = "cycle"
)

const (
	chunkElements = 1 << 26
	chunkRows     = 1 << 16
)

// Plan says how the rows of a pass are dealt.
type Plan struct {
	Sampling Sampling
	// BatchSize is b ≥ 1. The last mini-batch of a chunk may have fewer rows, but with
	// Replacement only if Exact is set.
	BatchSize int
	// Exact says that a pass with Replacement draws n rows, not ⌈n/b⌉·b. It is for
	// methods that step row by row, where mini-batches are only a way to read.
	Exact bool
	// Chunk is the largest number of rows of a chunk, and at least b. If 0, it is
	// 2²⁶/d, and at least 2¹⁶. The sizes of chunks differ by at most one row.
	Chunk int
}

// chunks returns the number of chunks. It depends only on n, d and the plan.
func (p Plan) chunks(n, d int) int {
	size := p.Chunk
	size = cmp.Or(size, max(chunkRows, chunkElements/max(d, 1)))
	size = max(size, p.BatchSize)
	return (n + size - 1) / size
}

// Pass calls visit for the mini-batches of one pass over src, ⌈n/b⌉ of them for one
// chunk. x and y are valid during the call only. Its errors are *kernel.SourceError,
// *kernel.DimensionError, *kernel.NonFiniteError, ctx.Err() and those of visit.
func (p Plan) Pass(ctx context.Context, src data.Source, rng *rand.Rand, visit func(x kernel.Rows, y []float64) error) error {
	return p.PassWeighted(ctx, src, nil, rng, func(x kernel.Rows, y, _ []float64) error { return visit(x, y) })
}

// PassWeighted is Pass with the weights of the rows of src. visit also gets those of the
// mini-batch, or nil if weights is nil.
func (p Plan) PassWeighted(ctx context.Context, src data.Source, weights []float64, rng *rand.Rand, visit func(x kernel.Rows, y, weights []float64) error) error {
	cursor, err := src.OpenPairs(ctx)
	if err != nil {
		return &kernel.SourceError{Row: 0, Err: err}
	}
	defer cursor.Close()
	n, c := src.Len(), src.Outputs()
	chunks := p.chunks(n, src.Dim())
	y := make([]float64, p.BatchSize*c)
	var s []float64
	if weights != nil {
		s = make([]float64, p.BatchSize)
	}
	var chunk *data.Block
	for k := range chunks {
		at, end := share(n, k, chunks), share(n, k+1, chunks)
		if chunk, err = next(ctx, src, cursor, at, end-at, chunk); err != nil {
			return err
		}
		own := weights[min(at, len(weights)):] // of the chunk
		if err := p.Deal(ctx, chunk.X.Len(), rng, func(idx []int) error {
			part := s
			if s != nil {
				part = pick(s, own, idx, 1)
			}
			if first, end := idx[0], idx[0]+len(idx); p.Sampling == Cycle {
				return visit(chunk.X.Slice(first, end), chunk.Y[first*c:end*c], part)
			}
			return visit(chunk.X.Select(idx), pick(y, chunk.Y, idx, c), part)
		}); err != nil {
			return err
		}
	}
	return nil
}

// share returns the start of part k of n rows.
func share(n, k, parts int) int { return k*(n/parts) + min(k, n%parts) }

func next(ctx context.Context, src data.Source, cursor data.PairCursor, at, want int, reuse *data.Block) (*data.Block, error) {
	chunk, err := cursor.Next(ctx, want, reuse)
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it ends at row %d of %d", kernel.ErrSource, at, src.Len())
	case err == nil && chunk.X.Len() != want:
		err = fmt.Errorf("%w: a block of %d rows where %d were due", kernel.ErrSource, chunk.X.Len(), want)
	}
	if err != nil {
		return nil, &kernel.SourceError{Row: at, Err: err}
	}
	if chunk.X.Dim() != src.Dim() {
		return nil, &kernel.DimensionError{What: fmt.Sprintf("x from row %d", at), Got: chunk.X.Dim(), Want: src.Dim()}
	}
	if err := checkTargets(chunk.Y, src.Outputs()); err != nil {
		return nil, learners.Shift(err, at)
	}
	return chunk, learners.Shift(kernel.CheckFinite("x", chunk.X), at)
}

func checkTargets(y []float64, c int) error {
	for i, v := range y {
		if v-v != 0 {
			return &kernel.NonFiniteError{What: "y", Row: i / c, Col: i % c, Value: v}
		}
	}
	return nil
}

func pick(dst, y []float64, idx []int, c int) []float64 {
	for k, i := range idx {
		copy(dst[k*c:][:c], y[i*c:][:c])
	}
	return dst[:len(idx)*c]
}

// Deal calls visit for the mini-batches of one pass over the rows 0 … n−1 of a single
// chunk. idx has the numbers of their rows and is valid during the call only.
func (p Plan) Deal(ctx context.Context, n int, rng *rand.Rand, visit func(idx []int) error) error {
	row := func(i int) int { return i }
	switch p.Sampling {
	case Replacement:
		row = func(int) int { return rng.IntN(n) }
	case Reshuffle:
		order := stream.NewPermutation(rng.Uint64(), uint64(n))
		row = func(i int) int { return int(order.At(uint64(i))) }
	}
	idx := make([]int, 0, p.BatchSize)
	for at := 0; at < n; at += p.BatchSize {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := at + p.BatchSize
		if p.Sampling != Replacement || p.Exact {
			end = min(end, n)
		}
		idx = idx[:0]
		for i := at; i < end; i++ {
			idx = append(idx, row(i))
		}
		if err := visit(idx); err != nil {
			return err
		}
	}
	return nil
}
