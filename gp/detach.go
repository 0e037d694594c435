package gp

import (
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// Detach returns a posterior with the predictions of s as they are now. It stays valid
// while s changes, and several goroutines may use it. It has no observations and no
// arms, and takes none. It costs O(m²).
func (s *Sparse) Detach() *Sparse {
	f := s.Fork()
	f.unshare()
	f.pts, f.win, f.order, f.gains = new(points), window{}, nil, nil
	f.frozen = true
	return f
}

// Means returns μ̃ at every row of x. It costs O(md) a row and O(m²) once, where
// [Sparse.Predict] costs O(m²) a row. Rounding differs. Its errors are those of Predict.
func (s *Sparse) Means(x kernel.Rows) ([]float64, error) {
	if err := s.checkQuery(x); err != nil {
		return nil, err
	}
	s.settled()
	m := s.emb.len()
	alpha := slices.Clone(s.reg.w)
	s.emb.l.backward(alpha)
	mean, k := make([]float64, x.Len()), s.emb.prepared()
	err := forBlocks(x.Len(), predictBlock, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		if m == 0 {
			return nil
		}
		rows := make([]float64, (i1-i0)*m)
		k.Fill(rows, m, x, i0, i1, sc)
		blocked.Gemv(1, false, blocked.Matrix[float64]{Rows: i1 - i0, Cols: m, Stride: m, Data: rows}, alpha, 1, 0, mean[i0:i1])
		for i := i0; i < i1; i++ {
			if !isFinite(mean[i]) { // only then check every pair
				if err := s.emb.checkRow(x, i, sc); err != nil {
					return rowError(err, i)
				}
			}
		}
		return nil
	})
	for i := range mean {
		mean[i] += s.opts.Mean
	}
	return mean, err
}
