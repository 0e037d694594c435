package gp

import (
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/simd"
)

// lanes is the number of inputs that are solved for side by side.
const lanes = 8

// triangle is the lower triangular L of order n, packed for solutions of columns in panels.
type triangle struct {
	n, padded int
	data      []float64
	rounded   bool // sums over columns are those of [roundedDots]
}

// panels returns L in panels. It packs them at the first call after a change.
func (c *cholesky) panels() triangle {
	if t := c.packed.Load(); t != nil {
		return *t
	}
	t := triangle{n: c.n, padded: blocked.Padded(c.n)}
	t.data = blocked.PackTriangle(c.matrix())
	c.packed.Store(&t)
	return t
}

// squares sets dst to ‖column‖² of every column.
func (t triangle) squares(dst, panels []float64) {
	if t.rounded {
		roundedDots(dst, nil, panels, t.n, t.padded)
		return
	}
	kern := simd.For[float64]()
	for i := 0; i < len(dst); i += lanes {
		var sum [lanes]float64
		kern.Squares(t.n, &panels[i*t.padded], &sum[0])
		copy(dst[i:], sum[:])
	}
}

// roundedDots sets dst to wᵀ·column of every column of panels, or to ‖column‖² if w is nil,
// with the bits of gonum's Dot. It leaves out rows from n on.
func roundedDots(dst, w, panels []float64, n, padded int) {
	kern := simd.For[float64]()
	var sums [4 * lanes]float64
	for i := 0; i < len(dst); i += lanes {
		panel := panels[i*padded:][:padded*lanes]
		if kern.ColumnDots == nil {
			gatheredDots(dst[i:min(i+lanes, len(dst))], w, panel, n)
			continue
		}
		clear(sums[:])
		fours := n / 4
		switch {
		case fours == 0:
		case w == nil:
			kern.ColumnSquares(fours, &panel[0], &sums[0])
		default:
			kern.ColumnDots(fours, &panel[0], &w[0], &sums[0])
		}
		for l := 4 * fours; l < n; l++ { // as in Dot the last products go to the first sum
			for c, v := range panel[l*lanes:][:lanes] {
				if w == nil {
					sums[c] += float64(v * v)
				} else {
					sums[c] += float64(v * w[l])
				}
			}
		}
		for c := range min(lanes, len(dst)-i) {
			dst[i+c] = (sums[lanes+c] + sums[3*lanes+c]) + (sums[c] + sums[2*lanes+c])
		}
	}
}

// gatheredDots is roundedDots for one panel, by Dot.
func gatheredDots(dst, w, panel []float64, n int) {
	column := make([]float64, n)
	for c := range dst {
		for l := range column {
			column[l] = panel[l*lanes+c]
		}
		if w == nil {
			dst[c] = square(column)
		} else {
			dst[c] = dot(column, w[:n])
		}
	}
}

// panelProducts sets dst to wᵀ·column of every column of panels, of which there may be
// up to 7 more. w is padded, as the columns are.
func panelProducts(dst, w, panels []float64) {
	kern, padded := simd.For[float64](), len(w)
	if padded == 0 {
		clear(dst)
		return
	}
	var sum [lanes]float64
	for i := 0; i < len(dst); i += lanes {
		clear(sum[:])
		panel := panels[i*padded:][:padded*lanes]
		for p := 0; p < padded; p += simd.Rows {
			kern.MultiplyT(&panel[p*lanes], &w[p], &sum[0], 1)
		}
		copy(dst[i:], sum[:])
	}
}

// scoring holds the packed data for predictions of a sparse posterior.
type scoring struct {
	s      *Sparse
	ld, lv triangle
	w      []float64 // padded
}

// scoring returns the packed data. With rounded, sums are those of [roundedDots].
func (s *Sparse) scoring(rounded bool) scoring {
	s.settled()
	c := scoring{s: s, ld: s.emb.l.panels(), lv: s.varL.panels()}
	c.ld.rounded, c.lv.rounded = rounded, rounded
	c.w = make([]float64, c.ld.padded)
	copy(c.w, s.reg.w)
	return c
}

// rows computes means, without the prior mean, and variances for rows i0 ≤ i <
// i1 of x. The whitened inputs stay in panels between the two solutions.
func (c scoring) rows(mean, variance []float64, x kernel.Rows, i0, i1 int, sc *kernel.Scratch) error {
	mark := sc.Mark()
	defer sc.Release(mark)
	q := i1 - i0
	prior, res := sc.Floats(q), sc.Floats(q)
	panels := sc.Floats((q + lanes - 1) / lanes * lanes * c.ld.padded)
	if err := c.s.emb.embedPanels(c.ld, panels, prior, res, x, i0, i1, sc); err != nil {
		return err
	}
	if c.ld.rounded {
		roundedDots(mean, c.w, panels, c.ld.n, c.ld.padded)
	} else {
		panelProducts(mean, c.w, panels)
	}
	c.s.spread(variance, c.lv, panels, prior, res, sc)
	return nil
}

// embedPanels sets panels to the columns z of rows i0 ≤ i < i1 of x, and their
// prior variances and residuals.
func (e *embedding) embedPanels(ld triangle, panels, prior, res []float64, x kernel.Rows, i0, i1 int, sc *kernel.Scratch) error {
	mark := sc.Mark()
	defer sc.Release(mark)
	norms := sc.Floats(i1 - i0)
	clear(norms)
	if ld.n > 0 {
		e.fillPanels(ld, panels, x, i0, i1, sc)
		blocked.SolvePanels(ld.data, ld.n, panels)
		ld.squares(norms, panels)
	}
	for i, r := range norms {
		if !isFinite(r) {
			if err := e.checkRow(x, i0+i, sc); err != nil {
				return err
			}
		}
		var err error
		if prior[i], res[i], err = e.residual(x, i0+i, r); err != nil {
			return err
		}
	}
	return nil
}

// fillPanels sets panels to the columns k_D(x_i).
func (e *embedding) fillPanels(ld triangle, panels []float64, x kernel.Rows, i0, i1 int, sc *kernel.Scratch) {
	defer sc.Release(sc.Mark())
	kx := sc.Floats((i1 - i0) * ld.n)
	e.prepared().Fill(kx, ld.n, x, i0, i1, sc)
	blocked.PackPanels(panels, blocked.New(i1-i0, ld.n, kx))
}

// checkRow returns an error if k_D(x_i) is not finite.
func (e *embedding) checkRow(x kernel.Rows, i int, sc *kernel.Scratch) error {
	mark := sc.Mark()
	defer sc.Release(mark)
	kx := sc.Floats(e.len())
	e.prep.Fill(kx, e.len(), x, i, i+1, sc)
	return checkKernel(kx, e.len(), i)
}

// spread sets variance to σ̃² of the columns z, which it overwrites.
func (s *Sparse) spread(variance []float64, lv triangle, panels, prior, res []float64, sc *kernel.Scratch) {
	mark := sc.Mark()
	defer sc.Release(mark)
	norms := sc.Floats(len(variance))
	clear(norms)
	if lv.n > 0 {
		blocked.SolvePanels(lv.data, lv.n, panels)
		lv.squares(norms, panels)
	}
	for i, r := range norms {
		variance[i] = s.assemble(prior[i], res[i], r)
	}
}
