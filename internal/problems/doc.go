// Package problems makes data for tests and benchmarks by formula. Row i of a problem is a
// function of its seed and i, so that any part of any number of rows can be made anywhere,
// in any order, without the others.
//
//	SUSYLike   two classes, 18 features in the manner of the SUSY data
//	Friedman1…3  three regression functions of 10, 4 and 4 inputs
//	Spline     regression on the circle with known excess risk
//	Blobs      clusters: many points in one, few in many others
//
// It also has functions to optimize, with their known maxima (Branin, Hartmann3 and 6,
// Ackley, Levy, Rastrigin, Forrester, and Draw, which is a Gaussian process). An
// Environment of finite arms on each of them records regret. Package bbob below has the
// functions of BBOB.
//
// # Invariants
//
// Rows never change for given parameters, seed and index. Golden values in the tests check
// this. Inputs and noise of a row come from one stream of its own, so that the sampling
// costs no more than the arithmetic, about 1 µs a row.
package problems
