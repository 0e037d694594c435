// Package minibatch draws the mini-batches of stochastic gradient methods, from data in
// memory or larger than memory.
//
// A pass reads chunks of consecutive rows, one at a time, and deals mini-batches within
// each. Rows come with replacement, once each in random order, or in their own order.
//
//	chunk 0, n₀ rows ──► ⌈n₀/b⌉ mini-batches     chunk 1 ──► …
//
// Data of one chunk, by default 2²⁶ numbers or 2¹⁶ rows, are dealt as a whole. Rows of
// larger data should be in random order. A mini-batch is then a random one of all rows,
// apart from the limit to its chunk.
//
// # Invariants
//
// The mini-batches depend on n, d, the Plan and the generator. They do not depend on whether the
// source is in memory, so a fit is the same to the bit. Rows and targets are checked to be finite
// before they are dealt. A source that breaks its contract gives a *kernel.SourceError.
//
// # Costs
//
// From a source in memory only the mini-batch is copied. From other sources one chunk
// is held, by default 512 MiB of float64. Dealing costs a copy of the rows.
package minibatch
