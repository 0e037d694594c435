package gp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// SparseOptions are the settings of a [Sparse] posterior.
type SparseOptions struct {
	// NoiseVariance is λ = ξ² > 0, total as in thesis (6.3) and (7.1).
	NoiseVariance float64
	// Mean is the prior mean, with coefficients given; the zero value is 0.
	Mean Mean
	// Approximation is DTC by default.
	Approximation Approximation
	// RankTolerance is the conditional variance, in units of the largest prior
	// variance of the dictionary, below which an inducing point is dropped as
	// dependent on the others. 0 stands for 1e-12.
	RankTolerance float64
	// AnchorEvery is the number of rank-one updates after which everything is
	// computed afresh from the counts, to forget rounding. 0 stands for 512. The
	// mean's rounding is of order 1e-15/λ while nothing has been observed of an
	// inducing point, and does not depend on λ else.
	AnchorEvery int
	// InformationGain, if not 0, is that of the data given to NewSparse, as
	// [Sparse.InformationGain] told it once. 0 computes it anew.
	InformationGain float64
	// Workers as in [Options].
	Workers int
}

func (o SparseOptions) check(k kernel.Kernel, dictionary kernel.Rows) error {
	if k == nil {
		return errors.New("gp: no kernel")
	}
	if err := checkVariance(o.NoiseVariance); err != nil {
		return err
	}
	if o.Approximation < DTC || o.Approximation > FITC {
		return fmt.Errorf("gp: unknown approximation %d", o.Approximation)
	}
	if !(o.RankTolerance >= 0 && o.RankTolerance < 1) {
		return valueError("rank tolerance", -1, o.RankTolerance, "≥ 0 and < 1")
	}
	if !(o.InformationGain >= 0) || !isFinite(o.InformationGain) {
		return valueError("information gain", -1, o.InformationGain, "≥ 0 and finite")
	}
	if o.AnchorEvery < 0 {
		return valueError("updates between anchors", -1, float64(o.AnchorEvery), "≥ 0")
	}
	if o.Mean.fitted {
		return errors.New("gp: a sparse posterior wants the coefficients of its mean given")
	}
	if err := checkRows("dictionary", k, dictionary, nil); err != nil {
		return err
	}
	return o.Mean.check(dictionary)
}

func (o SparseOptions) withDefaults() SparseOptions {
	if o.RankTolerance == 0 {
		o.RankTolerance = defaultRankTolerance
	}
	if o.AnchorEvery == 0 {
		o.AnchorEvery = 512
	}
	return o
}

// Sparse is a posterior supported on m inducing points, thesis (7.1) with its
// misprints corrected:
//
//	z(x)  = L_D⁻¹k_D(x),  V = Σ_i n_i z_i z_iᵀ + λI,  w = V⁻¹ Σ_i n_i ȳ_i z_i
//	μ̃(x)  = z(x)ᵀw
//	σ̃²(x) = max(k(x, x) − ‖z(x)‖², 0) + λ‖L_V⁻¹z(x)‖²
//
// for DTC; see [Approximation] for the others. The variance is a sum of terms
// that are not negative, in the units of (6.4): the leverage score of BKB is
// σ̃²/λ. With all observed points as inducing points it is the exact posterior.
//
// Observations of equal inputs are counts of one point. A point can also be
// pending: pulled, its target not known yet. Pending pulls shrink σ̃ as
// observations do and leave μ̃ alone, which is BBKB within a batch and for
// workers that are late. An observation of a pending point resolves it, unless it has noise of its own.
//
// Arms (see [Sparse.SetArms]) are inputs whose means and variances are kept up
// to date. Methods that change the posterior need it for themselves; reading
// is safe from several goroutines. A refused call leaves everything as it was.
type Sparse struct {
	k    kernel.Kernel
	opts SparseOptions
	emb  *embedding

	obs   *observations
	z     []float64 // of the points, u×m
	res   []float64 // k − ‖z‖² of the points
	prior []float64 // k of the points
	m0    []float64 // prior mean at the points
	pend  []int     // pending pulls of the points
	gains [][]float64
	held  int   // Σ pend
	order []int // points in the order of their first observation

	sys  system
	varL *Cholesky // of V with pending pulls; sys.l itself when there are none

	trace, varTrace float64 // tr V⁻¹ of both

	updates  int     // since the last anchor
	leverage float64 // Σ σ̃²/λ of pulls since the last Resparsify
	gain     float64

	arms   *arms
	paused *arms
	buf    [5][]float64 // scratch of length m
}

