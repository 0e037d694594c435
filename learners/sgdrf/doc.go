// Package sgdrf is stochastic gradient descent with random features: least
// squares on φ(x) ∈ ℝᴹ, mini-batch by mini-batch, without ever holding more
// than a mini-batch of features.
//
//	w_{t+1} = (1 − γ_tλ)w_t − (γ_t/b) Φ_bᵀ(Φ_b w_t − y_b),  γ_t = γt^−θ      (3.2)
//
// with b rows drawn at random, Φ_b their features, and w ∈ ℝᴹˣᶜ for c outputs at
// once. The gradient is that of ½(f(x) − y)², so that a step has no factor 2.
// What regularises is M, γ, b and the number of passes; λ = 0 by default.
//
// # The step
//
// γ* = b/(β + (b−1)λ̂₁) with β = max ‖φ(x)‖² and λ̂₁ the largest eigenvalue of the
// features' covariance: near the best constant step, and half of what diverges.
// It grows with b up to b ≈ β/λ̂₁, then no more. γ = c·γ*, c = 1 for b ≥ √n.
//
// # Mini-batches
//
// They are dealt by package minibatch, from data in memory or larger than memory,
// with replacement by default; the fit is the same to the bit in both.
//
//	mini-batch ──► sketch.FeatureOperator, tiles of rows in parallel:
//	               R = ΦW − Y, ΦᵀR, added up in order
//	                  ▼
//	               one step of w
//
// Cosines of dense rows never leave the caches: a tile of Φ is used twice while
// it is there.
//
// # Sources
//
// L. Carratino, Scaling kernel methods (thesis), chapter 3 = Carratino, Rudi,
// Rosasco, Learning with SGD and random features, NeurIPS 2018; its settings for
// given n are in learners/theory. The step is the rule of Ma and Belkin,
// EigenPro 2, 2019. sgdrf_paper_test.go has the claims, and where we depart:
// features have the factors that (3.3) and Example 1 lack.
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
// A pass is O(nM(d + c)) operations. Memory beside the feature map and a mini-batch
// of rows is O(bc) for its residuals, up to about 4·workers·M·c numbers for sums
// over tiles that wait for their turn, and, where features are written out, a tile
// of 256 KiB (6 rows, if they take more) for each worker: never b×M. A source that
// is not in memory has a chunk besides. Estimating γ* costs less than a pass of
// 4000 rows and 32 MiB.
package sgdrf
