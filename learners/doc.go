// Package learners has what the kernel learners have in common: the contract of
// an estimator, models that predict, save and load, and measures of error.
//
//	Params ──Fit(ctx, dataset.Source, Options)──► Model ──Predict(ctx, kernel.Source)──► n×c
//	              │ once per pass or iteration
//	              ▼
//	         Progress: objective, validation error, rows read; may stop the fit
//
// The algorithms are in packages of their own, each a Params that is an
// Estimator: krr, landweber, nystrom, sgdrf, avgsgd, doublyonline, falkon.
// Package learners/dataset brings data; whatever λ is, it is per sample
// (K + λnI), as in package sketch.
//
// # Models
//
// Every algorithm ends in one of two functions, with c outputs at once:
//
//	Expansion   f(x) = Σ_j k(x, c_j) a_j      centres C, M×d, and coefficients, M×c
//	Linear      f(x) = φ(x)ᵀw                 a feature map, or x itself, and w, M×c
//
// # Invariants
//
//   - Equal data, parameters and seed give equal models to the bit, for any number
//     of workers, and whether the data are in memory or streamed.
//   - A fit that is stopped or cancelled still gives the best model so far, if
//     there is one.
//   - A hyper-parameter out of range is a *ParameterError before anything is read.
package learners
