package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// Probe predicts at one input after another, with gradients if needed, as a gradient ascent does.
// Value costs two triangular solutions and m pairs of the kernel, and Gradient, at the last
// input, two more solutions. It is valid until the posterior changes, and for one goroutine.
type Probe struct {
	s       *Sparse
	alpha   []float64 // L_D⁻ᵀw, nil until there is a gradient
	weights []float64 // of a radial kernel's slopes
	x       kernel.Rows
	u       []float64 // the last input, where the kernel is radial
	z, h    []float64 // z(u) and L_V⁻¹z(u)
	slopes  []float64
	prior   float64
	sd      float64
	flat    bool // σ̃ is at its floor
	dMean   []float64
	dSD     []float64
}

// Probe returns a probe of the current posterior.
func (s *Sparse) Probe() *Probe {
	s.settled()
	m, d := s.emb.len(), max(s.emb.dim, 0)
	t := &Probe{s: s, z: make([]float64, m), h: make([]float64, m), dMean: make([]float64, d), dSD: make([]float64, d)}
	if s.emb.radial != nil {
		t.slopes, t.weights = make([]float64, m), s.emb.radial.SlopeWeights(d)
	}
	return t
}

// Value returns μ̃(u) and σ̃(u), and keeps u. The input must be finite and have the
// kernel's dimension.
func (t *Probe) Value(u []float64) (mean, sd float64, err error) {
	mean, _, err = t.at(kernel.NewPoints(1, len(u), u))
	return mean, t.sd, err
}

// at returns μ̃ and σ̃² at the only row of x.
func (t *Probe) at(x kernel.Rows) (mean, variance float64, err error) {
	s, m := t.s, len(t.z)
	t.x, t.u = x, nil
	if u, ok := s.emb.vector(x); ok {
		t.u = append(t.u, u...)
		s.emb.radial.FillSlopes(t.z, t.slopes, u, s.emb.data)
	} else if m > 0 {
		s.emb.prepared().Fill(t.z, m, x, 0, 1, new(kernel.Scratch))
	}
	blocked.ForwardTwice(s.emb.l.matrix(), s.varL.matrix(), t.z, t.h)
	q := floats.Dot(t.z, t.z)
	if !isFinite(q) { // only then check every pair
		if err := s.emb.checkRow(x, 0, new(kernel.Scratch)); err != nil {
			return 0, 0, err
		}
	}
	prior, res, err := s.emb.residual(x, 0, q)
	if err != nil {
		return 0, 0, err
	}
	variance = s.assemble(prior, res, floats.Dot(t.h, t.h))
	t.prior, t.flat, t.sd = prior, variance <= varianceFloor*prior, math.Sqrt(variance)
	return s.opts.Mean + floats.Dot(t.z, s.reg.w), variance, nil
}

// Gradient returns ∇μ̃ and ∇σ̃ at the last input, which it forgets. So call Value again
// before another Gradient. The slices are overwritten by the next call. With
// α = L_D⁻ᵀw, q = L_D⁻ᵀ(z − V⁻¹z) and J = ∂k_D/∂u, a [kernel.Radial] has
//
//	∇μ̃ = Jᵀα,  ∇σ̃ = −Jᵀq/σ̃,
//
// where z in q is missing for SoR. Other kernels take 2d more values.
func (t *Probe) Gradient() (mean, sd []float64) {
	clear(t.dMean)
	clear(t.dSD)
	if t.u == nil {
		t.differences()
		return t.dMean, t.dSD
	}
	s := t.s
	if t.alpha == nil {
		t.alpha = append([]float64{}, s.reg.w...)
		s.emb.l.backward(t.alpha)
	}
	s.varL.backward(t.h)
	for i, v := range t.z {
		if s.opts.Approximation == SoR {
			v = 0
		}
		t.h[i] = v - t.h[i]
	}
	s.emb.l.backward(t.h)
	t.radial()
	return t.dMean, t.dSD
}

// radial adds up the gradients of a radial kernel, for which k(u, u) is constant.
func (t *Probe) radial() {
	d := len(t.u)
	for j, q := range t.h {
		v := t.s.emb.data[j*d:][:d]
		m, s := t.alpha[j]*t.slopes[j], -q/t.sd*t.slopes[j]
		for c, uc := range t.u {
			diff := uc - v[c]
			t.dMean[c] += m * diff
			t.dSD[c] += s * diff
		}
	}
	for c, w := range t.weights {
		t.dMean[c] *= w
		t.dSD[c] *= w
	}
	if t.flat {
		clear(t.dSD)
	}
}

// differences computes the gradients of any other kernel by central differences.
func (t *Probe) differences() {
	flat, u := t.flat, append([]float64(nil), t.x.(*kernel.Points[float64]).Row(0)...)
	for c, v := range u {
		h := 6e-6 * max(1, math.Abs(v)) // the root of rounding that balances both errors
		var mean, sd [2]float64
		for side, at := range [2]float64{v + h, v - h} {
			u[c] = at
			var err error
			if mean[side], sd[side], err = t.Value(u); err != nil {
				clear(t.dMean)
				clear(t.dSD)
				return
			}
		}
		u[c] = v
		if t.dMean[c] = (mean[0] - mean[1]) / (2 * h); !flat {
			t.dSD[c] = (sd[0] - sd[1]) / (2 * h)
		}
	}
}
