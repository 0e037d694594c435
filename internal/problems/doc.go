// Package problems has functions to optimize with known maxima, for tests and for module
// bench. They are Branin, Hartmann6, Ackley, Forrester, and Draw, which is a draw of a
// Gaussian process. An Environment of finite arms on each of them records regret.
package problems
