// Package sgdrf implements stochastic gradient descent with random features. It fits
// least squares on φ(x) ∈ ℝᴹ, mini-batch by mini-batch, and never holds more than the
// features of one mini-batch.
//
//	w_{t+1} = (1 − γ_tλ)w_t − (γ_t/b) Φ_bᵀ(Φ_b w_t − y_b),  γ_t = γt^−θ      (3.2)
//
// with b rows drawn at random, Φ_b their features, and w ∈ ℝᴹˣᶜ for c outputs at once.
// The gradient is that of ½(f(x) − y)², so that a step has no factor 2. M, γ, b and the
// number of passes regularise, and λ = 0 by default.
//
// # The step
//
// γ* = b/(β + (b−1)λ̂₁), where β = max ‖φ(x)‖² and λ̂₁ is the largest eigenvalue of the features'
// covariance. It is near the best constant step and half of a step that diverges. It grows with b
// up to b ≈ β/λ̂₁, and no further. γ = c·γ*, where c = 1 for b ≥ √n.
//
// # Mini-batches
//
// Package minibatch deals mini-batches from data in memory or larger than memory, with
// replacement by default. The fit is the same to the bit in both.
//
//	mini-batch ──► sketch.FeatureOperator, tiles of rows in parallel:
//	               R = ΦW − Y, ΦᵀR, added up in order
//	                  ▼
//	               one step of w
//
// # Sources
//
// Carratino (2020), chapter 3, from Carratino, Rudi and Rosasco (2018), Learning with SGD and
// Random Features. Their settings for given n are in learners/theory. The step follows the rule
// of Ma and Belkin, EigenPro 2, 2019. Its features have the factors that (3.3) and Example 1
// lack.
//
// # Invariants
//
//   - Equal data, parameters and seed give equal weights to the bit, for any
//     number of workers, in memory or streamed. c = 1 twice over agrees with
//     c = 2 up to rounding only.
//   - Feature j depends on the seed and j alone.
//   - The model of a fit that stops early is that of the last whole pass,
//     or of the last step if the context ends in the first pass.
//
// # Costs
//
// A pass takes O(nM(d + c)) operations. Beside the feature map and a mini-batch of
// rows, memory is O(bc) for residuals, about 4·workers·M·c numbers for sums over tiles, and
// a tile for each worker. The features of a mini-batch, b×M, are never held. A source that
// is not in memory also has a chunk. Estimating γ* costs less than a pass over 4000 rows.
package sgdrf
