// Package theory computes the hyper-parameters that theory recommends, and the ranges
// in which to tune them. They are starting values for tuning.
//
//	Lambda, Rate                      kernel ridge regression
//	Schedule.Settings                 SGD with random features, Corollaries 5, 6
//	PracticalCenters                  FALKON, Theorem 7 with practical constants
//	DoublyOnline.*                    doubly online learning, Corollaries 3.2 … 3.9
//	Multipass.*                       averaged SGD over several passes, Theorem 1
//	Space, Data                       search spaces for given data
//
// # Symbols
//
// n is the number of observations, κ² = sup k(x, x). A [Regularity] is (r, α). f_H = Lʳg for the
// integral operator L of the kernel, with r ∈ [½, 1], and N(λ) = tr L(L+λ)⁻¹ ≤ Q²λ^−α, with α ∈
// [0, 1]. (½, 1) assumes nothing. The Gaussian kernel with its exponentially decaying spectrum is
// close to α = 0. Lin and Rosasco (2019) call them ζ and γ. Pillaud-Vivien, Rudi and Bach (2018)
// have the same r, and 1/α for the α here.
//
// Steps are in units of κ⁻² and λ in units of κ², both per sample as everywhere in learners.
// Integers are rounded up and kept within their range, such as [1, n].
//
// # Sources
//
//	Carratino (2020), Resource Efficient Large-Scale Machine Learning,
//	  chapters 2 to 4, with
//	  Carratino, Rudi and Rosasco (2018), Learning with SGD and Random Features
//	  Rudi, Carratino and Rosasco (2017), FALKON
//	Lin and Rosasco (2019), Generalization Properties of Doubly Online Learning
//	  Algorithms
//	Pillaud-Vivien, Rudi and Bach (2018), Statistical Optimality of Stochastic
//	  Gradient Descent on Hard Learning Problems through Multiple Passes
//
// Where the print has an error, the comment of the function says so, and
// theory_paper_test.go shows it in numbers.
//
// # Invariants
//
// Functions are pure. An argument outside the range of a statement gives a
// *learners.ParameterError that names the range. Every function costs a few powers.
package theory
