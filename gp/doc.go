// Package gp has posteriors of Gaussian processes: exact, and sparse on
// inducing points, with the evidence and the fitting of their hyper-parameters.
//
// It is what a bandit asks for a mean and a variance. What to pull, and when to
// choose other inducing points, is package bandit's to decide; which points to
// choose is sketch's.
//
// # The exact posterior
//
// Of a function with prior mean m and covariance k, observed n times with
// noise, [Exact] has (thesis (6.3) and (6.4); "thesis" is the PhD thesis that
// introduces BKB in chapter 7)
//
//	μ(x)  = m(x) + k(x)ᵀ(K + Λ)⁻¹(y − m)
//	σ²(x) = k(x, x) − k(x)ᵀ(K + Λ)⁻¹k(x),  Λ = diag(ξ²/n_i + own noise)
//
// by a Cholesky factor that is bordered when observations come. Repeated inputs
// can be merged to one point with count n_i and mean target ȳ_i.
//
// # The sparse posterior
//
// [Sparse] is supported on m inducing points D (thesis (7.1) and Algorithm 5,
// with their misprints corrected):
//
//	z(x)  = L_D⁻¹k_D(x),  L_D L_Dᵀ = K_DD
//	V     = I + Σ_i W_i z_i z_iᵀ = L_V L_Vᵀ,  w = V⁻¹ Σ_i W_i (ȳ_i − m_i) z_i
//	μ̃(x)  = m(x) + z(x)ᵀw
//	σ̃²(x) = max(k(x, x) − ‖z(x)‖², 0) + ‖L_V⁻¹z(x)‖²
//
// over different inputs x_i, where W_i is the precision of the mean target ȳ_i, n_i/λ
// for n_i equal observations; V is that of (7.1) over λ. The first term of σ̃² is
// what D does not see: far from D the prior variance comes back. [SoR], for
// comparison, leaves it out, and starves; [FITC] also counts it as noise of the
// observations, once for each input. With D all observed points DTC and FITC are the
// exact posterior. An observation with precision ω is a rank-one update,
//
//	h = V⁻¹z,  den = 1 + ω zᵀh,  e = ω(y − m − zᵀw)/den
//	w += h e;  for every arm, with g = zᵀh:  μ̃ += g e,  σ̃² −= ωg²/den
//
// a pending pull is one of σ̃² alone, and another inducing point borders L_D and L_V
// by a row each ([Sparse.Extend]).
//
// A posterior with [Growth] takes inducing points as observations come, up to its
// room. It keeps the embeddings of a window of points, all that a further inducing
// point can use, so that memory does not grow with the number of observations but
// for the inputs themselves. [Sparse.Fork] goes on from it beside it, for pending
// pulls; [Probe] follows gradients.
//
//	             SetArms(A rows)
//	                   │
//	dictionary ──► embedding z ──► V, w ──► MaxUCB, Arm, ArmMeans, ArmVariances
//	 Resparsify        ▲            ▲        Predict, Covariance, Sample
//	 Extend            │            │
//	              Observe(x, y)  ObserveVariance(x), Cancel(x), Fork
//
// Arms see updates when they are looked at. MaxUCB looks only at those that may
// be the best, by a bound on how far a mean can have moved: in a bandit that
// knows its way, few. No bit depends on who was looked at when.
//
// Let rls = σ̃²/λ. [Sparse.Leverage] is Σ rls of the pulls since D was chosen,
// [Sparse.InformationGain] is Σ log(1 + rls) of all.
//
// # Noise and λ
//
// Here λ = ξ² is the noise variance, total: K + ξ²I. In sketch and learners λ
// is per sample: K + λnI. sketch.Ridge and sketch.LambdaOfNoise convert.
// Variances are in the units of (6.4); (7.1) is divided by λ, which
// sketch.ScoreOfVariance does.
//
// # Fitting
//
// [Fit] maximises the log marginal likelihood, plus log priors, over the
// logarithms of the kernel's parameters and of the noise. For the sparse
// posterior it maximises a [Bound], by default that of Titsias: the others can
// be gained by inducing points that see little.
//
// # Invariants
//
//   - A variance is never below 1e-12 of the prior variance, and σ̃² never below
//     the residual. Observations and pending pulls never increase one, beyond
//     rounding.
//   - Whatever needs jitter reports it ([Jitter]). The sparse posterior needs
//     none: dependent inducing points are dropped by a pivoted factorisation,
//     and L_V comes from QR of the embedded points, not from V.
//   - A refused call, with a typed error that says which argument and where,
//     changes nothing. A kernel that is not positive semi-definite is refused
//     when it shows: [*NotPSDError].
//   - Results do not depend on the number of workers. Nothing is random but
//     Sample, which is given its generator.
//   - Reading is safe from several goroutines while nobody writes.
//
// # Costs
//
// n points (u different inputs), m inducing points, A arms, d coordinates, p
// kernel parameters, M features; in operations, with O(1) kernel evaluations counted as d.
//
//	Exact     new n³/3; append n² + nA; predict n² a row; Evidence n³ + n²p; LOO n³
//	          pending pulls n² + nA each; memory n² + nA
//	Sparse    observe m² + Am at most; predict m² a row; Probe m² + md
//	          Resparsify |D|m² + um² + Am²; Extend m² + wm + Am, w points in the
//	          window; Fork m² + wm at its first change; Evidence um² + ump
//	          Path m² + mM to draw, m² + md + M a row; memory (A + u)m
//	Fit       one Evidence an evaluation, ≤ 60 iterations from each of 4 starts
//
// Products, solutions with many right-hand sides and factors are those of
// internal/blocked; embedded arms stay in the panels of 8 that its micro-kernels
// read. V comes from two Cholesky factorisations, or from QR where its condition
// number is above 1e11.
//
// V's factor is updated by Givens rotations, which lose nothing: no inverse is
// kept. Still all is computed afresh every 512 updates.
package gp