// NewSparse returns the posterior on the inducing points of dictionary given
// data, which may be empty. It is, to the bit, what [Sparse.Resparsify] makes
// of a posterior with the same observations in the same order. Cost
// O(|D|m² + um²) for u different inputs, and O(nm²) for n observations where
// the information gain is not given. Errors: as [NewExact]; an empty dictionary
// is allowed and means the prior.
func NewSparse(k kernel.Kernel, dictionary kernel.Rows, data Data, opts SparseOptions) (*Sparse, error) {
	if err := opts.check(k, dictionary); err != nil {
		return nil, err
	}
	s := &Sparse{obs: &observations{}}
	if err := s.rebuild(k, dictionary, opts.withDefaults()); err != nil {
		return nil, err
	}
	if err := data.check(k, s.emb.rows); err != nil || data.len() == 0 {
		s.gain = opts.InformationGain
		return s, err
	}
	at, err := s.locate(data.X, data.Noise)
	if err != nil {
		return nil, err
	}
	for i, p := range at {
		if opts.InformationGain == 0 {
			s.observe(p, data.Y[i])
		} else {
			s.note(p, data.Y[i])
		}
	}
	if opts.InformationGain > 0 {
		s.gain = opts.InformationGain
	}
	s.leverage = 0
	s.anchor()
	return s, nil
}

// Resparsify exchanges the inducing points and computes everything afresh from
// the counts: O(|D|m² + um² + Am²). Observations, pending pulls, arms and the
// information gain stay.
func (s *Sparse) Resparsify(dictionary kernel.Rows) error {
	if err := s.opts.check(s.k, dictionary); err != nil {
		return err
	}
	return s.rebuild(s.k, dictionary, s.opts)
}

// Reset is [Sparse.Resparsify] with another kernel and other settings as well,
// such as those of a new fit. The information gain goes on from where it is;
// opts.InformationGain is not looked at.
func (s *Sparse) Reset(k kernel.Kernel, dictionary kernel.Rows, opts SparseOptions) error {
	opts.InformationGain = 0
	if err := opts.check(k, dictionary); err != nil {
		return err
	}
	return s.rebuild(k, dictionary, opts.withDefaults())
}

// rebuild computes all that depends on kernel, settings and inducing points.
func (s *Sparse) rebuild(k kernel.Kernel, dictionary kernel.Rows, opts SparseOptions) error {
	if s.obs.x != nil {
		if err := checkRows("dictionary", k, dictionary, s.obs.x); err != nil {
			return err
		}
	}
	if s.arms != nil {
		if err := checkRows("dictionary", k, dictionary, s.arms.rows); err != nil {
			return err
		}
	}
	emb, err := newEmbedding(k, dictionary, opts.RankTolerance)
	if err != nil {
		return err
	}
	next := *s
	next.k, next.opts, next.emb = k, opts, emb
	next.z, next.prior, next.res, next.m0 = nil, nil, nil, nil
	for i := range next.buf {
		next.buf[i] = make([]float64, emb.len())
	}
	if s.obs.x != nil {
		if next.z, next.prior, next.res, err = emb.embed(s.obs.x, opts.Workers); err != nil {
			return err
		}
		next.m0 = opts.Mean.at(s.obs.x)
	}
	if s.arms != nil {
		if next.arms, err = newArms(emb, s.arms.rows, opts); err != nil {
			return err
		}
		next.arms.point, next.arms.lazy = s.arms.point, s.arms.lazy
	}
	next.leverage = 0
	next.anchor()
	*s = next
	return nil
}

// weight is that of point i with extra pulls more than were observed.
func (s *Sparse) weight(i, pulls int) float64 {
	return s.opts.Approximation.weight(s.opts.NoiseVariance,
		s.obs.count[i]+float64(pulls), s.obs.extra[i], s.res[i])
}

// Anchor computes everything afresh from the counts, to forget the rounding of
// updates. It is done without being asked every AnchorEvery updates, and by
// Resparsify. Cost O(um² + Am²).
func (s *Sparse) Anchor() { s.anchor() }

func (s *Sparse) anchor() {
	u, m := s.obs.len(), s.emb.len()
	resid := make([]float64, u)
	for i := range resid {
		resid[i] = s.obs.mean[i] - s.m0[i]
	}
	s.sys = solveSystem(s.z, resid, func(i int) float64 { return s.weight(i, 0) }, s.order, m, s.opts.NoiseVariance)
	s.trace = s.sys.l.inverseTrace()
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
	s.varL, s.varTrace = s.sys.l, s.trace
	if s.held > 0 {
		order := slices.Clone(s.order)
		for i, n := range s.obs.count {
			if n == 0 && s.pend[i] > 0 {
				order = append(order, i)
			}
		}
		s.varL = solveSystem(s.z, nil, func(i int) float64 { return s.weight(i, s.pend[i]) },
			order, m, s.opts.NoiseVariance).l
		s.varTrace = s.varL.inverseTrace()
	}
	s.updates = 0
	if s.arms != nil {
		s.arms.settleAll(s.opts.Workers)
		s.arms.refreshVariances(s)
	}
}

