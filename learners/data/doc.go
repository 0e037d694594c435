// Package data holds the data that learners fit. These are inputs with targets, in
// memory or read at every pass, and the encoding that made them.
//
//	train, err := data.FromSlices(x, y) // x [][]float64, y []float64
//	model, err := falkon.Params{Kernel: k, Lambda: 1e-6}.Fit(ctx, train, learners.Options{})
//
// A [Source] is a kernel.Source for the inputs X, n×d, that also has the targets Y,
// n×c. [Memory] holds both. Other sources read or make their rows at every pass, so that
// memory does not limit n. All give the same numbers to the bit at equal precision.
// [Generate] makes rows of any n from formulas, where row i depends only on the seed and i.
//
// An [Encoding] describes how the columns of a table became inputs and targets. Models keep it in
// their files. Package learners/dataset reads files, fits encodings to tables and applies them.
package data
