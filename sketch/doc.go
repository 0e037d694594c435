// Package sketch replaces a large kernel matrix by a small, well-chosen part of it. It
// has leverage scores, samplers by these scores and the Nyström embedding. It also has
// random features.
//
// # Leverage scores
//
// K is the n×n kernel matrix of the rows of a source. λ is per sample, so that λn is
// added to the diagonal of K. See [Ridge] for the other convention, of Gaussian
// processes. The score of row i and the effective dimension are
//
//	ℓ(i, λ) = (K(K + λnI)⁻¹)_ii       d_eff(λ) = Σ_i ℓ(i, λ)             (5.1)
//
// A [Dictionary] is a weighted subset J of the rows with
//
//	Σ_{j∈J} A_j⁻¹ k_j k_jᵀ ≈ Σ_i k_i k_iᵀ
//
// which represents all of them. Its [Generator] approximates every score by
//
//	ℓ̃_J(x, λ) = (k(x, x) − ‖L⁻¹k_J(x)‖²)/(λn),  LLᵀ = K_JJ + λnA         (5.3)
//
// J = [n] and A = I give ℓ itself, J = ∅ gives k(x, x)/(λn).
//
// # Samplers
//
// Each is a [Sampler], a plain value. The zero values are ready to use, except that of
// PosteriorVariance.
//
//	                    how it chooses                        evaluations
//	Uniform             M rows, uniformly                     0
//	ExactRLS            by ℓ itself                           n²
//	TwoPass             by ℓ̃ of a uniform J of 1/λ rows       n/λ
//	RecursiveRLS        by ℓ̃ of half the rows, recursively    n·d_eff
//	SQUEAK              adds blocks, shrinks, in one pass      n·d_eff
//	BLESS  (Alg. 3)     along λ_0 > λ_1 > … > λ_H = λ,         d_eff/λ
//	BLESSR (Alg. 4)     from 1/λ_h uniform rows each           d_eff/λ
//	PosteriorVariance   by given variances (BKB, Alg. 5)       0
//
// BLESS and BLESSR do not read all rows, so their cost does not depend on n. They
// return the dictionaries of the whole path λ_0 … λ_H.
//
// # Features
//
// [NewEmbedding] gives z(x) with z(x)ᵀz(y) ≈ k(x, y) from a dictionary. A [FeatureMap] gives φ(x)
// with E φ(x)ᵀφ(y) = k(x, y) from random numbers alone. The constructors are [NewFourier],
// [NewFourierCosine], [NewOrthogonal], [NewFastfood], [NewReLU] and [NewGaussianSketch], and each
// states its kernel. A [FeatureOperator] has the products with the features of a batch of rows,
// Φw and Φᵀf(Φw). For cosines of dense rows these need neither memory nor a second evaluation.
//
// # Sources
//
// Equations and algorithms have the numbers of Carratino (2020), section 3.1 and
// chapter 5, from Rudi, Calandriello, Carratino and Rosasco (2018), On Fast Leverage
// Score Sampling and Optimal Learning. Where the print has an error, this package does
// the following, and sketch_paper_test.go shows why.
//
//   - Algorithms 3 and 4 round H up, and the path is geometric exactly to λ. R_h is
//     at most n, and R_h = n means all rows, once each. M_h is at least 1.
//   - Algorithm 4, line 10 uses the scores at λ_h, not at λ_{h−1}, which would
//     under-sample by up to q. U_h and J_h may be empty before the last level.
//   - In §5.1.5, ℓ(i, λ_h) ≤ (λ_{h−1}/λ_h) ℓ(i, λ_{h−1}), not its inverse.
//   - In (5.22) the weights of FALKON are 1/A_j, without another n/M.
//   - In (3.3) and Example 1 features have the factor 1/√M. Cosines also have √2
//     and frequencies of variance 1/σ².
//
// # Invariants
//
//   - All random numbers come from the caller's generator, in an order that
//     depends on nothing else. Results repeat bit for bit, for any number of
//     workers, and whether the source is resident or streamed. With Keys,
//     PosteriorVariance does not depend on the order of the rows either.
//   - Indices of a dictionary increase strictly, and weights are positive and
//     finite. Repeated draws are merged, which changes no score.
//   - Scores are in (0, 1], or 0 where k(x, x) = 0.
//   - The score of a row does not depend on the rows beside it.
//   - Feature j of a map depends only on (seed, j). Larger maps contain the smaller
//     ones, up to the factor 1/√M.
//   - Bad data (NaN, a wrong dimension, λ ≤ 0, no rows) give a typed error with the
//     fault and the place.
//
// # Costs
//
// A generator of M points costs M² evaluations, M³/3 operations and M² numbers of
// memory. Each score costs M evaluations and M² operations.
package sketch
