// Package explain says what a study has learned about its parameters. [Along] has the
// predictions of a model along one parameter. [Sobol] has the shares of parameters in the
// variance of a function, such as a model's mean. [Shift] measures on the data alone how
// much the best trials differ from all.
//
// # Two importances
//
// The two answer different questions. For a function f of independent uniform
// coordinates, the first-order index of coordinate i is
//
//	S_i = Var E[f | u_i] / Var f
//
// and the total index T_i = E Var[f | all but u_i] / Var f also has its interactions.
// [Sobol] estimates both with the formulas of Saltelli et al. (2010) and Jansen (1999)
// from scrambled Sobol' points. With n base points in d dimensions it costs n(d + 2)
// values of f. [Share] has an estimate of the error, which falls like 1/√n or faster.
//
// [Shift] is PED-ANOVA (Watanabe et al., 2023) for the best part of the trials. It is the
// Pearson divergence of the density of a parameter among the best trials from that among
// all,
//
//	D_i = Σ_c (p_best(c)/p_all(c) − 1)² p_all(c),
//
// over cells c of the parameter's range. A search that has left the bad regions early
// shows a small shift, since nearly all of its trials are good. That is why the two
// importances differ.
package explain
