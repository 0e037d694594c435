package gp

import (
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
)

// arms holds A inputs with their embedding, means and variances. One update of means
// and variances is one product g = Zh.
//
//	μ += g e,  σ̃² −= shrink·g².
type arms struct {
	rows     kernel.Rows
	padded   int
	z        []float64 // columns z of 8 arms side by side, as ⌈A/8⌉ panels of padded×8
	h        []float64 // a direction, padded
	base     []float64 // the lower bound of the variance, its residual or the floor
	prior    []float64
	res      []float64
	m0       float64
	mean     []float64
	variance []float64
	point    []int // the arm's point, −1 while it has none
	lazy     bool
	emb      *embedding
	deferred deferred
}

func newArms(e *embedding, rows kernel.Rows, opts SparseOptions) (*arms, error) {
	n := rows.Len()
	a := &arms{rows: rows, m0: opts.Mean, point: make([]int, n), emb: e}
	for _, v := range []*[]float64{&a.prior, &a.res, &a.base, &a.mean, &a.variance} {
		*v = make([]float64, n)
	}
	ld := e.l.panels()
	a.padded, a.h, a.z = ld.padded, make([]float64, ld.padded), simd.Aligned[float64]((n+lanes-1)/lanes*lanes*ld.padded)
	err := forBlocks(n, embedBlock, opts.Workers, func(i0, i1 int, s *kernel.Scratch) error {
		return e.embedPanels(ld, a.panels(i0, i1), a.prior[i0:i1], a.res[i0:i1], rows, i0, i1, s)
	})
	if err != nil {
		return nil, err
	}
	for i := range n {
		a.point[i] = -1
		a.base[i] = varianceFloor * a.prior[i]
		if opts.Approximation == SoR {
			a.res[i] = 0
		}
		a.base[i] = max(a.res[i], a.base[i])
	}
	return a, nil
}

// panels returns the panels of the arms i0 ≤ i < i1, where i0 starts a panel.
func (a *arms) panels(i0, i1 int) []float64 {
	return a.z[i0*a.padded : (i1+lanes-1)/lanes*lanes*a.padded]
}

// armBlock is the number of arms of one task, whose part of Z fits into the cache.
const armBlock = 1024

// products sets dst to zᵀh for all arms. It costs O(Am), at the speed of memory.
func (a *arms) products(dst, h []float64, workers int) {
	copy(a.h, h)
	_ = forBlocks(len(dst), armBlock, workers, func(i0, i1 int, _ *kernel.Scratch) error {
		panelProducts(dst[i0:i1], a.h, a.panels(i0, i1))
		return nil
	})
}

// update applies a rank-one update with direction h.
func (a *arms) update(h []float64, e, shrink float64, opts SparseOptions) {
	copy(a.h, h)
	_ = forBlocks(len(a.mean), armBlock, opts.Workers, func(i0, i1 int, s *kernel.Scratch) error {
		mark := s.Mark()
		defer s.Release(mark)
		g := s.Floats(i1 - i0)
		panelProducts(g, a.h, a.panels(i0, i1))
		a.add(g, i0, e, shrink)
		return nil
	})
}

// add applies μ += e·g and σ̃² −= shrink·g² to the arms from i0 on.
func (a *arms) add(g []float64, i0 int, e, shrink float64) {
	n := len(g)
	mean, variance, base := a.mean[i0:i0+n], a.variance[i0:i0+n], a.base[i0:i0+n]
	for i, v := range g {
		mean[i] += e * v
		next := variance[i] - shrink*v*v
		if next < base[i] {
			next = base[i]
		}
		variance[i] = next
	}
}

// refreshMeans computes the means from scratch. It costs O(Am).
func (a *arms) refreshMeans(s *Sparse) {
	s.settled()
	a.products(a.mean, s.reg.w, s.opts.Workers)
	for i := range a.mean {
		a.mean[i] += a.m0
	}
}

// refreshVariances computes the variances from scratch. It costs O(Am²).
func (a *arms) refreshVariances(s *Sparse) {
	lv := s.varL.panels()
	_ = forBlocks(len(a.variance), predictBlock, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		mark := sc.Mark()
		defer sc.Release(mark)
		from := a.panels(i0, i1)
		panels := sc.Floats(len(from))
		copy(panels, from)
		s.spread(a.variance[i0:i1], lv, panels, a.prior[i0:i1], a.res[i0:i1], sc)
		return nil
	})
}

// column copies z of arm i.
func (a *arms) column(dst []float64, i int) {
	at := i/lanes*lanes*a.padded + i%lanes
	for j := range dst {
		dst[j] = a.z[at+j*lanes]
	}
}

// SetArms keeps the means and variances of the rows up to date from now on, in place of
// any previous arms. Nil means no arms. The rows must not change any more. With lazy, pending
// pulls do not change the variances, and [Sparse.RefreshArms] computes those that are needed
// (lazy BBKB). It costs O(Am²) now, and O(Am) for each update. Its errors are those of
// [Sparse.Predict].
func (s *Sparse) SetArms(rows kernel.Rows, lazy bool) error {
	if rows == nil {
		s.arms, s.paused = nil, nil
		return nil
	}
	if s.opts.grows() {
		return errors.New("gp: a posterior that grows keeps no arms; predict them, or leave SparseOptions.Growth out")
	}
	if err := checkRows("arms", s.k, rows, s.emb.rows); err != nil {
		return err
	}
	a, err := newArms(s.emb, rows, s.opts)
	if err != nil {
		return err
	}
	a.lazy = lazy
	a.refreshMeans(s)
	a.refreshVariances(s)
	s.arms, s.paused = a, nil
	return nil
}

