// Package stream gives every decision of a study its own random numbers.
//
// A decision is named by the study's seed, a purpose ("random", "hyperband", …)
// and a number, such as that of a trial. [Derive] makes of the three one 64-bit
// seed, and [New] makes of a seed a generator:
//
//	r := stream.New(stream.Derive(spec.Seed, "random", uint64(trial)))
//
// So a decision can be made again after a restart, on another machine, or years
// later to check a log, without replaying the decisions before it. The seed
// alone suffices: who stores it beside the decision can repeat it.
//
// [Permutation] shuffles 0 … n−1 without storing it, for orders that must be
// entered anywhere.
//
// # Invariants
//
// What comes out for given arguments never changes: logs depend on it. Golden
// values in the tests pin it; a change of Go's own generators would show there
// too. Numbers n and m of one study seed and purpose never share a derived seed.
//
// # Sources and costs
//
// Derive is the n-th output of SplitMix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014), started at a mix of seed and
// purpose; it costs a few ns. New is ChaCha8 as math/rand/v2 has it
// (C2SP chacha8rand), keyed by the seed; it costs about 1 µs. A Permutation is a
// Feistel network with cycle walking (Black, Rogaway: Ciphers with Arbitrary
// Finite Domains, CT-RSA 2002), about 50 ns an element.
//
// None of this is meant to keep secrets.
package stream