// Observe adds observations. Observations of pending points resolve them. Cost
// O(m²) each, and O(Am) for the arms. Errors: as [Exact.Append].
func (s *Sparse) Observe(data Data) error {
	if err := data.check(s.k, s.emb.rows); err != nil || data.len() == 0 {
		return err
	}
	at, err := s.locate(data.X, data.Noise)
	if err != nil {
		return err
	}
	live := s.arms
	if len(at) > anchorBatch {
		s.arms = nil // computed afresh at the end
	}
	for i, p := range at {
		s.observe(p, data.Y[i])
	}
	if s.arms = live; len(at) > anchorBatch {
		s.anchor()
	}
	return nil
}

// anchorBatch is the number of observations at once from which on it is
// cheaper to compute the arms afresh.
const anchorBatch = 64

// ObserveVariance adds a pending pull at every row of x: variances shrink as
// by observations, means stay. Cost as [Sparse.Observe].
func (s *Sparse) ObserveVariance(x kernel.Rows) error {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return err
	}
	at, err := s.locate(x, nil)
	if err != nil {
		return err
	}
	for _, p := range at {
		s.pull(p)
	}
	return nil
}

// Cancel takes back one pending pull at every row of x. Cost O(um² + Am²).
// It returns an error if one is not pending, or not as often.
func (s *Sparse) Cancel(x kernel.Rows) error {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return err
	}
	want := map[int]int{}
	for i := range x.Len() {
		p, found := s.point(x, i)
		if !found || s.pend[p] <= want[p] {
			return fmt.Errorf("gp: row %d of x: %w", i, ErrNotPending)
		}
		want[p]++
	}
	for p, n := range want {
		s.release(p, n)
	}
	s.anchorPending()
	return nil
}

// point finds the point of row i of x.
func (s *Sparse) point(x kernel.Rows, i int) (p int, found bool) {
	if key, ok := rowKey(x, i); ok {
		p, found = s.obs.keys[key]
	}
	return p, found
}

// ErrNotPending is returned where a pull is taken back that is not pending.
var ErrNotPending = errors.New("gp: not pending")

// locate finds or makes the points of rows, with their embedding.
func (s *Sparse) locate(x kernel.Rows, extra []float64) ([]int, error) {
	if err := s.opts.Mean.check(x); err != nil {
		return nil, err
	}
	pl, err := s.obs.place(x, extra, true)
	if err != nil {
		return nil, err
	}
	n := len(pl.fresh)
	if n == 0 {
		return pl.at, nil
	}
	fresh := pl.x.Slice(s.obs.len(), pl.x.Len())
	z, prior, res, err := s.emb.embed(fresh, s.opts.Workers)
	if err != nil {
		return nil, err
	}
	s.obs.accept(pl)
	s.z = append(s.z, z...)
	s.prior, s.res = append(s.prior, prior...), append(s.res, res...)
	s.m0 = append(s.m0, s.opts.Mean.at(fresh)...)
	s.pend = append(s.pend, make([]int, n)...)
	s.gains = append(s.gains, make([][]float64, n)...)
	return pl.at, nil
}

// variance returns σ̃² at point i.
func (s *Sparse) variance(i int) float64 {
	m, t := s.emb.len(), s.buf[0]
	copy(t, s.z[i*m:(i+1)*m])
	s.varL.SolveL(t)
	return s.assemble(s.prior[i], s.res[i], square(t))
}

// assemble returns σ̃² from the residual and q = ‖L_V⁻¹z‖².
func (s *Sparse) assemble(prior, res, q float64) float64 {
	if s.opts.Approximation == SoR {
		res = 0
	}
	return max(res+s.opts.NoiseVariance*q, varianceFloor*prior)
}

// pulled takes note of a pull at point i before its variance shrinks.
func (s *Sparse) pulled(i int) (gain float64) {
	rls := s.variance(i) / (s.opts.NoiseVariance + s.obs.extra[i])
	s.leverage += rls
	gain = math.Log1p(rls)
	s.gain += gain
	return gain
}

