package sgdrf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// Sampling is how the rows of mini-batches are chosen.
type Sampling string

const (
	// Replacement draws every row independently, (3.2). The default.
	Replacement Sampling = "replacement"
	// Reshuffle deals all rows in a new random order in every pass.
	Reshuffle Sampling = "reshuffle"
	// Cycle takes the rows as they come, in every pass. It suits rows that are
	// in random order already, and b = n, where it is gradient descent.
	Cycle Sampling = "cycle"
)

const (
	// chunkElements and chunkRows bound what is held of a source that is not in
	// memory: 2²⁶ numbers, 512 MiB of float64, or 2¹⁶ rows if these are more.
	chunkElements = 1 << 26
	chunkRows     = 1 << 16
)

// chunkSize returns the rows of a chunk, a multiple of b. It depends on nothing
// but n, d and b, so that a source gives equal mini-batches in memory or not.
func (p Params) chunkSize(n, d, b int) int {
	c := p.Chunk
	if c == 0 {
		c = max(chunkRows, chunkElements/max(d, 1))
	}
	c = (c + b - 1) / b * b
	return min(c, (n+b-1)/b*b)
}

// batches calls visit for the mini-batches of one pass over src, of b rows each,
// the last one of Reshuffle and Cycle perhaps of fewer. Chunks are read one
// after the other; mini-batches are drawn within a chunk. r numbers the pass.
func (p Params) batches(ctx context.Context, src dataset.Source, b int, rng *rand.Rand, visit func(x kernel.Rows, y []float64) error) error {
	cursor, err := src.OpenPairs(ctx)
	if err != nil {
		return &kernel.SourceError{Row: 0, Err: err}
	}
	defer cursor.Close()
	n, c := src.Len(), src.Outputs()
	size := p.chunkSize(n, src.Dim(), b)
	var chunk *dataset.Block
	deal := dealer{sampling: p.sampling(), b: b, c: c, rng: rng, y: make([]float64, b*c)}
	for at := 0; at < n; at += chunk.X.Len() {
		if chunk, err = nextChunk(ctx, src, cursor, at, min(size, n-at), chunk); err != nil {
			return err
		}
		if err := deal.all(ctx, chunk, visit); err != nil {
			return err
		}
	}
	return nil
}

func nextChunk(ctx context.Context, src dataset.Source, cursor dataset.PairCursor, at, want int, reuse *dataset.Block) (*dataset.Block, error) {
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

// dealer makes mini-batches of a chunk.
type dealer struct {
	sampling Sampling
	b, c     int
	rng      *rand.Rand
	idx      []int
	y        []float64
}

func (d *dealer) all(ctx context.Context, chunk *dataset.Block, visit func(kernel.Rows, []float64) error) error {
	n := chunk.X.Len()
	var order stream.Permutation
	if d.sampling == Reshuffle {
		order = stream.NewPermutation(d.rng.Uint64(), uint64(n))
	}
	for at := 0; at < n; at += d.b {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(at+d.b, n)
		x, y := chunk.X, chunk.Y
		if d.sampling == Cycle {
			x, y = x.Slice(at, end), y[at*d.c:end*d.c]
		} else {
			x, y = d.take(chunk, at, end, order)
		}
		if err := visit(x, y); err != nil {
			return err
		}
	}
	return nil
}

func (d *dealer) take(chunk *dataset.Block, at, end int, order stream.Permutation) (kernel.Rows, []float64) {
	d.idx = d.idx[:0]
	if d.sampling == Reshuffle {
		for i := at; i < end; i++ {
			d.idx = append(d.idx, int(order.At(uint64(i))))
		}
	} else {
		for range d.b {
			d.idx = append(d.idx, d.rng.IntN(chunk.X.Len()))
		}
	}
	y := d.y[:len(d.idx)*d.c]
	for k, i := range d.idx {
		copy(y[k*d.c:][:d.c], chunk.Y[i*d.c:][:d.c])
	}
	return chunk.X.Select(d.idx), y
}
