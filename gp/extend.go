package gp

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
)

// Extend adds one inducing point d, the only row of x. The arms then cost O(Am) in
// place of the O(Am²) of [Sparse.Resparsify], and the points in the window O(wm) in
// place of O(um²). The result equals that of Resparsify up to rounding. With FITC, or
// coarse observations, where the noise depends on the inducing points, it is a
// Resparsify, unless the posterior grows. It returns false, and nothing changes, if d is a
// combination of the others up to RankTolerance, or there is no room. It does not reset
// Leverage. Its errors are those of [Sparse.Predict].
//
// The new coordinate of an input is z₊(x) = (k(x, d) − zᵀz(d))/√res(d). With v = Σ W
// z₊z, h = V⁻¹v and δ = 1 + Σ W z₊² − vᵀh, by the Schur complement,
//
//	res −= z₊²,  σ̃² += (z₊ − zᵀh)²/δ − z₊²  (without z₊² for SoR).
func (s *Sparse) Extend(x kernel.Rows) (added bool, err error) {
	if err := s.checkQuery(x); err != nil {
		return false, err
	}
	if x.Len() != 1 {
		return false, shapeError("x", x.Len(), 1)
	}
	s.suit(x)
	z, prior, res, err := s.emb.one(x)
	if err != nil {
		return false, err
	}
	if !s.worthwhile(prior, res) {
		return false, nil
	}
	if !s.opts.grows() && (s.opts.Approximation == FITC || s.pts.coarse()) {
		return s.recompute(x)
	}
	root := math.Sqrt(res)
	var seen []float64
	if s.arms != nil {
		if seen, err = s.arms.coordinate(kernel.Prepare(s.k, x), z, root, s.opts.Workers); err != nil {
			return false, err
		}
	}
	column := make([]float64, s.win.len())
	if err := s.emb.column(column, x, s.seen(), s.win.xs); err != nil {
		return false, err
	}
	emb, err := s.emb.with(x, z, root)
	if err != nil {
		return false, err
	}
	kept, before := s.arms, s.varL
	if kept != nil {
		kept.settleAll(s.opts.Workers)
	}
	e := s.border(emb, column, z, root)
	if kept == nil {
		return true, nil
	}
	before.backward(e.row)
	kept.extend(seen, e.row, e.root*e.root, s.opts.Workers)
	kept.emb = s.emb
	kept.refreshMeans(s)
	if kept.lazy { // they may have been bounds
		kept.refreshVariances(s)
	}
	return true, nil
}

// recompute adds an inducing point and computes everything from scratch.
func (s *Sparse) recompute(x kernel.Rows) (added bool, err error) {
	rows, err := s.emb.rows.Concat(x)
	if err != nil {
		return false, err
	}
	leverage, rank := s.leverage, s.emb.len()
	if err := s.Resparsify(rows); err != nil {
		return false, err
	}
	s.leverage = leverage
	return s.emb.len() > rank, nil
}

// coordinate returns z₊ of every arm, given k(·, d) and z(d).
func (a *arms) coordinate(one kernel.Prepared, z []float64, root float64, workers int) ([]float64, error) {
	n := len(a.mean)
	out, seen := make([]float64, n), make([]float64, n)
	a.products(seen, z, workers)
	err := forBlocks(n, armBlock, workers, func(i0, i1 int, sc *kernel.Scratch) error {
		one.Fill(out[i0:i1], 1, a.rows, i0, i1, sc)
		if err := checkKernel(out[i0:i1], 1, i0); err != nil {
			return err
		}
		for i := i0; i < i1; i++ {
			out[i] = (out[i] - seen[i]) / root
		}
		return nil
	})
	return out, err
}

// extend gives the arms one more coordinate. refreshMeans must compute their means.
func (a *arms) extend(column, h []float64, delta float64, workers int) {
	seen := make([]float64, len(column))
	a.products(seen, h, workers)
	m := len(h)
	if m+1 > a.padded {
		a.widen(a.padded + simd.Rows)
	}
	for i, v := range column {
		a.z[i/lanes*lanes*a.padded+m*lanes+i%lanes] = v
		before := a.res[i] // 0 for SoR
		a.res[i] = max(before-v*v, 0)
		a.base[i] = max(a.res[i], varianceFloor*a.prior[i])
		r := v - seen[i]
		a.variance[i] = max(a.variance[i]+r*r/delta+(a.res[i]-before), a.base[i])
	}
}

// widen makes room in the panels.
func (a *arms) widen(padded int) {
	panels := (len(a.mean) + lanes - 1) / lanes
	z := simd.Aligned[float64](panels * padded * lanes)
	for p := range panels {
		copy(z[p*padded*lanes:], a.z[p*a.padded*lanes:(p+1)*a.padded*lanes])
	}
	a.z, a.h, a.padded = z, make([]float64, padded), padded
}
