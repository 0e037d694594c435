// Package avgsgd implements averaged stochastic gradient descent over several passes.
// It fits least squares one row at a time, with a large constant step. The average
// removes the noise of the steps.
//
//	θ_u = θ_{u−1} + γ(y_i − ⟨θ_{u−1}, Φ(x_i)⟩)Φ(x_i),  γ = 1/(4R²), R² = max ‖Φ(x_i)‖²
//	θ̄_u = (1 − 1/u)θ̄_{u−1} + θ_u/u = (θ_1 + … + θ_u)/u
//
// i is drawn with replacement, or taken from the rows in turn, or in a new random order in every
// pass. The number of steps is the regularisation. The best number of passes grows with n.
//
// # Three forms
//
//	Kernel, Features     Φ(x)          model          a step costs
//	nil                  x             Linear         d, or what a sparse row stores
//	given, M             random, ℝᴹ    Linear         M(d + c)
//	given, 0             k(x, ·)       Expansion      n, K in memory up to 5000 rows,
//	                                                  n evaluations beyond
//
// # Averaging without touching every coordinate
//
// With the step s adding δ_s, θ_t = Σδ_s and Σ_{u≤t}θ_u = Σ_s (t−s+1)δ_s. So it
// suffices to add sδ_s to a second sum υ wherever δ_s is added to θ.
//
//	θ̄_t = ((t+1)θ_t − υ_t)/t,
//
// A step costs O(1) for a coefficient of the dual, and O(stored elements) for a sparse row.
//
// # Source
//
// Pillaud-Vivien, Rudi and Bach (2018), Statistical Optimality of Stochastic Gradient
// Descent on Hard Learning Problems through Multiple Passes, §3. The print has θ_{t−1}
// in place of θ_{u−1} in the step.
//
// # Invariants
//
// Equal data, parameters and seed give equal models to the bit, for any number of
// workers, in memory or streamed. The kernelised form holds all rows. The others hold
// one chunk (package minibatch).
//
// A fit whose context ends early returns the model of the last pass, or of the last
// step within the first pass.
package avgsgd
