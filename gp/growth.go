package gp

import (
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// absorb adds observations, or pulls where there are no targets, one by one. Variances shrink
// the same, and with pulls means stay. Each becomes an inducing point if there is room
// and it is not a combination of the others. That is one bordered and one rank-one
// update, O(m² + wm) for w points in the window.
func (s *Sparse) absorb(data Data) error {
	if err := s.fits(data.X); err != nil {
		return err
	}
	if data.Y == nil {
		s.reg.settle()
	}
	for i := range data.X.Len() {
		if err := s.absorbOne(data, i); err != nil {
			return rowError(err, i)
		}
	}
	return nil
}

// absorbOne adds observation i, or without targets a pull, which is a count of its point.
func (s *Sparse) absorbOne(data Data, i int) error {
	x := data.X.Slice(i, i+1)
	z, prior, res, err := s.emb.one(x)
	if err != nil {
		return err
	}
	pull, coarse := data.Y == nil, data.coarse(i)
	s.frozen = s.frozen || pull
	p, key, found := s.pts.find(data.X, i)
	full := coarse && s.emb.len() >= s.opts.Growth.Room*3/4 // other observations are worth more
	if !full && s.worthwhile(prior, res) {
		if err := s.grow(x, z, math.Sqrt(res)); err != nil {
			return err
		}
		z, res = append(z, math.Sqrt(res)), 0
	}
	if !found {
		if p, err = s.pts.push(data.X, i, key); err != nil {
			return err
		}
	}
	st := s.pts.edit(p)
	st.coarse = st.coarse || coarse
	var delta, beta float64
	if pull {
		before := st.weight
		st.n++
		delta = 1 / s.opts.NoiseVariance
		if st.weight += delta; s.counts(st) {
			st.weight = max(s.weight(st, 0, res), before)
			delta = st.weight - before
		}
		s.win.set(p, st.weight, st.resid)
	} else {
		delta, beta = s.add(p, data.Y[i], data.own(i), res)
	}
	if !found {
		s.remember(p, x, z, st.weight, st.resid, prior, res)
	}
	if !pull {
		s.updateMean(z, delta, beta, true)
	} else if s.unshare(); len(z) > 0 {
		s.reg.l.rankOne(z, delta, s.buf[3], s.buf[4])
	}
	return nil
}

// fits verifies that rows can become points, so that either all or none are added.
func (s *Sparse) fits(x kernel.Rows) error {
	s.suit(x)
	if s.pts.x != nil && s.emb.radial == nil {
		if _, err := s.pts.x.Slice(0, 0).Concat(x); err != nil {
			return fmt.Errorf("gp: x: %w", err)
		}
	}
	if x.Len() == 1 {
		return nil // a refusal must show before anything changes
	}
	_, _, _, err := s.emb.embed(x, s.workers(x.Len()))
	return err
}

// roomFor returns the number of inducing points to reserve memory for when there are m.
func (g Growth) roomFor(m int) int { return min(g.Room, 2*m+64) }

// remember puts a point into the window while inducing points can still be added.
func (s *Sparse) remember(p int, x kernel.Rows, z []float64, weight, resid, prior, res float64) {
	if s.emb.len() >= s.opts.Growth.Room || p != s.win.first+s.win.len() {
		return
	}
	s.join(x, z, weight, resid, prior, res)
}

// grow makes the only row of x an inducing point, given its embedding and the root of
// its residual. L_D and V get a row. It costs O(m² + wm) for w points in the window.
//
// The new coordinate of an input is z₊(x) = (k(x, d) − zᵀz(d))/√res(d), and the row of V is
// L⁻¹ Σ ω z₊ z with the root of its Schur complement. That is at least 1, that of the prior, even
// after rounding.
func (s *Sparse) grow(x kernel.Rows, z []float64, root float64) error {
	column := make([]float64, s.win.len())
	if err := s.emb.column(column, x, s.seen(), s.win.xs); err != nil {
		return err
	}
	emb, err := s.emb.with(x, z, root)
	if err != nil {
		return err
	}
	s.unshare()
	row, corner, sum := s.win.widen(column, z, root)
	s.reg.l.forward(row)
	s.reg.l = s.reg.l.bordered(row, math.Sqrt(max(corner-floats.Dot(row, row), 1)))
	s.reg.b, s.reg.w, s.reg.fresh = append(s.reg.b, sum), append(s.reg.w, 0), s.frozen
	s.emb, s.varL = emb, s.reg.l
	for i := range s.buf {
		s.buf[i] = append(s.buf[i], 0)
	}
	return nil
}

// seen returns the inputs of the window, where they are not dense.
func (s *Sparse) seen() kernel.Rows {
	if s.emb.radial != nil || s.win.len() == 0 {
		return nil
	}
	return s.pts.rows().Slice(s.win.first, s.win.first+s.win.len())
}

// Fork returns a posterior that continues from here. It takes its own observations and
// pulls and does not change s. It shares the old data, so it costs O(1) now and
// O(m² + wm) at its first change. It is valid only until s changes. It has no arms.
func (s *Sparse) Fork() *Sparse {
	s.settled()
	f := *s
	f.reading = new(sync.Mutex)
	f.pts, f.own, f.win.shared = s.pts.fork(), false, true
	f.emb = s.emb.fork()
	f.reg.b, f.reg.w = append([]float64(nil), s.reg.b...), append([]float64(nil), s.reg.w...)
	f.order = append([]int(nil), s.order...)
	f.gains = nil
	for p, gains := range s.gains {
		f.setGains(p, gains)
	}
	f.arms, f.paused = nil, nil
	if s.traces != nil {
		t := *s.traces
		f.traces = &t
	}
	f.resize()
	return &f
}

// unshare copies the factors, so that they can be changed.
func (s *Sparse) unshare() {
	if s.own {
		return
	}
	shared := s.varL == s.reg.l
	s.reg.l = s.reg.l.roomy()
	if shared {
		s.varL = s.reg.l
	} else {
		s.varL = s.varL.roomy()
	}
	s.own = true
}

// settled brings w up to date, for readers.
func (s *Sparse) settled() {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.reg.settle()
}

// rowError names the row of the data that an error about a single row refers to.
func rowError(err error, row int) error {
	if e, ok := err.(*kernel.NonFiniteError); ok {
		at := *e
		at.Row = row
		return &at
	}
	if e, ok := err.(*NotPSDError); ok {
		at := *e
		at.Row = row
		return &at
	}
	return err
}
