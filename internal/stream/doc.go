// Package stream gives every decision of a study its own random numbers.
//
// A decision is named by the study's seed, a purpose ("random", "hyperband", …) and a
// number, such as that of a trial. [Derive] turns the three into one 64-bit seed, and [New]
// turns a seed into a generator:
//
//	r := stream.New(stream.Derive(spec.Seed, "random", uint64(trial)))
//
// So a decision can be repeated after a restart, on another machine, or years later to
// check a log, without replaying the decisions before it. The stored seed is enough to
// repeat it.
//
// [Permutation] shuffles 0 … n−1 without storing the order, so that any element of it can
// be computed directly.
//
// # Invariants
//
// Results for given arguments never change, because logs depend on them. Golden values in
// the tests check this, including changes of Go's own generators. Numbers n and m of one
// study seed and purpose never share a derived seed.
//
// # Sources and costs
//
// Derive is the n-th output of SplitMix64 (Steele, Lea and Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014), started at a mix of seed and purpose. It
// costs a few ns. New is ChaCha8 as in math/rand/v2 (C2SP chacha8rand), keyed by the seed.
// It costs about 1 µs. A Permutation is a Feistel network with cycle walking (Black and
// Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002), about 50 ns an element.
//
// These numbers are not suited for secrets.
package stream
