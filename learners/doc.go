// Package learners has the common parts of the kernel learners. These are the contract
// of an estimator, models that predict, save and load, and measures of error.
//
//	Params ──Fit(ctx, data.Source, Options)──► Model ──Predict(ctx, kernel.Source)──► n×c
//	              │ once per pass or iteration
//	              ▼
//	         Progress: objective, validation error, rows read; may stop the fit
//
// The algorithms are in packages of their own. Each has a Params that is an Estimator.
//
//	krr            exact, n² memory, approximated by the others
//	landweber      gradient descent in the kernel's space, stopped early
//	nystrom        M centres, directly, by gradients or by conjugate gradients
//	falkon         M centres with FALKON's preconditioner, for large n
//	sgdrf          mini-batches on random features
//	avgsgd         averaged stochastic gradients over several passes
//	doublyonline   a new random feature with every step
//
// Package learners/data holds data, and package learners/dataset reads data from files.
// λ is always per sample (K + λnI), as in package sketch.
//
// # Models
//
// Every algorithm returns one of two functions, with c outputs at once.
//
//	Expansion   f(x) = Σ_j k(x, c_j) a_j      centres C, M×d, and coefficients, M×c
//	Linear      f(x) = φ(x)ᵀw                 a feature map, or x itself, and w, M×c
//
// A feature map is stored as its seed, so that a Linear model is a few numbers and w.
// For classifiers the Link says what the outputs mean and how they become
// probabilities. A File is a model on disk. It holds the data.Encoding that turns raw
// tables into inputs, the parameters and a report of the fit.
//
// Estimators have Monitor, ChooseCenters, EachBlock and package minibatch, and package learnerstest
// has the tests that each must pass.
//
// # Invariants
//
//   - Equal data, parameters and seed give equal models to the bit, for any number
//     of workers, and whether the data are in memory or streamed.
//   - A fit that is stopped or cancelled still returns the best model so far, if
//     there is one.
//   - A hyper-parameter out of range gives a *ParameterError before any data are
//     read.
//   - A loaded model predicts the same as the saved one, to the bit. A file that is
//     damaged, incomplete or newer is refused, without memory for false claims.
//   - Saving replaces a file as a whole or not at all.
//
// # Costs
//
// Predicting n rows takes n·M evaluations of the kernel or of features, and memory for one block
// per processor. A file has 8 bytes per coefficient and the centres in their own precision.
package learners