// observe adds a target to point i.
func (s *Sparse) observe(i int, y float64) {
	w0, pulls := s.weight(i, 0), s.weight(i, s.pend[i])
	b0 := w0 * (s.obs.mean[i] - s.m0[i])
	resolves := s.pend[i] > 0
	if resolves {
		last := len(s.gains[i]) - 1
		s.gains[i] = s.gains[i][:last]
		s.pend[i]--
		s.held--
	} else {
		s.pulled(i)
	}
	s.note(i, y)
	w1 := s.weight(i, 0)
	shared := s.varL == s.sys.l
	s.updateMean(i, w1-w0, w1*(s.obs.mean[i]-s.m0[i])-b0, shared)
	switch {
	case shared:
		s.varTrace = s.trace
	case s.held == 0: // V with pending pulls is V again, up to rounding
		s.varL, s.varTrace = s.sys.l, s.trace
	case !resolves:
		s.updateVariance(i, s.weight(i, s.pend[i])-pulls)
	}
	s.count()
}

// note counts a target of point i.
func (s *Sparse) note(i int, y float64) {
	if s.obs.count[i] == 0 {
		s.order = append(s.order, i)
	}
	s.obs.observe(i, y)
}

// pull adds a pending pull to point i.
func (s *Sparse) pull(i int) {
	s.gains[i] = append(s.gains[i], s.pulled(i))
	if s.varL == s.sys.l {
		s.varL = s.sys.l.clone()
	}
	before := s.weight(i, s.pend[i])
	s.pend[i]++
	s.held++
	s.updateVariance(i, s.weight(i, s.pend[i])-before)
	s.count()
}

// release takes back n pending pulls of point i, but not their variance.
func (s *Sparse) release(i, n int) {
	last := len(s.gains[i]) - n
	for _, g := range s.gains[i][last:] {
		s.gain -= g
	}
	s.gains[i] = s.gains[i][:last]
	s.pend[i] -= n
	s.held -= n
}

// count anchors when it is time.
func (s *Sparse) count() {
	if s.updates++; s.updates >= s.opts.AnchorEvery {
		s.anchor()
	}
}

// updateMean adds δzzᵀ to V and βz to Σ W r z, for z of point i:
//
//	h = V⁻¹z,  w += h(β − δ zᵀw)/(1 + δ zᵀh).
//
// variances says that V is also that of the variances.
func (s *Sparse) updateMean(i int, delta, beta float64, variances bool) {
	m := s.emb.len()
	z, h := s.z[i*m:(i+1)*m], s.buf[1]
	if m == 0 {
		return
	}
	wait := variances && s.arms != nil && !s.arms.lazy
	if wait {
		s.arms.begin(s.sys)
	}
	q := s.direction(s.sys.l, z, h)
	den := 1 + delta*q
	e := (beta - delta*dot(z, s.sys.w)) / den
	axpy(e, h, s.sys.w)
	s.trace -= delta * square(h) / den
	s.rankOne(s.sys.l, z, delta)
	if s.arms == nil {
		return
	}
	shrink := 0.0
	if variances {
		shrink = s.opts.NoiseVariance * delta / den
	}
	if wait {
		s.arms.later(h, e, shrink, math.Sqrt(q))
		return
	}
	s.arms.settleAll(s.opts.Workers)
	s.arms.update(h, e, shrink, s.opts)
}

// updateVariance adds δzzᵀ to the V of the variances.
func (s *Sparse) updateVariance(i int, delta float64) {
	m := s.emb.len()
	z, h := s.z[i*m:(i+1)*m], s.buf[1]
	if m == 0 {
		return
	}
	q := s.direction(s.varL, z, h)
	s.varTrace -= delta * square(h) / (1 + delta*q)
	if s.arms != nil && !s.arms.lazy {
		s.arms.settleAll(s.opts.Workers)
		s.arms.update(h, 0, s.opts.NoiseVariance*delta/(1+delta*q), s.opts)
	}
	s.rankOne(s.varL, z, delta)
}

// direction sets h = V⁻¹z and returns zᵀV⁻¹z ≥ 0.
func (s *Sparse) direction(l *Cholesky, z, h []float64) float64 {
	copy(h, z)
	l.SolveL(h)
	q := dot(h, h)
	l.SolveLT(h)
	return q
}

func (s *Sparse) rankOne(l *Cholesky, z []float64, delta float64) {
	x, root := s.buf[2], math.Sqrt(max(delta, 0))
	for j, v := range z {
		x[j] = root * v
	}
	l.rankOne(x, s.buf[3], s.buf[4])
}

// Kernel returns the kernel.
func (s *Sparse) Kernel() kernel.Kernel { return s.k }

