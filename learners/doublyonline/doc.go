// Package doublyonline learns from a stream of rows with a stream of random features.
// Every step takes one new row and B new features, so that the function grows with the
// data and no data are kept.
//
//	f_{t+1} = (1 − η_tλ)f_t − η_t(f_t(x_t) − y_t) (1/B) Σ_b ψ_v(x_t) ψ_v       (2.6)
//
// with v = v_{t,1} … v_{t,B}, η_t = ηt^−θ and k(x, x') = E ψ_v(x)ψ_v(x'). The paper has
// B = 1. After T steps
//
//	f(x) = Σ_{s≤T} a_s ψ_s(x) Π_{s<j≤T}(1 − η_jλ).
//
// The product is one running scale for all coefficients. It is folded into them before
// it becomes too small. Features come from package sketch, and feature j depends only
// on the seed and j. The model, a learners.Linear, has TB coefficients and a seed.
//
// The package is for endless streams. On a fixed data set, sgdrf with a fixed M learns
// more in less time.
//
// # The step
//
// η = T^−½, θ = 0, λ = 0 by default. The steps of the paper are in learners/theory.DoublyOnline.
//
// # Source
//
// Lin and Rosasco (2019), Generalization Properties of Doubly Online Learning
// Algorithms. It builds on Dai et al. (2014), Scalable Kernel Methods via Doubly
// Stochastic Gradients. Equation (2.4) lacks the η_t before λ that (2.6) has.
//
// # Invariants
//
// Equal data, parameters and seed give equal models to the bit, for any number of
// workers, in memory or streamed.
//
// A fit whose context ends early returns the model of the last iteration, or of the
// last step within the first iteration.
//
// # Costs
//
// A fit takes T²B(d + c)/2 operations. The model has TB·c numbers. During learning and
// prediction the TB frequencies are kept in TB·d more numbers, which no file stores. One
// chunk of the data is held, as in package minibatch.
package doublyonline
