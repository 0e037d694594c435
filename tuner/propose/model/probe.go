package model

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// probe predicts at one point after another, with gradients where they are
// wanted. Value costs two triangular solves and m pairs of the kernel, and
// Gradient, at the last point, two more solves and no pairs.
type probe struct {
	p           *posterior
	alpha       []float64 // L_D⁻ᵀw; nil until there is a gradient
	u           []float64 // the last point
	z, h        []float64 // z(u) and L_V⁻¹z(u)
	slopes      []float64 // 2·∂k/∂(r²) at the inducing points
	sd          float64
	dMean, dSD  []float64 // gradients, in ordered coordinates
	factorFloor float64
}

func newProbe(p *posterior) *probe {
	p.settle()
	m := p.rank()
	return &probe{
		p: p, z: make([]float64, m), h: make([]float64, m), slopes: make([]float64, m),
		dMean: make([]float64, p.dim), dSD: make([]float64, p.dim), factorFloor: 1e-12 * p.k.factor,
	}
}

// value returns μ(u) and σ(u), and keeps u.
func (t *probe) value(u []float64) (mean, sd float64) {
	p := t.p
	t.u = append(t.u[:0], p.lift(u)...)
	u = t.u
	for j := range t.z {
		s, h := p.k.terms(u, p.points[j*p.dim:][:p.dim])
		a := math.Sqrt(5 * s)
		e := p.k.factor * math.Exp(-a-h)
		t.z[j] = e * (1 + a + a*a/3)
		t.slopes[j] = -e * 5 / 3 * (1 + a)
	}
	p.solveL(p.ld, t.z)
	copy(t.h, t.z)
	p.solveL(p.lv, t.h)
	variance := max(p.k.factor-floats.Dot(t.z, t.z), 0) + floats.Dot(t.h, t.h)
	t.sd = math.Sqrt(max(variance, t.factorFloor))
	return p.mean + floats.Dot(t.z, p.w), t.sd
}

// gradient fills ∇μ and ∇σ in at the last point, which it forgets. With α =
// L_D⁻ᵀw and q = L_D⁻ᵀ(z − V⁻¹z), ∇μ = Jᵀα and ∇σ = −Jᵀq/σ for J = ∂k_D/∂u.
func (t *probe) gradient() {
	p := t.p
	if t.alpha == nil {
		t.alpha = append([]float64{}, p.w...)
		p.solveLT(p.ld, t.alpha)
	}
	p.solveLT(p.lv, t.h)
	for i, v := range t.z {
		t.h[i] = v - t.h[i]
	}
	p.solveLT(p.ld, t.h)
	clear(t.dMean)
	clear(t.dSD)
	for j, q := range t.h {
		v := p.points[j*p.dim:][:p.dim]
		m, s := t.alpha[j]*t.slopes[j], -q/t.sd*t.slopes[j]
		for c, uc := range t.u {
			d := uc - v[c]
			t.dMean[c] += m * d
			t.dSD[c] += s * d
		}
	}
	for c, w := range p.k.inverse {
		if p.k.isNominal[c] {
			w = 0
		}
		t.dMean[c] *= w
		t.dSD[c] *= w
	}
	clear(t.dMean[len(p.k.inverse):]) // nobody moves along the fidelity
	clear(t.dSD[len(p.k.inverse):])
}

// near tells whether an inducing point is within so many length scales of u, and of
// the same categories.
func (p *posterior) near(u []float64, distance float64) bool {
	u = p.lift(u)
	for j := range p.rank() {
		if s, h := p.k.terms(u, p.points[j*p.dim:][:p.dim]); s < distance*distance && h == 0 {
			return true
		}
	}
	return false
}
