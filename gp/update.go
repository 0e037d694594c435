package gp

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/internal/blocked"
)

// counts reports whether the residual of a point counts as noise of its target.
func (s *Sparse) counts(st *stat) bool {
	return s.opts.Approximation == FITC || st.coarse || s.opts.grows() && s.emb.len() >= s.opts.Growth.Room
}

// weight returns W of a point with the given residual, and with pulls more pulls than
// observed. It is the precision of ȳ given z.
func (s *Sparse) weight(st *stat, pulls int, res float64) float64 {
	if st.observations() == 0 && pulls == 0 {
		return 0
	}
	v := st.variance(s.opts.NoiseVariance, pulls)
	if s.counts(st) {
		v += res
	}
	return 1 / v
}

// note counts a target of point p.
func (s *Sparse) note(p int, y, own float64) {
	st := s.pts.edit(p)
	if st.observations() == 0 && !s.opts.grows() {
		s.order = append(s.order, p)
	}
	st.add(y, own)
	s.pts.total++
}

// add counts a target of point p, which has residual res. It returns the additions δ
// zzᵀ to V and βz to b.
func (s *Sparse) add(p int, y, own, res float64) (delta, beta float64) {
	st, m0 := s.pts.edit(p), s.opts.Mean
	w0, r0 := st.weight, st.resid
	s.note(p, y, own)
	st.resid = st.target(s.opts.NoiseVariance) - m0
	if s.counts(st) {
		st.weight = max(s.weight(st, 0, res), w0) // the part in V stays if a residual counts only now
		delta, beta = st.weight-w0, st.weight*st.resid-w0*r0
	} else {
		delta = 1 / (s.opts.NoiseVariance + own)
		st.weight, beta = w0+delta, delta*(y-m0)
	}
	s.win.set(p, st.weight, st.resid)
	return delta, beta
}

// observe adds a target to point p, which is in the window.
func (s *Sparse) observe(p int, y, own float64) {
	i, _ := s.win.at(p)
	z, res := s.win.row(i)[:s.emb.len()], s.win.res[i]
	pend := len(s.gains[p])
	pulls, resolves := s.weight(s.pts.get(p), pend, res), pend > 0 && own == 0
	if resolves {
		s.resolve(p)
	} else {
		s.pulled(p, own)
	}
	delta, beta := s.add(p, y, own, res)
	shared := s.varL == s.reg.l
	s.updateMean(z, delta, beta, shared)
	st := s.pts.get(p)
	now := s.weight(st, len(s.gains[p]), res)
	switch {
	case shared:
		s.traces.variance = s.traces.mean
	case s.held == 0: // V with pending pulls is V again, up to rounding
		s.single()
	case !resolves:
		s.updateVariance(z, max(now-pulls, 0))
	}
	if s.win.held != nil {
		s.win.hold(p, max(now-st.weight, 0))
	}
	s.count()
}

// single makes V with pending pulls V itself.
func (s *Sparse) single() {
	s.varL, s.win.held, s.traces.variance = s.reg.l, nil, s.traces.mean
}

// resolve takes a pending pull of point p as observed. Its gain stays.
func (s *Sparse) resolve(p int) {
	s.setGains(p, s.gains[p][:len(s.gains[p])-1])
	s.held--
}

// setGains sets a point's pending pulls to those with the given gains.
func (s *Sparse) setGains(p int, gains []float64) {
	if s.gains == nil {
		s.gains = map[int][]float64{}
	}
	if s.gains[p] = gains; len(gains) == 0 {
		delete(s.gains, p)
	}
}

// pull adds a pending pull to point p, which is in the window.
func (s *Sparse) pull(p int) {
	i, _ := s.win.at(p)
	z, res, st := s.win.row(i)[:s.emb.len()], s.win.res[i], s.pts.get(p)
	before := s.weight(st, len(s.gains[p]), res)
	s.setGains(p, append(slices.Clone(s.gains[p]), s.pulled(p, 0)))
	s.held++
	if s.varL == s.reg.l {
		s.varL = s.reg.l.clone()
	}
	now := s.weight(st, len(s.gains[p]), res)
	s.updateVariance(z, max(now-before, 0))
	s.win.hold(p, max(now-st.weight, 0))
	s.count()
}

// release takes back n pending pulls of point p, but not their variance.
func (s *Sparse) release(p, n int) {
	gains := s.gains[p]
	last := len(gains) - n
	for _, g := range gains[last:] {
		s.gain -= g
	}
	s.setGains(p, gains[:last])
	s.held -= n
}

