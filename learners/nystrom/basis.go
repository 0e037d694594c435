package nystrom

import (
	"errors"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/sketch"
)

// basis is the matrix P of the coordinates, c = Pw.
type basis struct {
	points  kernel.Rows // the centres that c belongs to
	m       int         // how many
	given   int         // how many there were
	workers int
	l       *blocked.Matrix[float64] // P = L⁻ᵀ, or P = I if nil
	gram    *blocked.Matrix[float64] // K_MM if P = I
}

// spanTolerance is the share of max k(x, x) below which a centre adds only rounding to
// the span of the others, in a factorisation of order M.
func spanTolerance(m int) float64 { return 10 * float64(m) * 0x1p-52 }

func newBasis(k kernel.Kernel, centers kernel.Rows, coordinates Coordinates, workers int) (*basis, error) {
	m := centers.Len()
	b := &basis{points: centers, m: m, given: m, workers: workers}
	if coordinates == Plain {
		data, err := kernel.Gramian(k, centers)
		if err != nil {
			return nil, err
		}
		gram := blocked.New(m, m, data)
		b.gram = &gram
		return b, nil
	}
	e, err := sketch.NewEmbedding(k, centers, spanTolerance(m), workers)
	if zero := (*sketch.FactorizationError)(nil); errors.As(err, &zero) {
		// K_MM = 0, so any centre will do, and with c = 0 the function is 0
		one := blocked.New(1, 1, []float64{1})
		b.points, b.m, b.l = centers.Slice(0, 1), 1, &one
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	l := blocked.New(e.Rank(), e.Rank(), e.Factor())
	b.points, b.m, b.l = e.Points(), e.Rank(), &l
	return b, nil
}

// coefficients returns Pw, m×c.
func (b *basis) coefficients(w []float64, c int) []float64 {
	out := append([]float64(nil), w...)
	if b.l != nil {
		blocked.SolveLower(b.workers, true, *b.l, blocked.New(b.m, c, out))
	}
	return out
}

// pull replaces g by Pᵀg.
func (b *basis) pull(g []float64, c int) {
	if b.l != nil {
		blocked.SolveLower(b.workers, false, *b.l, blocked.New(b.m, c, g))
	}
}

// addPenalty adds factor·PᵀK_MM P w to dst. Where P = L⁻ᵀ that is factor·w.
func (b *basis) addPenalty(dst, w []float64, factor float64, c int) {
	switch {
	case factor == 0:
	case b.l != nil:
		for i, v := range w {
			dst[i] += factor * v
		}
	default:
		blocked.Gemm(b.workers, false, *b.gram, false, blocked.New(b.m, c, w), factor, 1, blocked.New(b.m, c, dst))
	}
}
