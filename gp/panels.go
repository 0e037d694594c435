package gp

import (
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
)

// lanes is the number of inputs that are solved for side by side.
const lanes = 8

// triangle is the lower triangular L of order n in panels of 6 rows, each up to
// its diagonal, which is inverted; rows that are not there are those of the
// unit matrix. It is what the micro-kernel of a triangular solution reads.
type triangle struct {
	n, padded int
	data      []float64
}

// offset is where the panel of rows p, p+1, … starts: panels grow by 6 columns
// each.
func offset(p int) int { return p * (p + simd.Rows) / 2 }

func packTriangle(c *Cholesky) triangle {
	const rows = simd.Rows
	padded := (c.n + rows - 1) / rows * rows
	t := triangle{c.n, padded, simd.Aligned[float64](offset(padded))}
	for i := range padded {
		p := i / rows * rows
		panel := t.data[offset(p)+i-p:]
		if i >= c.n {
			panel[i*rows] = 1
			continue
		}
		for j, v := range c.row(i) {
			panel[j*rows] = v
		}
		panel[i*rows] = 1 / panel[i*rows]
	}
	return t
}

// solve replaces panels of 8 columns, each padded×8, by L⁻¹ times them.
func (t triangle) solve(panels []float64) {
	kern, size := simd.For[float64](), t.padded*lanes
	for p := 0; p < t.padded; p += simd.Rows {
		a := &t.data[offset(p)]
		for at := 0; at < len(panels); at += size {
			kern.Trsm(p, a, &panels[at], &panels[at+p*lanes])
		}
	}
}

// pack sets panels to the columns that are the rows of b, q×n.
func (t triangle) pack(panels, b []float64, q int) {
	kern, n := simd.For[float64](), t.n
	for i := 0; i < q; i += lanes {
		panel := panels[i*t.padded:][:t.padded*lanes]
		clear(panel[n*lanes:])
		if q-i < lanes {
			clear(panel)
			for r := range q - i {
				for l, v := range b[(i+r)*n:][:n] {
					panel[l*lanes+r] = v
				}
			}
			return
		}
		if n >= 4 {
			for r := 0; r < lanes; r += 4 {
				kern.Transpose(&panel[r], lanes, &b[(i+r)*n], n, n/4)
			}
		}
		for l := n &^ 3; l < n; l++ {
			for r := range lanes {
				panel[l*lanes+r] = b[(i+r)*n+l]
			}
		}
	}
}

// squares sets dst, of length q, to ‖column‖² of every column.
func (t triangle) squares(dst, panels []float64, q int) {
	for i := 0; i < q; i += lanes {
		var s0, s1, s2, s3, s4, s5, s6, s7 float64
		for panel := panels[i*t.padded:][:t.n*lanes]; len(panel) >= lanes; panel = panel[lanes:] {
			x := (*[lanes]float64)(panel)
			s0 += x[0] * x[0]
			s1 += x[1] * x[1]
			s2 += x[2] * x[2]
			s3 += x[3] * x[3]
			s4 += x[4] * x[4]
			s5 += x[5] * x[5]
			s6 += x[6] * x[6]
			s7 += x[7] * x[7]
		}
		copy(dst[i:min(i+lanes, q)], []float64{s0, s1, s2, s3, s4, s5, s6, s7})
	}
}

// products sets dst, of length q, to wᵀ·column of every column; w has length
// padded.
func (t triangle) products(dst, w, panels []float64, q int) {
	kern := simd.For[float64]()
	var sum [lanes]float64
	for i := 0; i < q; i += lanes {
		clear(sum[:])
		for p := 0; p < t.padded; p += simd.Rows {
			kern.MultiplyT(&panels[i*t.padded+p*lanes], &w[p], &sum[0], 1)
		}
		copy(dst[i:min(i+lanes, q)], sum[:])
	}
}

// scoring is what predictions of a sparse posterior need, packed.
type scoring struct {
	s      *Sparse
	ld, lv triangle
	w      []float64 // padded
}

func (s *Sparse) scoring() scoring {
	c := scoring{s: s, ld: packTriangle(s.emb.l), lv: packTriangle(s.varL)}
	c.w = make([]float64, c.ld.padded)
	copy(c.w, s.sys.w)
	return c
}

// rows computes means, without the prior mean, and variances for rows i0 ≤ i <
// i1 of x. The whitened inputs stay in panels between the two solutions.
func (c scoring) rows(mean, variance []float64, x kernel.Rows, i0, i1 int, sc *kernel.Scratch) error {
	mark := sc.Mark()
	defer sc.Release(mark)
	q, m := i1-i0, c.ld.n
	kx, norms := sc.Floats(q*m), sc.Floats(q)
	clear(norms)
	panels := sc.Floats((q + lanes - 1) / lanes * lanes * c.ld.padded)
	if m > 0 {
		c.s.emb.prep.Fill(kx, m, x, i0, i1, sc)
		c.ld.pack(panels, kx, q)
		c.ld.solve(panels)
		c.ld.squares(norms, panels, q)
		c.ld.products(mean, c.w, panels, q)
	}
	prior, res := sc.Floats(q), sc.Floats(q)
	for i := range q {
		if !isFinite(norms[i]) {
			if err := checkKernel(kx[i*m:(i+1)*m], m, i0+i); err != nil {
				return err
			}
		}
		var err error
		if prior[i], res[i], err = c.s.emb.residual(x, i0+i, norms[i]); err != nil {
			return err
		}
	}
	if m > 0 {
		c.lv.solve(panels)
		c.lv.squares(norms, panels, q)
	}
	for i := range q {
		variance[i] = c.s.assemble(prior[i], res[i], norms[i])
	}
	return nil
}
