package gp

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// Bound is the replacement of the log marginal likelihood for a sparse posterior.
// Q = ZᵀZ is the Nyström approximation of K, Λ the noise (ξ²/n_i and own), and
// res = diag(K − Q).
type Bound int

const (
	// Titsias is log N(y | 0, Q + Λ) − ½ Σ res_i/Λ_i, a lower bound of the log marginal
	// likelihood of the exact process (Titsias 2009). A poor dictionary cannot inflate
	// it, so hyper-parameters are fitted to it.
	Titsias Bound = iota
	// Conditional is log N(y | 0, Q + Λ), the likelihood of DTC and SoR. With
	// few inducing points it prefers too much smoothness.
	Conditional
	// Independent is log N(y | 0, Q + diag(res) + Λ), the likelihood of FITC.
	// It tends to too little noise.
	Independent
)

func (b Bound) String() string {
	switch b {
	case Titsias:
		return "Titsias"
	case Conditional:
		return "Conditional"
	case Independent:
		return "Independent"
	}
	return "unknown"
}

// evidenceState holds the quantities from which value and gradient of a bound are
// computed. It contains only points that were observed, and the mean has been
// subtracted.
type evidenceState struct {
	bound  Bound
	emb    *embedding
	x      kernel.Rows
	z      []float64 // u×m
	res    []float64
	noise  []float64 // Λ_i = λ/n_i + own
	total  []float64 // Λ_i, plus res_i for Independent, which is the diagonal of A − Q
	lambda float64
	count  []float64
	resid  []float64 // r = ȳ − m
	sys    system    // of V = λ(I + Σ z zᵀ/total)
	left   []float64 // r − Zw
}

// newEvidenceState embeds observed points and solves for w. It costs O(um²).
func newEvidenceState(bound Bound, emb *embedding, obs *observations, m0, lambda float64, workers int) (*evidenceState, error) {
	e := &evidenceState{bound: bound, emb: emb, lambda: lambda}
	var idx []int
	for i, n := range obs.count {
		if n > 0 {
			idx = append(idx, i)
			e.count = append(e.count, n)
			e.noise = append(e.noise, obs.noise(i, lambda))
			e.resid = append(e.resid, obs.mean[i]-m0)
		}
	}
	if len(idx) == 0 {
		return e, nil
	}
	e.x = obs.x
	if len(idx) < obs.len() {
		e.x = obs.x.Select(idx)
	}
	var err error
	if e.z, _, e.res, err = emb.embed(e.x, workers); err != nil {
		return nil, err
	}
	e.total = e.noise
	if bound == Independent {
		e.total = make([]float64, len(idx))
		for i := range idx {
			e.total[i] = e.noise[i] + e.res[i]
		}
	}
	e.solve()
	return e, nil
}

// solve computes w and the residuals of the targets.
func (e *evidenceState) solve() {
	u, m := len(e.resid), e.emb.len()
	e.sys = solveSystem(e.z, e.resid, func(i int) float64 { return e.lambda / e.total[i] }, upTo(u), m, e.lambda)
	e.left = make([]float64, u)
	gemv(e.left, e.z, e.sys.w, u, m)
	for i, r := range e.resid {
		e.left[i] = r - e.left[i]
	}
}

// upTo returns 0 … n−1.
func upTo(n int) []int {
	idx := make([]int, n)
	for i := range idx {
		idx[i] = i
	}
	return idx
}

// value returns the bound for the means ȳ,
//
//	log N(r | 0, Q + T) = −½ [u log 2π + log det(V/λ) + Σ log T_i + Σ left_i²/T_i + ‖w‖²]
//
// where T is the diagonal. The last two terms are rᵀ(Q + T)⁻¹r as a sum of squares.
func (e *evidenceState) value() float64 {
	u, m := len(e.resid), e.emb.len()
	if u == 0 {
		return 0
	}
	s := float64(u)*log2Pi + e.sys.l.LogDet() - float64(m)*math.Log(e.lambda)
	for i, t := range e.total {
		s += math.Log(t) + e.left[i]*e.left[i]/t
		if e.bound == Titsias {
			s += e.res[i] / e.noise[i]
		}
	}
	r := norm(e.sys.w)
	return -0.5 * (s + r*r)
}

