package bandit

import (
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// surface is BKB's posterior without arms, which can be evaluated at any point.
type surface struct{ BKB }

func newSurface(cfg BKBConfig, b base) (*surface, error) {
	s := sparse{base: b, sparsity: cfg.Sparsity.withDefaults()}
	var err error
	s.post, err = gp.NewSparse(cfg.Kernel, b.arms.Slice(0, 0), gp.Data{}, gp.SparseOptions{
		NoiseVariance: cfg.NoiseVariance, Mean: cfg.Mean, Approximation: cfg.Approximation, Workers: cfg.Workers,
	})
	return &surface{BKB{s}}, err
}

// Predict returns means and variances at rows.
func (m *surface) Predict(x kernel.Rows) (mean, variance []float64, err error) {
	return m.post.Predict(x)
}

// points leaves out inputs with only cancelled pulls.
func (m *surface) points() kernel.Rows {
	keep := m.known()
	if len(keep) == 0 {
		return nil
	}
	return m.post.Points().Select(keep)
}

func (m *surface) pull(x kernel.Rows) error {
	if err := m.post.ObserveVariance(x); err != nil {
		return err
	}
	m.refresh()
	return nil
}

func (m *surface) cancel(x kernel.Rows) error {
	if m.post.Cancel(x) != nil {
		return ErrNotPending
	}
	return nil
}
