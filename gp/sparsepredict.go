package gp

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Predict returns μ̃ and σ̃² at every row of x, without observation noise,
// pending pulls counted in the variance. Cost O(m² + md) a row. Errors: for x
// as in [NewExact]; [*NotPSDError] for a residual that is negative beyond
// rounding.
func (s *Sparse) Predict(x kernel.Rows) (mean, variance []float64, err error) {
	if err := s.checkQuery(x); err != nil {
		return nil, nil, err
	}
	n, c := x.Len(), s.scoring()
	mean, variance = make([]float64, n), make([]float64, n)
	err = forBlocks(n, predictBlock, s.opts.Workers, func(i0, i1 int, sc *kernel.Scratch) error {
		return c.rows(mean[i0:i1], variance[i0:i1], x, i0, i1, sc)
	})
	if err != nil {
		return nil, nil, err
	}
	addTo(mean, s.opts.Mean.at(x))
	return mean, variance, nil
}

func (s *Sparse) checkQuery(x kernel.Rows) error {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return err
	}
	return s.opts.Mean.check(x)
}

// Embed returns z(x) for every row, n×m row-major, and the residuals
// max(k(x, x) − ‖z‖², 0). Cost and errors as [Sparse.Predict].
func (s *Sparse) Embed(x kernel.Rows) (z, residual []float64, err error) {
	if err := checkRows("x", s.k, x, s.emb.rows); err != nil {
		return nil, nil, err
	}
	z, _, residual, err = s.emb.embed(x, s.opts.Workers)
	return z, residual, err
}

// Covariance returns μ̃ at the q rows of x and their q×q joint covariance,
//
//	K(x, x) − ZZᵀ + λ Z V⁻¹Zᵀ
//
// (λ Z V⁻¹Zᵀ alone for SoR), with σ̃² on the diagonal. Cost O(qm² + q²m).
// Errors: as [Sparse.Predict].
func (s *Sparse) Covariance(x kernel.Rows) (mean, cov []float64, err error) {
	if err := s.checkQuery(x); err != nil {
		return nil, nil, err
	}
	z, prior, res, err := s.emb.embed(x, s.opts.Workers)
	if err != nil {
		return nil, nil, err
	}
	q, m := x.Len(), s.emb.len()
	cov = make([]float64, q*q)
	if s.opts.Approximation != SoR {
		if cov, err = kernel.Gramian(s.k, x); err != nil {
			return nil, nil, err
		}
		if q > 0 && m > 0 {
			syrk(cov, z, q, m, -1)
		}
		for i := range q {
			cov[i*q+i] = res[i]
		}
	}
	mean = s.opts.Mean.at(x)
	for i := 0; i < q && m > 0; i++ {
		mean[i] += dot(z[i*m:(i+1)*m], s.sys.w)
	}
	s.varL.solveRowsL(z, q)
	if q > 0 && m > 0 {
		syrk(cov, z, q, m, s.opts.NoiseVariance)
	}
	for i := range q {
		cov[i*q+i] = max(cov[i*q+i], varianceFloor*prior[i])
	}
	return mean, cov, nil
}

// Sample draws count functions at the q rows of x, jointly: count×q,
// row-major. Jitter and errors: as [Exact.Sample]. Cost O(qm² + q³ + count·q²).
func (s *Sparse) Sample(x kernel.Rows, count int, rng *rand.Rand) ([]float64, Jitter, error) {
	mean, cov, err := s.Covariance(x)
	if err != nil {
		return nil, Jitter{}, err
	}
	return sampleNormal(mean, cov, count, rng)
}

// PredictSlope returns the prediction at row i of x with its gradient. With
// α = L_D⁻ᵀw and M = L_D⁻ᵀ(I − λV⁻¹)L_D⁻¹,
//
//	∇μ̃ = ∇m + Jᵀα,  ∇σ̃ = (½∇k(x, x) − JᵀM k_D(x))/σ̃,  J = ∂k_D/∂x.
//
// Cost O(m² + md). Errors: as [Sparse.Predict]; [ErrNotDifferentiable].
func (s *Sparse) PredictSlope(x kernel.Rows, i int) (Slope, error) {
	dk, one, err := slopeQuery(s.checkQuery, s.k, x, i)
	if err != nil {
		return Slope{}, err
	}
	z, prior, res, err := s.emb.embed(one, 1)
	if err != nil {
		return Slope{}, err
	}
	mean := s.opts.Mean.at(one)[0]
	h := append([]float64(nil), z...)
	s.varL.SolveL(h)
	variance := s.assemble(prior[0], res[0], square(h))
	s.varL.SolveLT(h)
	alpha := append([]float64(nil), s.sys.w...)
	if len(z) > 0 {
		mean += dot(z, alpha)
	}
	for j := range h { // b = M k_D = L⁻ᵀ(z − λV⁻¹z), without z for SoR
		h[j] *= -s.opts.NoiseVariance
		if s.opts.Approximation != SoR {
			h[j] += z[j]
		}
	}
	s.emb.l.SolveLT(alpha)
	s.emb.l.SolveLT(h)
	half := 1.0
	if s.opts.Approximation == SoR {
		half = 0
	}
	return slope(dk, one, s.emb.rows, s.opts.Mean, mean, variance, prior[0], half, alpha, h), nil
}
