// Package nystrom implements kernel ridge regression on M centres without FALKON's
// preconditioner. It solves directly, or by the iterations that figure 4.1 of Carratino
// (2020) compares with FALKON.
//
// With M centres x̃_j out of the n rows, f(x) = Σ_j k(x, x̃_j) c_j minimises
// (1/n)Σ(f(x_i) − y_i)² + λ‖f‖². That is, by equations (4.4) and (4.5) there,
//
//	Hc = z,   H = K_nMᵀK_nM + λn K_MM,   z = K_nMᵀy.
//
// # Solvers
//
// The condition number of H is that of K squared, and unbounded where centres are
// repeated. So the solvers work in coordinates w with c = Pw.
//
//	Whitened   K_MM = LLᵀ by Cholesky with complete pivoting, P = L⁻ᵀ on the
//	           pivots. Centres in the span of the pivots are left out.
//	           Z = K_nM P, problem (ZᵀZ + λnI)w = Zᵀy
//	Plain      P = I, problem (4.5) as it is, which figure 4.1 compares with
//	           FALKON. It is far slower, and is here for that comparison.
//
//	Direct     forms ZᵀZ in blocks of rows and factors it, Whitened only
//	Gradient   w_t = w_{t−1} − (γ/n)(Zᵀ(Zw_{t−1} − y) + λn w_{t−1}). With λ = 0
//	           it is NYTRO (Camoriano, Angles, Rudi and Rosasco, 2016), where
//	           the number of iterations takes the place of λ, about 1/(γt)
//	SGD        the same on mini-batches of b rows, one pass an iteration
//	CG         conjugate gradients
//
// H is never formed or factored. ZᵀZ is also factored by Cholesky with pivoting, so
// that λ = 0 and fewer rows than centres need no special treatment.
//
// # Invariants
//
//   - Order and repetition of centres change no prediction, up to rounding.
//   - With M = n different centres the direct solution is that of package krr.
//   - No bit depends on the number of workers, nor on whether rows are in memory.
//
// # Costs
//
// These are the costs for c outputs. Memory is O(M² + nc) plus a block of 512 rows by M. Plain
// also keeps K_MM, and Gradient and CG also keep the targets. Otherwise memory does not limit n.
//
//	            kernel evaluations          operations
//	Direct      nM                          2nM² + 2M³/3, one pass
//	Gradient    nM an iteration             O(nMc + M²c), one pass each
//	SGD         nM a pass                   O(nMc + (n/b)M²c)
//	CG          nM an iteration             O(nMc + M²c), one pass each
package nystrom
