package gp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// SparseOptions holds the settings of a [Sparse] posterior.
type SparseOptions struct {
	// NoiseVariance is λ = ξ² > 0, the total noise.
	NoiseVariance float64
	// Mean is the prior mean of the process, a constant.
	Mean float64
	// Approximation is DTC by default.
	Approximation Approximation
	// RankTolerance is the conditional variance, in units of the largest prior variance of the
	// dictionary, below which an inducing point is dropped as dependent. If 0, it is 1e-12.
	RankTolerance float64
	// Growth, if its Room is not 0, makes a posterior that grows, see [Growth].
	Growth Growth
	// Workers is as in [Options]. If 0, small work also stays on one processor.
	Workers int
}

// Growth holds the settings of a posterior that adds inducing points as they arrive. The first
// are those of the dictionary, in its order, and then observations and pending pulls follow.
type Growth struct {
	// Room is the largest number of inducing points. Without room, the residual of an
	// observation counts as noise.
	Room int
	// Window is the number of latest points whose embeddings are kept when everything is
	// computed from scratch, and none of more than twice as many points. 0 keeps all.
	Window int
	// Significance ≥ 0 is the residual, in units of ξ², up to which an input does not
	// become an inducing point.
	Significance float64
}

func (o SparseOptions) check() error {
	if err := checkVariance(o.NoiseVariance); err != nil {
		return err
	}
	if o.Approximation < DTC || o.Approximation > FITC {
		return fmt.Errorf("gp: unknown approximation %d", o.Approximation)
	}
	if !(o.RankTolerance >= 0 && o.RankTolerance < 1) {
		return valueError("rank tolerance", -1, o.RankTolerance, "≥ 0 and < 1")
	}
	for _, c := range []struct {
		what  string
		value int
	}{{"room", o.Growth.Room}, {"window", o.Growth.Window}} {
		if c.value < 0 {
			return valueError(c.what, -1, float64(c.value), "≥ 0")
		}
	}
	if !(o.Growth.Significance >= 0) || !isFinite(o.Growth.Significance) {
		return valueError("significance", -1, o.Growth.Significance, "≥ 0 and finite")
	}
	return checkMean(o.Mean)
}

// anchorEvery is the number of rank-one updates after which a posterior that does not grow
// computes everything from scratch, to remove rounding. The mean's rounding is of order
// 1e-15/λ while an inducing point has no observation, and otherwise does not depend on λ.
const anchorEvery = 512

func (o SparseOptions) grows() bool { return o.Growth.Room > 0 }

// Sparse is a posterior supported on m inducing points, (7.1) of Carratino (2020), as the package
// comment says. Variances are in the units of (6.4). The leverage score of BKB is σ̃²/λ.
//
// Observations of equal inputs are one point, weighted by their precisions. A point can also be
// pending, which means pulled with its target not known yet. Pending pulls shrink σ̃ as
// observations do and do not change μ̃. An observation of a pending point resolves it, unless it
// has noise of its own.
//
// Methods that change the posterior need exclusive access. Several goroutines may read at once.
type Sparse struct {
	k    kernel.Kernel
	opts SparseOptions
	emb  *embedding

	pts  *points
	win  window
	reg  regression
	varL *cholesky // of V with pending pulls, or reg.l itself if there are none
	own  bool      // the factors are not shared with the posterior this was forked from

	// frozen says that V holds pulls that will have no targets, so w stays.
	frozen bool
	gains  map[int][]float64 // of the pending pulls of each point
	held   int               // their number
	order  []int             // points in the order of their first observation

	traces  *traces // nil in a posterior that grows
	reading *sync.Mutex

	updates  int     // since the last anchor
	every    int     // updates between anchors
	leverage float64 // Σ σ̃²/λ of pulls since the last Resparsify
	gain     float64

	arms   *arms
	paused *arms
	buf    [5][]float64 // scratch of length m
}

// traces are tr V⁻¹ without and with pending pulls.
type traces struct{ mean, variance float64 }

