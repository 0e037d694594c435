// Package data holds the data that learners fit. These are inputs with targets, in
// memory or read at every pass, and the encoding that made them.
//
//	train, err := data.FromSlices(x, y) // x [][]float64, y []float64
//	model, err := falkon.Params{Kernel: k, Lambda: 1e-6}.Fit(ctx, train, learners.Options{})
//
// # Sources
//
// A [Source] is a kernel.Source for the inputs X, n×d, that also has the targets Y,
// n×c. [Memory] holds both, and [Load] makes a Memory from any source. Other sources
// read or make their rows at every pass, so that memory does not limit n. All of them
// give the same numbers to the bit at equal precision. [Split] and [KFold] divide the
// rows at random by seed, and [Subset] selects rows.
//
// [Generate] makes sources of any n from formulas (SUSYLike, Friedman, Spline).
// Row i depends only on the seed and i.
//
// # Encodings
//
// An [Encoding] describes how the columns of a table became inputs X and targets Y. It
// takes z-scores of numbers, encodes categories as one-hot, and codes classes as ±1.
// Models keep it in their files, and its JSON is exact. Package learners/dataset reads
// files, fits encodings to tables and applies them.
//
// This package reads no files, so that a program that fits a learner to a slice does
// not link the file formats. Its errors begin with "dataset:", like those of the files.
package data
