package gp

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// Predict returns μ̃ and σ̃² at every row of x, without observation noise, with pending
// pulls counted in the variance. It costs O(m² + md) a row. Its errors are those for x
// in [NewExact], and [*NotPSDError] for a residual that is negative beyond rounding.
func (s *Sparse) Predict(x kernel.Rows) (mean, variance []float64, err error) {
	if err := s.checkQuery(x); err != nil {
		return nil, nil, err
	}
	n := x.Len()
	mean, variance = make([]float64, n), make([]float64, n)
	switch {
	case n <= fewRows:
		t := s.Probe()
		for i := range n {
			if mean[i], variance[i], err = t.at(x.Slice(i, i+1)); err != nil {
				return nil, nil, rowError(err, i)
			}
		}
		return mean, variance, nil
	case n > someRows:
		err = s.predictPanels(mean, variance, x, false)
	case s.emb.len() <= wholeTriangle:
		err = s.predictPanels(mean, variance, x, true)
	default:
		err = s.predictRows(mean, variance, x)
	}
	if err != nil {
		return nil, nil, err
	}
	return mean, variance, nil
}

// fewRows are predicted one by one. Up to someRows, sums over inducing points are those of
// gonum's Dot. Up to wholeTriangle inducing points, a triangular solution has the same bits in
// panels as in rows.
const (
	fewRows       = 4
	someRows      = 2048
	wholeTriangle = blocked.Direct
)

// rooms holds memory for the embeddings of blocks.
var rooms = sync.Pool{New: func() any { return new([]float64) }}

// predictRows is Predict by blocks of rows. Each goroutine takes its own rows through all
// steps. No bit of a row depends on the others.
func (s *Sparse) predictRows(mean, variance []float64, x kernel.Rows) error {
	s.settled()
	size := s.share(len(mean))
	err := forBlocks(len(mean), size, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		m, n := s.emb.len(), i1-i0
		room := rooms.Get().(*[]float64)
		defer rooms.Put(room)
		*room = slices.Grow((*room)[:0], n*(m+2))[:n*(m+2)]
		z, prior, res := (*room)[:n*m], (*room)[n*m:][:n], (*room)[n*(m+1):]
		if err := s.emb.embedRows(z, prior, res, x, i0, i1, sc); err != nil {
			return err
		}
		for i := range n {
			mean[i0+i] = s.opts.Mean + floats.Dot(z[i*m:][:m], s.reg.w)
		}
		s.varL.solveRowsL(z, n)
		for i := range n {
			row := z[i*m:][:m]
			variance[i0+i] = s.assemble(prior[i], res[i], floats.Dot(row, row))
		}
		return nil
	})
	return blockError(err, 0)
}

// share returns how many of n rows a goroutine predicts at a time.
func (s *Sparse) share(n int) int {
	workers := s.opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	m := s.emb.len()
	if n*m*m < worthBlocks {
		workers = 1
	}
	return min((n+workers-1)/workers, streamBlock)
}

// worthBlocks is the number of multiplications from which goroutines share a prediction.
// Each packs the triangles for itself.
const worthBlocks = 1 << 23

// blockError names the row of x for an error about a block that starts at row from.
func blockError(err error, from int) error {
	var at int
	switch e := err.(type) {
	case *kernel.NonFiniteError:
		at = e.Row
	case *NotPSDError:
		at = e.Row
	default:
		return err
	}
	return rowError(err, from+at)
}

// predictPanels is Predict with the triangles packed. With rounded it has the bits of
// predictRows, for at most wholeTriangle inducing points.
func (s *Sparse) predictPanels(mean, variance []float64, x kernel.Rows, rounded bool) error {
	c, size := s.scoring(rounded), predictBlock
	if rounded {
		size = (s.share(len(mean)) + lanes - 1) / lanes * lanes
	}
	err := forBlocks(len(mean), size, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		return c.rows(mean[i0:i1], variance[i0:i1], x, i0, i1, sc)
	})
	for i := range mean {
		mean[i] += s.opts.Mean
	}
	return blockError(err, 0)
}

func (s *Sparse) checkQuery(x kernel.Rows) error {
	return checkRows("x", s.k, x, s.emb.rows)
}

