package data

import (
	"context"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// MapRows returns xL in double precision for a map L, d×d row-major.
func MapRows(x kernel.Rows, l []float64) kernel.Rows {
	n, d := x.Len(), x.Dim()
	in, out := make([]float64, n*d), kernel.NewPoints[float64](n, d, nil)
	for i := range n {
		kernel.CopyRow(in[i*d:][:d], x, i)
	}
	blocked.Gemm(1, false, blocked.New(n, d, in), false, blocked.New(d, d, l), 1, 0, blocked.New(n, d, out.Data()))
	return out
}

// MapInputs returns src with rows xL, in memory if src is.
func MapInputs(src kernel.Source, l []float64) kernel.Source {
	if r, ok := src.(kernel.Resident); ok {
		return kernel.FromRows(MapRows(r.Rows(), l))
	}
	return mappedInputs{src, l}
}

// Map is MapInputs of inputs with targets.
func Map(src Source, l []float64) Source {
	if m, ok := src.(*Memory); ok {
		return &Memory{MapRows(m.x, l), m.y, m.c}
	}
	return mappedPairs{src, l}
}

type mappedInputs struct {
	kernel.Source
	l []float64
}

func (s mappedInputs) Open(ctx context.Context) (kernel.Cursor, error) {
	c, err := s.Source.Open(ctx)
	return mappedRows{c, s.l}, err
}

type mappedRows struct {
	kernel.Cursor
	l []float64
}

func (c mappedRows) Next(ctx context.Context, max int, _ kernel.Rows) (kernel.Rows, error) {
	x, err := c.Cursor.Next(ctx, max, nil)
	if err != nil {
		return nil, err
	}
	return MapRows(x, c.l), nil
}

type mappedPairs struct {
	Source
	l []float64
}

func (s mappedPairs) Open(ctx context.Context) (kernel.Cursor, error) { return OpenInputs(ctx, s) }

func (s mappedPairs) OpenPairs(ctx context.Context) (PairCursor, error) {
	c, err := s.Source.OpenPairs(ctx)
	return mappedBlocks{c, s.l}, err
}

type mappedBlocks struct {
	PairCursor
	l []float64
}

func (c mappedBlocks) Next(ctx context.Context, max int, _ *Block) (*Block, error) {
	b, err := c.PairCursor.Next(ctx, max, nil)
	if err != nil {
		return nil, err
	}
	return &Block{MapRows(b.X, c.l), b.Y}, nil
}
