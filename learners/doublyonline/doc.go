// Package doublyonline learns from a stream of rows with a stream of random
// features: every step takes one new row and B new features, so that the function
// grows with the data and no data are kept.
//
//	f_{t+1} = (1 − η_tλ)f_t − η_t(f_t(x_t) − y_t) (1/B) Σ_b ψ_v(x_t) ψ_v       (2.6)
//
// with v = v_{t,1} … v_{t,B}, η_t = ηt^−θ and k(x, x') = E ψ_v(x)ψ_v(x'); the
// paper has B = 1. After T steps
//
//	f(x) = Σ_{s≤T} a_s ψ_s(x) Π_{s<j≤T}(1 − η_jλ).
//
// The product is one running scale for all coefficients, folded into them before
// it becomes too small. Features come from package sketch, number j from the seed
// and j alone: the model, a learners.Linear, is TB coefficients and a seed.
//
// It is for streams without end. Of a fixed data set sgdrf with a fixed M learns
// more, and in less time.
//
// # The step
//
// η = T^−½, θ = 0, λ = 0 by default. The steps of the paper are in
// learners/theory.DoublyOnline; their constants are those of a proof, and κ² in
// them bounds ψ_v(x)ψ_v(x'): 2 for cosines.
//
// # Rates
//
// [Study] measures how the error falls with T, for the step sizes of the paper.
//
// # Source
//
// J. Lin, L. Rosasco, Generalization properties of doubly online learning
// algorithms, 2017, after Dai et al., Scalable kernel methods via doubly
// stochastic gradients, 2014. (2.4) lacks η_t beside λ, which (2.6) has.
//
// # Invariants
//
// Equal data, parameters and seed give equal models to the bit, for any number of
// workers, in memory or streamed.
//
// A fit whose context ends early has the model of the last iteration, or of the
// last step if it ends in the first one.
//
// # Costs
//
// T²B(d + c)/2 operations. The model has TB·c numbers. While it learns or
// predicts, the TB frequencies are kept rather than drawn anew in every step,
// which is 15 to 40 times faster (BenchmarkBlock): TB·d numbers more, of which
// nothing is stored. Of the data one chunk is held, as package minibatch does.
package doublyonline