// PauseArms puts the arms aside, for a number of changes after which ResumeArms computes them
// once. Arms of a type without a known equality lose track of their observations.
func (s *Sparse) PauseArms() {
	if s.arms != nil {
		s.paused, s.arms = s.arms, nil
	}
}

// ResumeArms brings the arms back. It costs O(Am²). Its errors are those of SetArms, and the
// arms then stay aside.
func (s *Sparse) ResumeArms() error {
	a := s.paused
	if a == nil {
		return nil
	}
	if a.emb != s.emb {
		next, err := newArms(s.emb, a.rows, s.opts)
		if err != nil {
			return err
		}
		next.point, next.lazy = a.point, a.lazy
		a = next
	}
	a.deferred.forget()
	a.refreshMeans(s)
	a.refreshVariances(s)
	s.arms, s.paused = a, nil
	return nil
}

// ArmMeans returns μ̃ of every arm, as a view that the next change overwrites.
func (s *Sparse) ArmMeans() []float64 { return s.settledArms().mean }

// ArmVariances returns σ̃² of every arm, as a view that the next change overwrites. For
// lazy arms they are upper bounds once a pull was pending.
func (s *Sparse) ArmVariances() []float64 { return s.settledArms().variance }

// Arm returns μ̃ and σ̃² of arm i, at the cost of O(m) for each observation since the last
// call for this arm. It panics on an index out of range.
func (s *Sparse) Arm(i int) (mean, variance float64) {
	a := s.needArms()
	if len(a.deferred.list) > 0 {
		a.deferred.mu.Lock()
		defer a.deferred.mu.Unlock()
		a.settle(i / lanes)
	}
	return a.mean[i], a.variance[i]
}

// MaxUCB returns the arm with the largest μ̃ + b·σ̃, b ≥ 0, the lowest of equals. It
// brings only those arms up to date that may be the largest, at A/8 comparisons and O(m) for
// each of them. It panics without arms.
func (s *Sparse) MaxUCB(b float64) int {
	a := s.needArms()
	if len(a.mean) == 0 {
		panic("gp: precondition: there are arms")
	}
	s.settled()
	return a.maxUCB(b, s.reg.w, s.opts.Workers)
}

func (s *Sparse) settledArms() *arms {
	a := s.needArms()
	a.settleAll(s.opts.Workers)
	return a
}

func (s *Sparse) needArms() *arms {
	if s.arms == nil {
		panic("gp: precondition: no arms; call SetArms first")
	}
	return s.arms
}

// RefreshArms computes the variances of some arms from scratch, with pending pulls. It
// costs O(m²) each. It panics on an index out of range.
func (s *Sparse) RefreshArms(idx []int) {
	a := s.settledArms()
	for _, i := range idx {
		t := s.buf[0]
		a.column(t, i)
		s.varL.forward(t)
		a.variance[i] = s.assemble(a.prior[i], a.res[i], square(t))
	}
}

// ObserveArm adds an observation of arm a without noise of its own. It resolves a
// pending pull of the arm's input, if there is one. It costs O(Am + m²). Its errors are
// *[kernel.IndexError] and *[ValueError] for y.
func (s *Sparse) ObserveArm(a int, y float64) error {
	if err := checkTarget(0, y); err != nil {
		return err
	}
	p, err := s.armPoint(a)
	if err != nil {
		return err
	}
	s.observe(p, y, 0)
	return nil
}

// PullArm adds a pending pull of arm a, see [Sparse.ObserveVariance].
func (s *Sparse) PullArm(a int) error {
	p, err := s.armPoint(a)
	if err != nil {
		return err
	}
	s.pull(p)
	return nil
}

// CancelArm takes back a pending pull of arm a. It costs O(um² + Am²).
func (s *Sparse) CancelArm(a int) error {
	arms := s.needArms()
	if err := arms.checkIndex(a); err != nil {
		return err
	}
	p, found := arms.point[a], true
	if p < 0 {
		p, _, found = s.pts.find(arms.rows, a)
	}
	if !found || len(s.gains[p]) == 0 {
		return fmt.Errorf("gp: arm %d: %w", a, ErrNotPending)
	}
	s.release(p, 1)
	s.anchorPending()
	return nil
}

// armPoint returns the point of arm a, and makes one if there is none yet.
func (s *Sparse) armPoint(a int) (int, error) {
	arms := s.needArms()
	if err := arms.checkIndex(a); err != nil {
		return 0, err
	}
	if p := arms.point[a]; p >= 0 {
		return p, nil
	}
	at, err := s.locate(Data{X: arms.rows.Slice(a, a+1)})
	if err != nil {
		return 0, err
	}
	arms.point[a] = at[0]
	return at[0], nil
}

func (a *arms) checkIndex(i int) error {
	if i < 0 || i >= len(a.point) {
		return fmt.Errorf("gp: arm: %w", &kernel.IndexError{Index: i, Len: len(a.point)})
	}
	return nil
}