// gradient returns the bound's derivatives. With A = Q + T, a = A⁻¹r and
// G = ½(aaᵀ − A⁻¹), a change of Q counts G_Q = G + diag(c), and a change of diag K
// counts −c, where
//
//	c_i = 1/(2Λ_i) for Titsias, 0 for Conditional, −G_ii for Independent.
//
// As Q = K_uD K_DD⁻¹K_Du and B = K_DD⁻¹K_Du = L⁻ᵀZᵀ,
//
//	tr(G_Q dQ) = 2 tr(B G_Q dK_uD) − tr(B G_Q Bᵀ dK_DD),
//
// where a = T⁻¹(r − Zw) and BA⁻¹ = L⁻ᵀλV⁻¹ZᵀT⁻¹. It costs O(um² + ump).
func (e *evidenceState) gradient(k kernel.Kernel, workers int) (grad []float64, noise float64) {
	u, m := len(e.resid), e.emb.len()
	if u == 0 {
		return newGradient(k), 0
	}
	zv := append([]float64(nil), e.z...) // rows √λ L_V⁻¹z
	e.sys.l.solveRowsL(zv, u)
	c, a := make([]float64, u), make([]float64, u)
	for i, t := range e.total {
		r := norm(zv[i*m : (i+1)*m])
		a[i] = e.left[i] / t
		g := 0.5 * (a[i]*a[i] - (1-e.lambda*r*r/t)/t)
		own := e.lambda / e.count[i]
		noise += g * own
		switch e.bound {
		case Titsias:
			c[i] = 0.5 / e.noise[i]
			noise += 0.5 * e.res[i] / (e.noise[i] * e.noise[i]) * own
		case Independent:
			c[i] = -g
		}
	}
	e.sys.l.solveRowsLT(zv, u) // rows V⁻¹z
	grad = newGradient(k)
	if grad == nil {
		return nil, noise
	}
	cross, inner := e.weights(a, c, zv)
	addTo(grad, crossGradient(k, e.x, e.emb.rows, cross, workers))
	addTo(grad, gramGradient(k, e.emb.rows, inner, workers))
	addTo(grad, sumGradient(k, e.x, e.x, workers, func(t kernel.Tunable, dst []float64, i0, i1 int, _ bool, _ *kernel.Scratch) {
		for i := i0; i < i1; i++ {
			t.AddLogGrad(dst, -c[i], e.x, i, e.x, i)
		}
	}))
	return grad, noise
}

// weights returns 2(B G_Q)ᵀ, u×m, and −B G_Q Bᵀ, m×m, given rows V⁻¹z.
func (e *evidenceState) weights(a, c, zv []float64) (cross, inner []float64) {
	u, m := len(e.resid), e.emb.len()
	// Row i of Y = 2(ZᵀG_Q)ᵀ is a_i w − λV⁻¹z_i/T_i + 2c_i z_i.
	cross = zv
	for i := range u {
		row := cross[i*m : (i+1)*m]
		for j := range row {
			row[j] = a[i]*e.sys.w[j] - e.lambda*row[j]/e.total[i] + 2*c[i]*e.z[i*m+j]
		}
	}
	// −ZᵀG_Q Z = −½ YᵀZ, symmetric up to rounding.
	inner = make([]float64, m*m)
	if m > 0 {
		blocked.Gemm(1, true, blocked.New(u, m, cross), false, blocked.New(u, m, e.z), -0.5, 0, blocked.New(m, m, inner))
	}
	e.emb.l.solveRowsLT(cross, u)
	e.emb.l.solveRowsLT(inner, m)
	transpose(inner, m)
	e.emb.l.solveRowsLT(inner, m)
	for i := range m {
		for j := range i {
			v := 0.5 * (inner[i*m+j] + inner[j*m+i])
			inner[i*m+j], inner[j*m+i] = v, v
		}
	}
	return cross, inner
}

// LogEvidence returns the bound of the log marginal likelihood of all observations.
// Pending pulls do not count. It costs O(um²). It returns an error only for an unknown
// bound.
func (s *Sparse) LogEvidence(bound Bound) (float64, error) {
	e, err := s.evidence(bound)
	if err != nil {
		return 0, err
	}
	within, _ := s.pts.observed().withinEvidence(s.opts.NoiseVariance)
	return e.value() + within, nil
}

// Evidence returns [Sparse.LogEvidence] with its gradient, inducing points held. It
// costs O(um² + ump).
func (s *Sparse) Evidence(bound Bound) (Evidence, error) {
	e, err := s.evidence(bound)
	if err != nil {
		return Evidence{}, err
	}
	within, slope := s.pts.observed().withinEvidence(s.opts.NoiseVariance)
	grad, noise := e.gradient(s.k, s.opts.Workers)
	return Evidence{Value: e.value() + within, Kernel: grad, Noise: noise + slope}, nil
}

func (s *Sparse) evidence(bound Bound) (*evidenceState, error) {
	if err := bound.check(); err != nil {
		return nil, err
	}
	if s.frozen {
		return nil, ErrFrozen
	}
	o := s.pts.observed()
	return newEvidenceState(bound, s.emb, o, s.opts.Mean, s.opts.NoiseVariance, s.opts.Workers)
}

func (b Bound) check() error {
	if b < Titsias || b > Independent {
		return fmt.Errorf("gp: unknown bound %d", b)
	}
	return nil
}
