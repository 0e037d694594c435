// Package data holds the data that learners fit: inputs with targets, in memory or
// read at every pass, and the encoding that made them.
//
//	train, err := data.FromSlices(x, y) // x [][]float64, y []float64
//	model, err := falkon.Params{Kernel: k, Lambda: 1e-6}.Fit(ctx, train, learners.Options{})
//
// # Sources
//
// A [Source] is a kernel.Source for the inputs X, n×d, with the targets Y, n×c,
// beside it. [Memory] holds both; [Load] makes one of any source. Other sources read
// or make their rows at every pass, so that n is not bounded by memory. All of them
// give the same numbers to the bit for equal precision. [Split] and [KFold] deal
// rows by seed, [Subset] takes them.
//
// [Generate] makes sources of any n from formulas (SUSYLike, Friedman, Spline,
// Blobs): row i depends on the seed and i alone.
//
// # Encodings
//
// An [Encoding] describes how the columns of a table became inputs X and targets Y:
// z-scores, one-hot categories, ±1 for classes. Models keep it in their files, and
// its JSON is exact. Package learners/dataset reads files, fits encodings to
// tables and applies them.
//
// This package reads no files, so that a program that fits a learner to a slice
// links no file format. Its errors begin with "dataset:", as those of the files do.
package data