// NewSparse returns the posterior on the inducing points of dictionary given data. Both may be
// empty. To the bit, it equals [Sparse.Resparsify] of a posterior with the same observations in
// the same order. It costs O(|D|m² + um²) for u different inputs, and O(nm²) for n observations
// if the posterior does not grow. Its errors are those of [NewExact].
func NewSparse(k kernel.Kernel, dictionary kernel.Rows, data Data, opts SparseOptions) (*Sparse, error) {
	if k == nil {
		return nil, errors.New("gp: no kernel")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts.RankTolerance = cmp.Or(opts.RankTolerance, defaultRankTolerance)
	s := &Sparse{k: k, opts: opts, pts: new(points), reading: new(sync.Mutex), every: anchorEvery}
	if err := s.rebuild(dictionary); err != nil {
		return nil, err
	}
	if err := data.check(k, s.emb.rows, opts.NoiseVariance); err != nil || data.len() == 0 {
		return s, err
	}
	if opts.grows() {
		return s, s.load(data)
	}
	at, err := s.locate(data)
	if err != nil {
		return nil, err
	}
	for i, p := range at {
		s.observe(p, data.Y[i], data.own(i))
	}
	s.leverage = 0
	s.anchor()
	return s, nil
}

// load adds observations without embedding them, and computes V from all.
func (s *Sparse) load(data Data) error {
	s.pts.reserve(data.X, data.len())
	for i := range data.Y {
		p, key, found := s.pts.find(data.X, i)
		if !found {
			var err error
			if p, err = s.pts.push(data.X, i, key); err != nil {
				return err
			}
		}
		st := s.pts.edit(p)
		st.coarse = st.coarse || data.coarse(i)
		s.note(p, data.Y[i], data.own(i))
	}
	return s.stream()
}

// Resparsify exchanges the inducing points and computes everything from scratch from the counts,
// in O(|D|m² + um² + Am²). Observations, pending pulls, arms and the information gain stay.
func (s *Sparse) Resparsify(dictionary kernel.Rows) error {
	return s.rebuild(dictionary)
}

// rebuild computes everything that depends on the inducing points.
func (s *Sparse) rebuild(dictionary kernel.Rows) error {
	if s.frozen {
		return ErrFrozen
	}
	x := s.pts.rows()
	like := x
	if like == nil && s.arms != nil {
		like = s.arms.rows
	}
	if err := checkRows("dictionary", s.k, dictionary, like); err != nil {
		return err
	}
	next := *s
	next.own, next.win = true, window{stride: s.opts.Growth.roomFor(dictionary.Len())}
	var err error
	if s.opts.grows() {
		err = next.adopt(dictionary)
	} else if next.emb, err = newEmbedding(s.k, dictionary, s.opts.RankTolerance); err == nil && x != nil {
		err = next.embedAll(x)
	}
	if err != nil {
		return err
	}
	if s.arms != nil {
		if next.arms, err = newArms(next.emb, s.arms.rows, s.opts); err != nil {
			return err
		}
		next.arms.point, next.arms.lazy = s.arms.point, s.arms.lazy
	}
	next.resize()
	next.leverage = 0
	if err := next.Anchor(); err != nil {
		return err
	}
	*s = next
	return nil
}

// adopt takes inducing points in the order of the dictionary, without points.
func (s *Sparse) adopt(dictionary kernel.Rows) error {
	s.emb = assembled(s.k, dictionary.Slice(0, 0), nil, &cholesky{}, 0)
	for i := range dictionary.Len() {
		x := dictionary.Slice(i, i+1)
		z, prior, res, err := s.emb.one(x)
		if err != nil {
			return err
		}
		if !s.worthwhile(prior, res) {
			s.emb.offered++
			continue
		}
		if s.emb, err = s.emb.with(x, z, math.Sqrt(res)); err != nil {
			return err
		}
	}
	return nil
}

// worthwhile reports whether an input with this residual becomes an inducing point.
func (s *Sparse) worthwhile(prior, res float64) bool {
	if !(res > s.opts.RankTolerance*max(prior, s.emb.scale)) {
		return false
	}
	return !s.opts.grows() || s.emb.len() < s.opts.Growth.Room && res > s.opts.Growth.Significance*s.opts.NoiseVariance
}

// embedAll puts all points into the window.
func (s *Sparse) embedAll(x kernel.Rows) error {
	s.suit(x)
	z, prior, res, err := s.emb.embed(x, s.workers(x.Len()))
	if err != nil {
		return err
	}
	m := s.emb.len()
	s.win = window{stride: m, z: z, prior: prior, res: res, omega: make([]float64, len(res)), resid: make([]float64, len(res))}
	if s.emb.radial != nil {
		s.win.xs = slices.Clone(x.(*kernel.Points[float64]).Data()[:x.Len()*x.Dim()])
	}
	return nil
}

// suit gives up the fast path for dense rows where inputs are of another kind.
func (s *Sparse) suit(x kernel.Rows) {
	if _, dense := x.(*kernel.Points[float64]); !dense && s.emb.radial != nil {
		s.emb = s.emb.pairwise()
	}
}

// resize adjusts the length of the scratch memory to the number of inducing points.
func (s *Sparse) resize() {
	for i := range s.buf {
		s.buf[i] = make([]float64, s.emb.len())
	}
}

// workers returns how many goroutines embed n rows. It changes no bit.
func (s *Sparse) workers(n int) int {
	if m := s.emb.len(); s.opts.Workers == 0 && n*m*m < worthSharing {
		return 1
	}
	return s.opts.Workers
}

// worthSharing is the number of multiplications from which other goroutines take a share
// of an embedding.
const worthSharing = 1 << 26

// Observe adds observations. Observations of pending points resolve them. It costs
// O(m²) each, and O(Am) for the arms. A posterior that grows makes each an inducing
// point where that is worthwhile, in O(m² + wm) for w points in the window. Its errors
// are those of [Exact.Append], and [ErrFrozen].
func (s *Sparse) Observe(data Data) error {
	if err := data.check(s.k, s.emb.rows, s.opts.NoiseVariance); err != nil || data.len() == 0 {
		return err
	}
	if s.frozen {
		return ErrFrozen
	}
	if s.opts.grows() {
		return s.absorb(data)
	}
	at, err := s.locate(data)
	if err != nil {
		return err
	}
	live := s.arms
	if len(at) > anchorBatch {
		s.arms = nil // computed from scratch at the end
	}
	for i, p := range at {
		s.observe(p, data.Y[i], data.own(i))
	}
	if s.arms = live; len(at) > anchorBatch {
		return s.Anchor()
	}
	return nil
}

// anchorBatch is the number of observations at once from which it is cheaper to compute
// everything from scratch.
const anchorBatch = 64

// ObserveVariance adds a pending pull at every row of x. Variances shrink as by observations, and
// means stay. It costs as much as [Sparse.Observe]. In a posterior that grows such pulls cannot
// be taken back and no target can follow. Give them to a [Sparse.Fork].
func (s *Sparse) ObserveVariance(x kernel.Rows) error {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return err
	}
	if s.opts.grows() {
		return s.absorb(Data{X: x})
	}
	at, err := s.locate(Data{X: x})
	if err != nil {
		return err
	}
	for _, p := range at {
		s.pull(p)
	}
	return nil
}

