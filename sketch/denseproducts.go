package sketch

import (
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var _ multiplier = (*dense)(nil)

// multiplies implements multiplier, except for rectified units, which are not a
// function of panels.
func (m *dense) multiplies(x kernel.Rows) bool {
	if m.wave == rectify {
		return false
	}
	switch x.(type) {
	case *kernel.Points[float64], *kernel.Points[float32]:
		return true
	}
	return false
}

func (m *dense) height() int { return m.columns.Height() }

func (m *dense) newProducts() tileProducts {
	return &panelProducts{m: m, block: panel.NewBlock(m.columns, m.columns.Height()), own: new(panel.Vectors[float64])}
}

// panelProducts multiplies with features in panels.
type panelProducts struct {
	m     *dense
	block *panel.Block[float64]
	own   *panel.Vectors[float64]
	w     *panel.Vectors[float64]
	sum   panel.Sum[float64]
}

func (p *panelProducts) set(w []float64, c int) {
	p.w = p.own
	p.w.Set(p.m.columns, w, c)
}

func (p *panelProducts) share(from tileProducts) { p.w = from.(*panelProducts).w }

func (p *panelProducts) multiply(x kernel.Rows, i0, i1, c int, forward bool, t []float64, f func(row int, t []float64), part []float64) error {
	switch x := x.(type) {
	case *kernel.Points[float64]:
		inPanels(p, panelRows(x), i0, i1, c, forward, t, f, part)
	case *kernel.Points[float32]:
		inPanels(p, panelRows(x), i0, i1, c, forward, t, f, part)
	}
	return nil
}

func panelRows[T kernel.Float](x *kernel.Points[T]) panel.Rows[T] {
	return panel.Rows[T]{Data: x.Data(), N: x.Len(), D: x.Dim()}
}

func inPanels[T kernel.Float](p *panelProducts, x panel.Rows[T], i0, i1, c int, forward bool, t []float64, f func(row int, t []float64), part []float64) {
	if part != nil {
		p.sum.Reset(p.m.columns, c)
	}
	height := p.m.columns.Height()
	for a := i0; a < i1; a += height {
		z := min(a+height, i1)
		ta := t[(a-i0)*c : (z-i0)*c]
		if forward {
			panel.Evaluate(p.block, x, a, z, p.w, ta)
		} else {
			panel.Evaluate(p.block, x, a, z, nil, nil)
		}
		if f != nil {
			f(a, ta)
		}
		if part != nil {
			p.block.AddTransposed(&p.sum, ta)
		}
	}
	if part != nil {
		clear(part)
		p.sum.AddTo(part)
	}
}