// variance returns σ̃² at point p, which is in the window.
func (s *Sparse) variance(p int) float64 {
	i, _ := s.win.at(p)
	t := s.buf[0]
	copy(t, s.win.row(i)[:len(t)])
	s.varL.forward(t)
	return s.assemble(s.win.prior[i], s.win.res[i], floats.Dot(t, t))
}

// assemble returns σ̃² from the residual and q = ‖L_V⁻¹z‖².
func (s *Sparse) assemble(prior, res, q float64) float64 {
	if s.opts.Approximation == SoR {
		res = 0
	}
	return max(res+q, varianceFloor*prior)
}

// pulled records a pull at point p before its variance shrinks.
func (s *Sparse) pulled(p int, own float64) (gain float64) {
	rls := s.variance(p) / (s.opts.NoiseVariance + own)
	s.leverage += rls
	gain = math.Log1p(rls)
	s.gain += gain
	return gain
}

// count calls anchor when it is due.
func (s *Sparse) count() {
	if s.updates++; s.updates >= s.every {
		s.anchor()
	}
}

// updateMean adds δzzᵀ to V and βz to b. With
//
//	h = V⁻¹z,  w += h(β − δ zᵀw)/(1 + δ zᵀh)
//
// and likewise the traces and the arms. In a posterior that grows w is computed when it
// is needed, and nothing else is kept up to date. variances says that V is also that of
// the variances.
func (s *Sparse) updateMean(z []float64, delta, beta float64, variances bool) {
	if len(z) == 0 {
		return
	}
	s.unshare()
	if s.traces != nil {
		s.follow(z, delta, beta, variances)
	} else {
		s.reg.fresh = false
	}
	s.reg.l.rankOne(z, delta, s.buf[3], s.buf[4])
	floats.AddScaled(s.reg.b, beta, z)
}

// follow updates w, the traces and the arms after an update of V.
func (s *Sparse) follow(z []float64, delta, beta float64, variances bool) {
	s.reg.settle()
	wait := variances && s.arms != nil && !s.arms.lazy
	if wait {
		s.arms.begin(system{s.reg.l, s.reg.w})
	}
	h := s.buf[1]
	q := direction(s.reg.l, z, h)
	den := 1 + delta*q
	e := (beta - delta*floats.Dot(z, s.reg.w)) / den
	floats.AddScaled(s.reg.w, e, h)
	s.traces.mean -= delta * square(h) / den
	if s.arms == nil {
		return
	}
	shrink := 0.0
	if variances {
		shrink = delta / den
	}
	if wait {
		s.arms.later(h, e, shrink, math.Sqrt(q))
		return
	}
	s.arms.settleAll(s.opts.Workers)
	s.arms.update(h, e, shrink, s.opts)
}

// updateVariance adds δzzᵀ to the V of the variances.
func (s *Sparse) updateVariance(z []float64, delta float64) {
	if len(z) == 0 {
		return
	}
	s.unshare()
	h := s.buf[1]
	q := direction(s.varL, z, h)
	s.traces.variance -= delta * square(h) / (1 + delta*q)
	if s.arms != nil && !s.arms.lazy {
		s.arms.settleAll(s.opts.Workers)
		s.arms.update(h, 0, delta/(1+delta*q), s.opts)
	}
	s.varL.rankOne(z, delta, s.buf[3], s.buf[4])
}

// direction sets h = V⁻¹z and returns zᵀV⁻¹z ≥ 0.
func direction(l *cholesky, z, h []float64) float64 {
	copy(h, z)
	l.forward(h)
	q := floats.Dot(h, h)
	l.backward(h)
	return q
}

// Anchor computes everything from scratch from the points, to remove the rounding of updates. It
// runs by itself every 512 updates, and in Resparsify. It costs O(um² + Am²). Only a posterior
// that grows returns errors, those of [Sparse.Predict], because its points are embedded again.
func (s *Sparse) Anchor() error {
	switch {
	case s.frozen:
		return ErrFrozen
	case s.opts.grows():
		return s.stream()
	}
	s.anchor()
	return nil
}

