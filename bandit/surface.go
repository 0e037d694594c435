package bandit

import (
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

func (m *sparseSurface) slope() Slope { return sparseSlope{m.post.Probe()} }

func (m *sparseSurface) observe(x kernel.Rows, y []float64) error { return m.Learn(x, y) }
func (m *sparseSurface) inducing() int                            { return m.post.Rank() }
func (m *sparseSurface) steps() int                               { return m.Steps() }
func (m *sparseSurface) pending() int                             { return m.post.Pending() }
func (m *sparseSurface) dimension() float64                       { return m.currentDimension() }
func (m *sparseSurface) information() float64                     { return m.post.InformationGain() }
func (m *sparseSurface) pendingGain() float64                     { return m.post.PendingGain() }
func (m *sparseSurface) fault() error                             { return m.sparse.fault }

// points leaves out inputs with only cancelled pulls.
func (m *sparseSurface) points() kernel.Rows {
	keep := m.known()
	if len(keep) == 0 {
		return nil
	}
	return m.post.Points().Select(keep)
}

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

// exactSurface is the exact posterior.
type exactSurface struct{ *gp.Exact }

func newExactSurface(cfg Config) (exactSurface, error) {
	g, err := gp.NewExact(cfg.Kernel, gp.Data{}, gp.Options{NoiseVariance: cfg.NoiseVariance, Mean: cfg.Mean, Workers: cfg.Workers})
	return exactSurface{g}, err
}

func (m exactSurface) observe(x kernel.Rows, y []float64) error {
	return m.Append(gp.Data{X: x, Y: y})
}

func (m exactSurface) slope() Slope { return &exactSlope{Exact: m.Exact} }

func (m exactSurface) pull(x kernel.Rows) error { return m.ObserveVariance(x) }

func (m exactSurface) cancel(x kernel.Rows) error {
	if m.Cancel(x) != nil {
		return ErrNotPending
	}
	return nil
}

func (m exactSurface) points() kernel.Rows  { return m.AllPoints() }
func (m exactSurface) inducing() int        { return m.steps() }
func (m exactSurface) steps() int           { return m.Len() + m.Pending() }
func (m exactSurface) pending() int         { return m.Pending() }
func (m exactSurface) information() float64 { return m.InformationGain() }
func (m exactSurface) pendingGain() float64 { return m.PendingGain() }
func (m exactSurface) dimension() float64   { return m.EffectiveDimension() }
func (m exactSurface) fault() error         { return nil }