// Embed returns z(x) for every row, n×m row-major, and the residuals max(k(x,
// x) − ‖z‖², 0). It has the cost and errors of [Sparse.Predict].
func (s *Sparse) Embed(x kernel.Rows) (z, residual []float64, err error) {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return nil, nil, err
	}
	z, _, residual, err = s.emb.embed(x, s.opts.Workers)
	return z, residual, err
}

// PointVariances returns σ̃² at every point. It costs O(um²).
func (s *Sparse) PointVariances() []float64 {
	v := make([]float64, s.pts.len())
	if s.whole() {
		m := s.emb.len()
		s.variances(v, s.win.dense(0, len(v), m), s.win.prior, s.win.res)
		return v
	}
	if x := s.pts.rows(); x != nil {
		if err := s.predictRows(make([]float64, len(v)), v, x); err != nil {
			panic("gp: a point that was embedded before: " + err.Error())
		}
	}
	return v
}

// whole reports whether all points are in the window.
func (s *Sparse) whole() bool { return s.win.first == 0 && s.win.len() == s.pts.len() }

// variances computes σ̃² for embedded rows.
func (s *Sparse) variances(dst, z, prior, res []float64) {
	m, lv := s.emb.len(), s.varL.panels()
	_ = forBlocks(len(dst), predictBlock, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		mark := sc.Mark()
		defer sc.Release(mark)
		q := i1 - i0
		panels := sc.Floats((q + lanes - 1) / lanes * lanes * lv.padded)
		if m > 0 {
			blocked.PackPanels(panels, blocked.New(q, m, z[i0*m:i1*m]))
		}
		s.spread(dst[i0:i1], lv, panels, prior[i0:i1], res[i0:i1], sc)
		return nil
	})
}

// Leverage returns Σ σ̃²(x_s)/λ over the pulls since the inducing points were chosen,
// pending pulls included, each with the variance before the pull. BKB resparsifies when
// it exceeds a bound. The rule of BBKB adds up the variances at the start of the batch, which
// are larger (Calandriello et al. 2020). A posterior that grows does not count it.
func (s *Sparse) Leverage() float64 { return s.leverage }

// InformationGain returns Σ log(1 + σ̃²_{s−1}(x_s)/λ) over all pulls so far, across
// changes of inducing points, the quantity inside β of (7.5) in Carratino (2020). Pending
// pulls count. For a posterior that grows it is [Sparse.LogDet].
func (s *Sparse) InformationGain() float64 {
	if s.opts.grows() {
		return s.LogDet()
	}
	return s.gain
}

// PendingGain returns the part of InformationGain from pending pulls. These have shrunk
// no variance by more than its exponential, as far as σ̃ is exact. It costs O(u), or
// nothing without pending pulls.
func (s *Sparse) PendingGain() float64 {
	sum := 0.0
	for _, p := range slices.Sorted(maps.Keys(s.gains)) {
		for _, g := range s.gains[p] {
			sum += g
		}
	}
	return sum
}

// EffectiveDimension returns d̃_eff = Σ σ̃²(x_s)/λ of all pulls, pending ones included ((7.3) of
// Carratino (2020)). Points with own noise add their share of Σ W σ̃². As V = I + Σ W zzᵀ, it is
//
//	Σ_i W_i res_i + m − tr V⁻¹,
//
// and tr V⁻¹ is kept up to date. It costs O(u), and O(um²) in a posterior that grows.
func (s *Sparse) EffectiveDimension() float64 {
	sum := float64(s.emb.len())
	if s.traces != nil {
		sum -= s.traces.variance
	} else {
		sum -= s.varL.inverseTrace()
	}
	if s.opts.Approximation == SoR || s.pts.len() == 0 {
		return sum
	}
	res := s.win.res
	if !s.whole() {
		var err error
		if _, _, res, err = s.emb.embed(s.pts.rows(), s.workers(s.pts.len())); err != nil {
			panic("gp: a point that was embedded before: " + err.Error())
		}
	}
	for p, r := range res {
		sum += s.weight(s.pts.get(p), len(s.gains[p]), r) * r
	}
	return sum
}

// LogDet returns log det V of the present inducing points, without pending pulls. For
// DTC it is log det(I + Q/λ).
func (s *Sparse) LogDet() float64 { return s.reg.l.logDet() }

// PendingLogDet is LogDet with pending pulls.
func (s *Sparse) PendingLogDet() float64 { return s.varL.logDet() }