// anchor computes V and w by QR of the embedded points, so that no condition number is squared.
func (s *Sparse) anchor() {
	u, m := s.pts.len(), s.emb.len()
	s.win.unshare()
	s.reg.b = make([]float64, m)
	for p := range u {
		st := s.pts.edit(p)
		st.weight = s.weight(st, 0, s.win.res[p])
		st.resid = 0
		if st.observations() > 0 {
			st.resid = st.target(s.opts.NoiseVariance) - s.opts.Mean
		}
		s.win.omega[p], s.win.resid[p] = st.weight, st.resid
		floats.AddScaled(s.reg.b, st.weight*st.resid, s.win.row(p)[:m])
	}
	sys := solveSystem(s.win.dense(0, u, m), s.win.resid, func(i int) float64 { return s.win.omega[i] }, s.order, m, 1)
	s.reg.l, s.reg.w, s.reg.fresh, s.own = sys.l, sys.w, true, true
	if s.arms != nil {
		s.arms.deferred.forget()
	}
	s.anchorPending()
	if s.arms != nil {
		s.arms.refreshMeans(s)
	}
}

// anchorPending computes V with the pending pulls, and the arms' variances.
func (s *Sparse) anchorPending() {
	m := s.emb.len()
	s.varL, s.win.held = s.reg.l, nil
	if s.held > 0 {
		order := slices.Clone(s.order)
		for p := range s.pts.len() {
			pend, st := len(s.gains[p]), s.pts.get(p)
			if pend > 0 {
				s.win.hold(p, max(s.weight(st, pend, s.win.res[p])-st.weight, 0))
			}
			if pend > 0 && st.observations() == 0 {
				order = append(order, p)
			}
		}
		s.varL = solveSystem(s.win.dense(0, s.pts.len(), m), nil,
			func(i int) float64 { return s.win.omega[i] + s.win.held[i] }, order, m, 1).l
	}
	s.updates = 0
	s.traces = &traces{mean: s.reg.l.inverseTrace()}
	if s.traces.variance = s.traces.mean; s.varL != s.reg.l {
		s.traces.variance = s.varL.inverseTrace()
	}
	if s.arms != nil {
		s.arms.settleAll(s.opts.Workers)
		s.arms.refreshVariances(s)
	}
}

// streamBlock is the number of points of one step of stream.
const streamBlock = 512

// stream computes V and b in one pass over the points, by products of blocks and one
// Cholesky factorisation. It costs u·m(m + d).
func (s *Sparse) stream() error {
	u, m, growth := s.pts.len(), s.emb.len(), s.opts.Growth
	win := window{stride: growth.roomFor(m), first: max(0, u-growth.Window)}
	switch {
	case growth.Window == 0:
		win.first = 0
	case u > 2*growth.Window:
		win.first = u
	}
	if m >= growth.Room {
		win.first = u // not needed any more
	}
	reg := newRegression(m, growth.roomFor(m))
	v := make([]float64, m*m)
	for i := range m {
		v[i*m+i] = 1
	}
	x, size := s.pts.rows(), min(u, streamBlock)
	weights, resids := make([]float64, u), make([]float64, u) // kept if all goes well
	room, prior, res := make([]float64, size*m), make([]float64, size), make([]float64, size)
	for from := 0; from < u; from += streamBlock {
		to := min(from+streamBlock, u)
		block, z := x.Slice(from, to), room[:(to-from)*m]
		if err := s.emb.embedTo(z, prior[:to-from], res[:to-from], block, s.workers(u)); err != nil {
			return blockError(err, from)
		}
		for i := range to - from {
			p, row := from+i, z[i*m:][:m]
			st, one := s.pts.get(p), block.Slice(i, i+1)
			weight, resid := s.weight(st, 0, res[i]), st.target(s.opts.NoiseVariance)-s.opts.Mean
			weights[p], resids[p] = weight, resid
			if p >= win.first {
				xs, _ := s.emb.vector(one)
				win.add(row, xs, weight, resid, prior[i], res[i])
			}
			floats.AddScaled(reg.b, weight*resid, row)
			floats.Scale(math.Sqrt(weight), row)
		}
		if m > 0 {
			blocked.Syrk(runtime.GOMAXPROCS(0), true, blocked.New(to-from, m, z), 1, 1, blocked.New(m, m, v))
		}
	}
	if m > 0 {
		blocked.Cholesky(runtime.GOMAXPROCS(0), blocked.New(m, m, v))
	}
	for i := range m {
		copy(reg.l.row(i), v[i*m:][:i+1])
	}
	for p := range u {
		st := s.pts.edit(p)
		st.weight, st.resid = weights[p], resids[p]
	}
	s.win, s.reg, s.varL, s.own, s.traces, s.updates = win, reg, reg.l, true, nil, 0
	return nil
}
