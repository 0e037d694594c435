package gp

import (
	"math"

	"github.com/bkbtuner/bkb/internal/blocked"
)

// regression is Bayesian linear regression on embedded inputs z with weights of prior N(0, I),
//
//	V = I + Σ ω z zᵀ = L Lᵀ,  b = Σ ω r z,  w = V⁻¹b
//
// over points with precisions ω and residual targets r. Variances do not depend on b,
// so a second factor, of the same order, serves pending pulls.
type regression struct {
	l     *cholesky
	b, w  []float64
	fresh bool // w is V⁻¹b
}

// newRegression returns the regression without observations on m inducing points.
func newRegression(m, room int) regression {
	l := &cholesky{n: m, stride: max(room, m, 1)}
	l.data = make([]float64, m*l.stride, l.stride*l.stride)
	for i := range m {
		l.data[i*l.stride+i] = 1
	}
	return regression{l: l, b: make([]float64, m), w: make([]float64, m)}
}

// settle computes w. It costs m².
func (g *regression) settle() {
	if g.fresh {
		return
	}
	copy(g.w, g.b)
	g.l.forward(g.w)
	g.l.backward(g.w)
	g.fresh = true
}

// forward replaces b by L⁻¹b, with the leading rows of L if b is shorter.
func (c *cholesky) forward(b []float64) { blocked.Forward(c.matrix(), b) }

// backward replaces b by L⁻ᵀb.
func (c *cholesky) backward(b []float64) { blocked.Backward(c.matrix(), b) }

// bordered returns the factor with one more row. The old factor stays valid but must
// not grow again, because the two may share memory.
func (c *cholesky) bordered(row []float64, diagonal float64) *cholesky {
	g := c.reserve(c.n + 1)
	copy(g.data[c.n*g.stride:], row)
	g.data[c.n*g.stride+c.n] = diagonal
	return g
}

// rankOne replaces L by the factor of A + ω z zᵀ, by Givens rotations, which cannot
// fail. A row goes through the rotations of all rows above it, one after another, and
// four rows are processed side by side. For ω < 0 see downdate. It costs 3n² operations.
func (c *cholesky) rankOne(z []float64, omega float64, cos, sin []float64) {
	m, root := c.n, math.Sqrt(omega)
	c.packed.Store(nil)
	var t [4]float64
	for i := 0; i < m; i += len(t) {
		n := min(len(t), m-i)
		for r := range n {
			t[r] = root * z[i+r]
		}
		if n == len(t) {
			c.rotate(i, cos[:i], sin[:i], &t)
		}
		for r := range n {
			row := c.data[(i+r)*c.stride:][:i+r+1]
			from := i
			if n < len(t) {
				from = 0
			}
			v := t[r]
			for k := from; k < i+r; k++ {
				l := row[k]
				row[k] = cos[k]*l + sin[k]*v
				v = cos[k]*v - sin[k]*l
			}
			last := row[i+r]
			h := math.Sqrt(last*last + v*v)
			cos[i+r], sin[i+r] = last/h, v/h
			row[i+r] = h
		}
	}
}

// rotate applies the rotations of the first rows to rows i … i + 3.
func (c *cholesky) rotate(i int, cos, sin []float64, t *[4]float64) {
	n := len(cos)
	sin = sin[:n]
	r0, r1 := c.data[i*c.stride:][:n], c.data[(i+1)*c.stride:][:n]
	r2, r3 := c.data[(i+2)*c.stride:][:n], c.data[(i+3)*c.stride:][:n]
	t0, t1, t2, t3 := t[0], t[1], t[2], t[3]
	for k, ck := range cos {
		sk := sin[k]
		l0, l1, l2, l3 := r0[k], r1[k], r2[k], r3[k]
		r0[k], r1[k] = ck*l0+sk*t0, ck*l1+sk*t1
		r2[k], r3[k] = ck*l2+sk*t2, ck*l3+sk*t3
		t0, t1 = ck*t0-sk*l0, ck*t1-sk*l1
		t2, t3 = ck*t2-sk*l2, ck*t3-sk*l3
	}
	*t = [4]float64{t0, t1, t2, t3}
}
