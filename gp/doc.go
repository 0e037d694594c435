// Package gp has posteriors of Gaussian processes. They are exact or sparse on inducing
// points, with the fit of their hyper-parameters. Package bandit decides what to pull and
// when to choose other inducing points. Package sketch chooses the points.
//
// # The exact posterior
//
// For n observations of a function with prior mean m and covariance k, [Exact] has, by (6.3)
// and (6.4) of Carratino (2020),
//
//	μ(x)  = m(x) + k(x)ᵀ(K + Λ)⁻¹(y − m)
//	σ²(x) = k(x, x) − k(x)ᵀ(K + Λ)⁻¹k(x),  Λ = diag(ξ² + own noise)
//
// # The sparse posterior
//
// [Sparse] is supported on m inducing points D. By (7.1) and Algorithm 5 of Carratino
// (2020), without their misprints,
//
//	z(x)  = L_D⁻¹k_D(x),  L_D L_Dᵀ = K_DD
//	V     = I + Σ_i W_i z_i z_iᵀ = L_V L_Vᵀ,  w = V⁻¹ Σ_i W_i (ȳ_i − m_i) z_i
//	μ̃(x)  = m(x) + z(x)ᵀw
//	σ̃²(x) = max(k(x, x) − ‖z(x)‖², 0) + ‖L_V⁻¹z(x)‖²
//
// over different inputs x_i. W_i is the precision of the mean target ȳ_i, which is n_i/λ for n_i
// equal observations. V is that of (7.1) over λ. The first term of σ̃² is the part outside the
// span of D, see [Approximation]. An observation with precision ω is a rank-one update,
//
//	h = V⁻¹z,  den = 1 + ω zᵀh,  e = ω(y − m − zᵀw)/den
//	w += h e;  for every arm, with g = zᵀh:  μ̃ += g e,  σ̃² −= ωg²/den
//
// A pending pull updates only σ̃².
//
// Arms are inputs whose predictions are brought up to date when they are read. A posterior with
// [Growth] adds inducing points with the observations. It keeps only the embeddings of a window
// of points, which are enough for a further inducing point.
//
// λ = ξ² is the total noise variance, K + ξ²I. In sketch and learners λ is per sample, K + λnI.
// sketch.Ridge and sketch.LambdaOfNoise convert between them.
//
// # Invariants
//
//   - A variance is never below 1e-12 of the prior variance, and σ̃² never below
//     the residual. Observations and pending pulls never increase a variance,
//     beyond rounding.
//   - The exact posterior adds at most 1e-6 of the diagonal of K + Λ to it, where rounding
//     needs that. The sparse posterior adds nothing, because a pivoted factorisation drops
//     dependent inducing points, and L_V comes from QR of the embedded points, not from V.
//   - A refused call changes nothing, and its typed error names the argument and
//     the place.
//   - Results do not depend on the number of workers or the order of reads, and nothing is random.
//   - Several goroutines may read at once while none writes.
//
// # Costs
//
// For n points (u different inputs), m inducing points, A arms and d coordinates:
//
//	Exact     new n³/3; predict n² a row; LeaveOneOut n³; memory n²
//	Sparse    observe m² + Am at most; predict m² a row; Probe m² + md
//	          Resparsify |D|m² + um² + Am²; Fork m² + wm at its first change, w points
//	          in the window; memory (A + u)m
//	Fit       one factor and gradient of u points an evaluation
package gp
