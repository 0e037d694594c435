// Package theory computes the hyper-parameters that theory recommends, and the
// ranges in which to tune them: numbers to start from, as code.
//
//	Lambda, Rate, Landweber           kernel ridge regression, gradient descent
//	Schedule.Settings                 SGD with random features, Corollaries 5, 6
//	MaxStep, MinFeatures              its exact conditions, Theorem 3
//	UniformCenters, LeverageCenters,  FALKON, Theorems 5, 7 and 8, with their
//	PracticalCenters, FALKON          constants and with practical ones
//	DoublyOnline.*                    doubly online learning, Corollaries 3.2 … 3.9
//	Multipass.*                       averaged SGD over several passes, Theorem 1
//	Space, Data                       search spaces, for what is known of the data
//
// # Symbols
//
// n is the number of observations, κ² = sup k(x, x). A [Regularity] is (r, α):
// f_H = Lʳg for the integral operator L of the kernel, r ∈ [½, 1], and
// N(λ) = tr L(L+λ)⁻¹ ≤ Q²λ^−α, α ∈ [0, 1]. (½, 1) assumes nothing; the Gaussian
// kernel with its exponentially decaying spectrum is close to α = 0. Seed 002
// calls them ζ and γ; seed 004 has the same r, and 1/α for the α here.
//
// Theory gives orders: n^{−1/(2r+α)}, "up to constants". Functions here return
// the expression with constant 1 unless they say otherwise, steps in units of
// κ⁻² and λ in units of κ², both per sample as everywhere in learners. Integers
// are rounded up and kept within what exists, [1, n].
//
// # Sources
//
//	L. Carratino, Scaling kernel methods (thesis), chapters 2 to 4
//	  = Carratino, Rudi, Rosasco, Learning with SGD and random features, 2018
//	  and Rudi, Carratino, Rosasco, FALKON, 2017
//	J. Lin, L. Rosasco, Generalization properties of doubly online learning, 2017
//	L. Pillaud-Vivien, A. Rudi, F. Bach, Statistical optimality of SGD on hard
//	  learning problems through multiple passes, 2018
//
// Where the print is in error the comment of the function says so, and
// theory_paper_test.go shows it in numbers.
//
// # Invariants
//
// Functions are pure. What is outside the range in which a statement holds is a
// *learners.ParameterError that names the range. Every function costs a few
// powers.
package theory
