// Package falkon implements FALKON. It is kernel ridge regression on M ≪ n centres by a
// preconditioned iteration, in O(nMt + M³) time and O(M²) memory. The package also has
// it for the logistic loss and for robust losses.
//
//	Params          squared loss by the basic, complete or generalised algorithm,
//	                uniform centres or any sampler's (BLESS: FALKON-BLESS)
//	LogisticParams  logistic loss, by Newton steps with a falling λ
//	RobustParams    losses of Huber and of quantiles, by such steps
//
// # The problem
//
// With centres c_j, f = Σ_j k(·, c_j)a_j and the norm of the space of k,
//
//	min_f  (1/n)Σ_i (f(x_i) − y_i)² + λ‖f‖²,   (K_nMᵀK_nM + λnK_MM)a = K_nMᵀy  (4.5)
//
// λ is per sample, as everywhere in learners.
//
// # The algorithm
//
// Let K_MM = FFᵀ, where F is M×q of rank q. A function of the span of the centres is q
// coordinates v. It has the norm ‖f‖ = ‖v‖, the values Fv at the centres and the
// coefficients F⁻ᵀv, where F⁻F = I. The centres have weights w with K_nMᵀK_nM ≈ K_MM
// diag(w)K_MM, and
//
//	RᵀR = Fᵀdiag(w/n)F + λI,   v = R⁻¹β,
//	W = R⁻ᵀ(F⁻K_nMᵀK_nM F⁻ᵀ/n + λI)R⁻¹ ≈ I,   Wβ = R⁻ᵀF⁻K_nMᵀy/n.        (4.14)
//
// That is Definition 5, where the D of DK_MM D = QTᵀTQᵀ is inside R. In exact arithmetic the matrix
// B is the same, with BBᵀ = (K_MM diag(w)K_MM + λnK_MM)⁻¹. But F depends neither on w nor on λ, so
// Newton's method factors K_MM once. In (4.10), T = Fᵀ.
//
//	basic        Solver Gradient                       (4.9)
//	complete     Solver ConjugateGradient              Algorithm 1
//	generalised  any Factorization, any Sampler        Algorithm 2
//
// Where all rows are centres and the solver has its defaults, [Params.Fit] on a CPU solves the same problem
// by one factorisation of package krr, if its kernel matrix is positive definite and a fourth of the rows has
// more than half of the full rank. Then the function is an
// expansion over all rows, and the memory is that of krr. What follows is about the iteration.
//
// The default Factorization is Cholesky with pivoting. With rank q < M, functions are
// expansions over q of the centres, and the others have weights in R only. Outputs that have
// converged drop out. Every tenth iteration the residual is computed from its definition too, and ε
// is raised if they differ too much.
//
// # Errata
//
// These errors of the print are shown in falkon_paper_test.go. Equation (4.9) has the
// step γ/n where γ is meant. Algorithm 2 lacks D in three places, without which the
// solution is another one. Equations (5.20)–(5.22) have λ where λn is meant. Equation
// (5.22) has n/M beside the weights A_h of Algorithms 3 and 4, which contain it.
//
// # Invariants
//
//   - Weights, factorisations, ε within rounding and the solver change the time to
//     the solution, not the solution.
//   - One iteration is one pass over the data, in which K_nM is evaluated once.
//     No vector of n numbers is held, and the targets of a stream are read with
//     the inputs. Memory is 2 matrices of M×M (4 for QR), centres, and blocks.
//   - No bit depends on the number of workers or on whether the data are in
//     memory.
//
// # Sources
//
// Carratino (2020), chapter 4, from Rudi, Carratino and Rosasco (2017), and §5.3, from
// Rudi, Calandriello, Carratino and Rosasco (2018). For the logistic loss
// Marteau-Ferey, Bach and Rudi (2019).
package falkon
