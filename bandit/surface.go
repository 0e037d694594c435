package bandit

import (
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// sparseSurface is BKB's posterior, without arms.
type sparseSurface struct {
	BKB
}

func newSparseSurface(cfg BKBConfig, b base) (*sparseSurface, error) {
	s := sparse{base: b, sparsity: cfg.Sparsity.withDefaults()}
	var err error
	s.post, err = gp.NewSparse(cfg.Kernel, b.arms.Slice(0, 0), gp.Data{}, gp.SparseOptions{
		NoiseVariance: cfg.NoiseVariance, Mean: cfg.Mean, Approximation: cfg.Approximation, Workers: cfg.Workers,
	})
	return &sparseSurface{BKB{s}}, err
}

func (m *sparseSurface) Predict(x kernel.Rows) (mean, variance []float64, err error) {
	return m.post.Predict(x)
}

func (m *sparseSurface) PredictSlope(x kernel.Rows, i int) (gp.Slope, error) {
	return m.post.PredictSlope(x, i)
}

func (m *sparseSurface) observe(x kernel.Rows, y []float64) error { return m.Learn(x, y) }
func (m *sparseSurface) points() kernel.Rows                      { return m.post.Points() }
func (m *sparseSurface) inducing() int                            { return m.post.Rank() }
func (m *sparseSurface) steps() int                               { return m.Steps() }
func (m *sparseSurface) pending() int                             { return m.post.Pending() }
func (m *sparseSurface) dimension() float64                       { return m.currentDimension() }
func (m *sparseSurface) information() float64                     { return m.post.InformationGain() }
func (m *sparseSurface) fault() error                             { return m.sparse.fault }

func (m *sparseSurface) pull(x kernel.Rows) error {
	if err := m.post.ObserveVariance(x); err != nil {
		return err
	}
	m.refresh()
	return nil
}

func (m *sparseSurface) cancel(x kernel.Rows) error {
	if m.post.Cancel(x) != nil {
		return ErrNotPending
	}
	return nil
}

// exactSurface is the exact posterior. While pulls are pending, σ is that of a
// second one, which has them too; their rewards do not matter to it.
type exactSurface struct {
	k      kernel.Kernel
	opts   gp.Options
	known  *gp.Exact
	shadow *gp.Exact // nil without pending pulls
	open   []kernel.Rows
}

func newExactSurface(cfg Config) (*exactSurface, error) {
	m := &exactSurface{k: cfg.Kernel, opts: gp.Options{NoiseVariance: cfg.NoiseVariance, Mean: cfg.Mean, Workers: cfg.Workers}}
	var err error
	m.known, err = gp.NewExact(m.k, gp.Data{}, m.opts)
	return m, err
}

// spread is the posterior that has σ.
func (m *exactSurface) spread() *gp.Exact {
	if m.shadow != nil {
		return m.shadow
	}
	return m.known
}

func (m *exactSurface) Predict(x kernel.Rows) (mean, variance []float64, err error) {
	if mean, variance, err = m.known.Predict(x); err == nil && m.shadow != nil {
		_, variance, err = m.shadow.Predict(x)
	}
	return mean, variance, err
}

func (m *exactSurface) PredictSlope(x kernel.Rows, i int) (gp.Slope, error) {
	s, err := m.known.PredictSlope(x, i)
	if err == nil && m.shadow != nil {
		var t gp.Slope
		t, err = m.shadow.PredictSlope(x, i)
		s.SD, s.SDGradient = t.SD, t.SDGradient
	}
	return s, err
}

func (m *exactSurface) observe(x kernel.Rows, y []float64) error {
	open, found := m.without(x)
	if !found {
		open = m.open
	}
	if err := m.known.Append(gp.Data{X: x, Y: y}); err != nil {
		return err
	}
	return m.reopen(open)
}

func (m *exactSurface) pull(x kernel.Rows) error {
	if m.shadow == nil {
		return m.reopen([]kernel.Rows{x})
	}
	if err := m.shadow.Append(gp.Data{X: x, Y: []float64{0}}); err != nil {
		return err
	}
	m.open = append(m.open, x)
	return nil
}

func (m *exactSurface) cancel(x kernel.Rows) error {
	open, found := m.without(x)
	if !found {
		return ErrNotPending
	}
	return m.reopen(open)
}

// without returns the pending pulls without the oldest of x.
func (m *exactSurface) without(x kernel.Rows) (open []kernel.Rows, found bool) {
	key, _ := rowKey(x, 0)
	for i, r := range m.open {
		if k, _ := rowKey(r, 0); k == key {
			return slices.Delete(slices.Clone(m.open), i, i+1), true
		}
	}
	return nil, false
}

// reopen computes σ for what is known and the given pending pulls. Cost O(t³)
// if there are any.
func (m *exactSurface) reopen(open []kernel.Rows) error {
	if len(open) == 0 {
		m.shadow, m.open = nil, nil
		return nil
	}
	x := m.known.Points()
	if x == nil {
		x = open[0].Slice(0, 0)
	}
	x, err := x.Concat(open...)
	if err != nil {
		return err
	}
	shadow, err := gp.NewExact(m.k, gp.Data{X: x, Y: make([]float64, x.Len())}, m.opts)
	if err != nil {
		return err
	}
	m.shadow, m.open = shadow, slices.Clone(open)
	return nil
}

func (m *exactSurface) points() kernel.Rows  { return m.spread().Points() }
func (m *exactSurface) inducing() int        { return m.spread().Len() }
func (m *exactSurface) steps() int           { return m.spread().Len() }
func (m *exactSurface) pending() int         { return len(m.open) }
func (m *exactSurface) information() float64 { return m.spread().LogDet() }
func (m *exactSurface) fault() error         { return nil }

// dimension returns Σ σ²/λ of the pulls. Cost O(t³).
func (m *exactSurface) dimension() float64 {
	g := m.spread()
	if g.Len() == 0 {
		return 0
	}
	_, variance, err := g.Predict(g.Points())
	if err != nil {
		return 0
	}
	sum := 0.0
	for _, v := range variance {
		sum += v
	}
	return sum / m.opts.NoiseVariance
}
