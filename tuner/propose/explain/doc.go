// Package explain says what a study has learned about its parameters. [Along] has the
// predictions of a model along one parameter.
//
// [Sobol] has the shares of parameters in the variance of a function f of independent uniform
// coordinates, such as a model's mean. These are the first-order index S_i = Var E[f | u_i] /
// Var f, and the total index E Var[f | all but u_i] / Var f, which also has interactions. The
// formulas are those of Saltelli et al. (2010) and Jansen (1999). With n base points in d
// dimensions it costs n(d + 2) values of f.
//
// [Shift] measures on the data alone how much the best trials differ from all. It is PED-ANOVA
// (Watanabe et al., 2023), the Pearson divergence
//
//	D_i = Σ_c (p_best(c)/p_all(c) − 1)² p_all(c)
//
// of the density of a parameter over cells c of its range.
package explain
