// Package stream gives every decision of a study its own random numbers.
//
// A decision is named by the study's seed, a purpose ("random", "hyperband", …) and a
// number, such as that of a trial. [Derive] turns the three into one 64-bit seed, and [New]
// turns a seed into a generator:
//
//	r := stream.New(stream.Derive(spec.Seed, "random", uint64(trial)))
//
// So a decision can be repeated after a restart or on another machine without the decisions
// before it. Results for given arguments never change, because logs depend on them. Numbers
// n and m of one study seed and purpose never share a derived seed.
//
// Derive is the n-th output of SplitMix64 (Steele, Lea and Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014), started at a mix of seed and purpose. New is
// ChaCha8 as in math/rand/v2 (C2SP chacha8rand), keyed by the seed, in about 1 µs. A
// [Permutation] is a Feistel network with cycle walking (Black and Rogaway, Ciphers with
// Arbitrary Finite Domains, CT-RSA 2002). These numbers are not suited for secrets.
package stream
