package gp

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
)

// Extend adds one inducing point d, the only row of x, to those there are. The
// arms then cost O(Am) in place of the O(Am²) of [Sparse.Resparsify], which it
// equals up to rounding; the u points cost O(um²) either way. With FITC, where
// the noise depends on the inducing points, it is a Resparsify. It returns
// false, and nothing changes, if d is a combination of the others up to
// RankTolerance. Leverage, which tells when to choose inducing points again,
// goes on. Errors: as [Sparse.Predict].
//
// The new coordinate of an input is z₊(x) = (k(x, d) − zᵀz(d))/√res(d), and with
// v = Σ W z₊z, h = V⁻¹v and δ = Σ W z₊² + λ − vᵀh, by the Schur complement,
//
//	res −= z₊²,  σ̃² += λ(z₊ − zᵀh)²/δ − z₊²
//
// (without z₊² for SoR).
func (s *Sparse) Extend(x kernel.Rows) (added bool, err error) {
	if err := s.checkQuery(x); err != nil {
		return false, err
	}
	if x.Len() != 1 {
		return false, shapeError("x", x.Len(), 1)
	}
	z, prior, res, err := s.emb.embed(x, 1)
	if err != nil {
		return false, err
	}
	scale := prior[0]
	for i := range s.emb.len() {
		scale = max(scale, s.k.Diag(s.emb.rows, i))
	}
	if !(res[0] > s.opts.RankTolerance*scale) {
		return false, nil
	}
	rows, err := s.emb.rows.Concat(x)
	if err != nil {
		return false, err
	}
	if s.opts.Approximation == FITC || s.obs.x == nil {
		leverage, rank := s.leverage, s.emb.len()
		if err := s.Resparsify(rows); err != nil {
			return false, err
		}
		s.leverage = leverage
		return s.emb.len() > rank, nil
	}
	e := extension{kernel.Prepare(s.k, x), z, math.Sqrt(res[0]), s.opts.Workers}
	fresh, err := e.points(s)
	if err != nil {
		return false, err
	}
	var arms []float64
	if s.arms != nil {
		if arms, err = e.arms(s.arms); err != nil {
			return false, err
		}
	}
	s.extend(rows, e, fresh, arms)
	return true, nil
}

// extension is a new inducing point d, as seen from those there are.
type extension struct {
	one     kernel.Prepared // k(·, d)
	z       []float64       // z(d)
	root    float64         // √res(d)
	workers int
}

// points returns z₊ of every point.
func (e extension) points(s *Sparse) ([]float64, error) {
	u, m := s.obs.len(), len(e.z)
	out := make([]float64, u)
	e.one.Fill(out, 1, s.obs.x, 0, u, new(kernel.Scratch))
	if err := checkKernel(out, 1, 0); err != nil {
		return nil, err
	}
	for i := range out {
		if m > 0 {
			out[i] -= dot(s.z[i*m:(i+1)*m], e.z)
		}
		out[i] /= e.root
	}
	return out, nil
}

// arms returns z₊ of every arm.
func (e extension) arms(a *arms) ([]float64, error) {
	n := len(a.mean)
	out, seen := make([]float64, n), make([]float64, n)
	a.products(seen, e.z, e.workers)
	err := forBlocks(n, armBlock, e.workers, func(i0, i1 int, sc *kernel.Scratch) error {
		e.one.Fill(out[i0:i1], 1, a.rows, i0, i1, sc)
		if err := checkKernel(out[i0:i1], 1, i0); err != nil {
			return err
		}
		for i := i0; i < i1; i++ {
			out[i] = (out[i] - seen[i]) / e.root
		}
		return nil
	})
	return out, err
}

// extend makes everything one longer, given z₊ of points and arms.
func (s *Sparse) extend(rows kernel.Rows, e extension, points, arms []float64) {
	m := s.emb.len()
	h, delta := s.complement(points)
	s.emb = s.emb.with(rows, e)
	s.z = widened(s.z, points, m)
	for i, v := range points {
		s.res[i] = max(s.res[i]-v*v, 0)
	}
	for i := range s.buf {
		s.buf[i] = make([]float64, m+1)
	}
	kept := s.arms
	if kept != nil {
		kept.settleAll(e.workers)
		kept.extend(arms, h, delta, e.workers)
	}
	s.arms = nil
	s.anchor()
	if s.arms = kept; kept == nil {
		return
	}
	kept.emb = s.emb
	kept.refreshMeans(s)
	if kept.lazy { // they may have been bounds
		kept.refreshVariances(s)
	}
}

// complement returns h = V⁻¹v and δ, of the V of the variances.
func (s *Sparse) complement(points []float64) (h []float64, delta float64) {
	m := s.emb.len()
	h, delta = make([]float64, m), s.opts.NoiseVariance
	for i, f := range points {
		w := s.weight(i, s.pend[i]) * f
		delta += w * f
		if m > 0 {
			axpy(w, s.z[i*m:(i+1)*m], h)
		}
	}
	s.varL.SolveL(h)
	delta = max(delta-square(h), s.opts.NoiseVariance)
	s.varL.SolveLT(h)
	return h, delta
}

// with is the embedding with a row more in L_D.
func (e *embedding) with(rows kernel.Rows, x extension) *embedding {
	m := e.len()
	l := &Cholesky{n: m + 1, stride: m + 1, data: make([]float64, (m+1)*(m+1))}
	for i := range m {
		copy(l.row(i), e.l.row(i))
	}
	copy(l.row(m), x.z)
	l.row(m)[m] = x.root
	kept := append(append([]int(nil), e.kept...), e.offered)
	return &embedding{k: e.k, rows: rows, kept: kept, prep: kernel.Prepare(e.k, rows), l: l, offered: e.offered + 1}
}

// widened returns z, n×m, with one column more.
func widened(z, column []float64, m int) []float64 {
	out := make([]float64, 0, len(z)+len(column))
	for i, v := range column {
		out = append(append(out, z[i*m:(i+1)*m]...), v)
	}
	return out
}

// extend gives the arms a coordinate more; their means are left to refreshMeans.
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
		a.variance[i] = max(a.variance[i]+a.lambda*r*r/delta+(a.res[i]-before), a.base[i])
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
