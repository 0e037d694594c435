// Package minibatch draws the rows that stochastic gradient methods step on, from
// data in memory or larger than memory.
//
// A pass reads chunks of consecutive rows, one at a time, and deals mini-batches
// within each: with replacement, every row once in random order, or in the order
// of the rows.
//
//	chunk 0, n₀ rows ──► ⌈n₀/b⌉ mini-batches     chunk 1 ──► …
//
// Data of one chunk, 2²⁶ numbers or 2¹⁶ rows by default, are dealt as a whole.
// Rows of larger data should be in random order: a mini-batch then is a random
// one of all but for the rows that its chunk has.
//
// # Invariants
//
// What is dealt depends on n, d, the Plan and the generator, not on whether the
// source is in memory, so that a fit is the same to the bit. Rows and targets
// are verified to be finite before they are dealt; a source that breaks its
// contract is a *kernel.SourceError.
//
// # Costs
//
// A source in memory is not copied but for the mini-batch; of others one chunk is
// held, 512 MiB of float64 by default. Dealing costs a copy of the rows.
package minibatch