// Cancel takes back one pending pull at every row of x. It costs O(um² + Am²). It
// returns an error if one is not pending, or not as often.
func (s *Sparse) Cancel(x kernel.Rows) error {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return err
	}
	want := map[int]int{}
	for i := range x.Len() {
		p, _, found := s.pts.find(x, i)
		if !found || len(s.gains[p]) <= want[p] {
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

// ErrNotPending says that a pull to cancel is not pending.
var ErrNotPending = errors.New("gp: not pending")

// ErrFrozen says that a posterior that grows cannot take an observation after a pull
// without target, because its means must not change.
var ErrFrozen = errors.New("gp: the posterior has pulls without targets, so no target can be added; observe on the one it was forked from")

// locate finds or makes the points of rows, with their embedding.
func (s *Sparse) locate(data Data) ([]int, error) {
	x := data.X
	s.suit(x)
	at, fresh, keys := make([]int, x.Len()), []int(nil), []string(nil)
	added := map[string]int{}
	for i := range at {
		p, key, found := s.pts.find(x, i)
		if !found && key != "" {
			p, found = added[key]
		}
		if !found {
			p = s.pts.len() + len(fresh)
			fresh, keys = append(fresh, i), append(keys, key)
			if key != "" {
				added[key] = p
			}
		}
		at[i] = p
	}
	if len(fresh) == 0 {
		return at, nil
	}
	rows := x.Select(fresh)
	if all := s.pts.rows(); all != nil && s.emb.radial == nil {
		if _, err := all.Slice(0, 0).Concat(rows); err != nil {
			return nil, fmt.Errorf("gp: x: %w", err)
		}
	}
	z, prior, res, err := s.emb.embed(rows, s.workers(len(fresh)))
	if err != nil {
		return nil, err
	}
	m := s.emb.len()
	for j, key := range keys {
		p, err := s.pts.push(rows, j, key)
		if err != nil {
			return nil, err
		}
		s.pts.edit(p).coarse = data.coarse(fresh[j])
		s.join(rows.Slice(j, j+1), z[j*m:(j+1)*m], 0, 0, prior[j], res[j])
	}
	return at, nil
}

// join puts the embedding of the next point into the window.
func (s *Sparse) join(x kernel.Rows, z []float64, omega, resid, prior, res float64) {
	u, _ := s.emb.vector(x)
	s.win.add(z, u, omega, resid, prior, res)
}

// Len returns the number of observations, repetitions included.
func (s *Sparse) Len() int { return s.pts.total }

// Pending returns the number of pending pulls.
func (s *Sparse) Pending() int { return s.held }

// Rank returns the number m of inducing points kept of the dictionary.
func (s *Sparse) Rank() int { return s.emb.len() }

// NoiseVariance returns λ = ξ².
func (s *Sparse) NoiseVariance() float64 { return s.opts.NoiseVariance }

// Inducing returns the inducing points, m×d, and their indices in the dictionary from which they
// were chosen. The indices of later points count on from its length. Change neither.
func (s *Sparse) Inducing() (points kernel.Rows, kept []int) {
	return s.emb.rows, slices.Clip(s.emb.kept)
}

// Points returns the different inputs that were observed or pulled, in the order of
// their arrival, or nil if there are none.
func (s *Sparse) Points() kernel.Rows { return s.pts.rows() }

// Counts returns the number of observations n_i of every point.
func (s *Sparse) Counts() []float64 {
	out := make([]float64, s.pts.len())
	for i := range out {
		out[i] = s.pts.get(i).observations()
	}
	return out
}

// PendingCounts returns the number of pending pulls of every point.
func (s *Sparse) PendingCounts() []int {
	out := make([]int, s.pts.len())
	for p, gains := range s.gains {
		out[p] = len(gains)
	}
	return out
}
