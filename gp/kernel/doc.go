// Package kernel has covariance functions and products with kernel matrices. Every learner,
// sampler and posterior of this module evaluates kernels through it.
//
// # Data
//
// Inputs are [Rows]. They are dense [Points] (float32 or float64, row-major n×d), sparse [CSR], or a [List] of any type. A [Source] is rows that can be read
// from the start as often as needed, in blocks. Vectors, results and sums are float64, unless
// an operator has another [Precision].
//
// # Kernels
//
// A [Kernel] is a positive semi-definite function k(x, y), with its diagonal bound
// κ² ≥ sup k(x, x). Let r² = Σ_c (x_c − y_c)²/ℓ_c², where ℓ are the length scales.
//
//	NewGaussian            exp(−r²/2)
//	NewMatern12            exp(−r)
//	NewMatern32            (1 + √3 r) exp(−√3 r)
//	NewMatern52            (1 + √5 r + 5r²/3) exp(−√5 r)
//	NewRationalQuadratic   (1 + r²/(2α))^−α
//	NewLaplace             exp(−Σ_c |x_c − y_c|/ℓ_c)
//	NewLinear              Σ_c x_c y_c/ℓ_c²
//	NewPolynomial          (Σ_c x_c y_c/ℓ_c² + offset)^degree
//	NewArcCosine           order 1, the kernel of random ReLU features
//	NewHamming             exp(−Σ_c [x_c ≠ y_c]/ℓ_c), for categories
//	NewMixed               Matérn-5/2 of numbers times Hamming of categories
//	NewScaled
//	Pairwise               any function of any two inputs
//
// The source is Rasmussen and Williams, Gaussian Processes for Machine Learning, chapter 4.
// [New] builds a kernel from its [Spec].
//
// # Products
//
// An [Operator] is K = K(X, C) without storing K. It streams over X in blocks of a fixed size.
//
//	X ── tasks of ≥ 256 rows, in order ──► workers: tile of K (≤ 256 KiB, in L2)
//	                                              t = tile·v (+ u)
//	                                              part += tileᵀ·t
//	dst ◄── parts added in the order of the tasks ──┘
//
// A product costs n·M evaluations, and O(n·M·(d + c)) operations for c right-hand sides. Memory
// is O(workers·M·c). [Matrix], [Gramian] and [Diagonal] are for matrices small enough to hold.
//
// # Invariants
//
//   - On the CPU, no bit of a product depends on the number of workers, on whether X is
//     resident or streamed, or on earlier computations.
//   - Eval, Diag, blocks and products agree up to rounding, and a Gramian is exactly
//     symmetric. For the rounding of distances see [Distances].
//   - Bad data (NaN, wrong dimension, a source that ends early) give a typed error
//     with the place. A panic names the precondition that the caller broke.
//   - Kernels, rows and prepared centres do not change once in use and are safe for
//     concurrent reading. The choice of devices is the only global state.
package kernel