// NoiseVariance returns λ = ξ².
func (s *Sparse) NoiseVariance() float64 { return s.opts.NoiseVariance }

// Rank returns m, the number of inducing points in use.
func (s *Sparse) Rank() int { return s.emb.len() }

// Inducing returns the m inducing points in use, and their indices in the
// dictionary given. The others were combinations of these.
func (s *Sparse) Inducing() (kernel.Rows, []int) { return s.emb.rows, slices.Clone(s.emb.kept) }

// Len returns the number of observations, repetitions included.
func (s *Sparse) Len() int { return s.obs.total }

// Pending returns the number of pending pulls.
func (s *Sparse) Pending() int { return s.held }

// Points returns the different inputs observed or once pending, in the order
// in which they came; nil if there are none. With Counts and PointVariances it
// is what the next dictionary is drawn from.
func (s *Sparse) Points() kernel.Rows { return s.obs.x }

// Counts returns the number of observations of every point.
func (s *Sparse) Counts() []float64 { return slices.Clone(s.obs.count) }

// PendingCounts returns the number of pending pulls of every point.
func (s *Sparse) PendingCounts() []int { return slices.Clone(s.pend) }

// TargetMeans returns the mean target ȳ_i of every point, 0 without any.
func (s *Sparse) TargetMeans() []float64 { return slices.Clone(s.obs.mean) }

// PointVariances returns σ̃² at every point. Cost O(um²).
func (s *Sparse) PointVariances() []float64 {
	v := make([]float64, s.obs.len())
	s.variances(v, s.z, s.prior, s.res)
	return v
}

// variances computes σ̃² for embedded rows.
func (s *Sparse) variances(dst, z, prior, res []float64) {
	m, lv := s.emb.len(), packTriangle(s.varL)
	_ = forBlocks(len(dst), predictBlock, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		mark := sc.Mark()
		defer sc.Release(mark)
		q := i1 - i0
		panels := sc.Floats((q + lanes - 1) / lanes * lanes * lv.padded)
		if m > 0 {
			lv.pack(panels, z[i0*m:i1*m], q)
		}
		s.spread(dst[i0:i1], lv, panels, prior[i0:i1], res[i0:i1], sc)
		return nil
	})
}

// Leverage returns Σ σ̃²(x_s)/λ over the pulls since the inducing points were
// chosen, each with the variance before the pull, pending pulls included: BKB
// resparsifies when it exceeds a bound. For the rule of BBKB, which wants the
// variances at the start of the batch in the sum (Calandriello et al. 2020: no
// variance then shrinks by more than 1 + the sum), add those up yourself; this
// sum is smaller, as each variance has seen the pulls before it.
func (s *Sparse) Leverage() float64 { return s.leverage }

// InformationGain returns Σ log(1 + σ̃²_{s−1}(x_s)/λ) over all pulls so far,
// across changes of inducing points: log det(I + K/λ) if variances were exact
// ([Exact.LogDet]), the quantity inside β of thesis (7.5). Pending pulls count.
func (s *Sparse) InformationGain() float64 { return s.gain }

// PendingGain returns the part of InformationGain that is of pending pulls: these
// have shrunk no variance by more than its exponential, as far as σ̃ is exact.
// Cost O(u), nothing without any.
func (s *Sparse) PendingGain() float64 {
	sum := 0.0
	if s.held == 0 {
		return sum
	}
	for _, gains := range s.gains {
		for _, g := range gains {
			sum += g
		}
	}
	return sum
}

// EffectiveDimension returns d̃_eff = Σ σ̃²(x_s)/λ of all pulls, pending ones
// included (thesis (7.3)); at points with own noise, their share of Σ W σ̃²/λ. As
// V = Σ W zzᵀ + λI, it is
//
//	Σ_i W_i res_i/λ + m − λ tr V⁻¹,
//
// and tr V⁻¹ is kept up to date. Cost O(u).
func (s *Sparse) EffectiveDimension() float64 {
	sum := float64(s.emb.len()) - s.opts.NoiseVariance*s.varTrace
	if s.opts.Approximation == SoR {
		return sum
	}
	for i, r := range s.res {
		sum += s.weight(i, s.pend[i]) * r / s.opts.NoiseVariance
	}
	return sum
}

// LogDet returns log det(V/λ) of the present inducing points, without pending
// pulls: for DTC log det(I + Q/λ).
func (s *Sparse) LogDet() float64 {
	return s.sys.l.LogDet() - float64(s.emb.len())*math.Log(s.opts.NoiseVariance)
}
