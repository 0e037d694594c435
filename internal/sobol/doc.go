// Package sobol makes Sobol' sequences with Owen's scrambling. Their points fill the unit
// cube more evenly than random ones.
//
// In base 2, coordinate j of point i is the sum modulo 2 of the direction numbers v_{j,k}
// over the bits k of i's Gray code that are set (Sobol' 1967, Antonov and Saleev 1979). The
// direction numbers of the first [TableDims] coordinates are Joe and Kuo's "new-joe-kuo-6"
// (S. Joe, F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections,
// SIAM J. Sci. Comput. 30, 2008), made so that pairs of coordinates are even too.
//
// Nested uniform scrambling (A. B. Owen, Randomly permuted (t,m,s)-nets and
// (t,s)-sequences, 1995) flips every bit of a coordinate by a coin that depends on the
// seed, the coordinate and all higher bits. Each point is then uniform in the cube. Means
// are unbiased, and the origin is not special, while every property of the net stays. The
// coins are bits of a hash, so no tree is stored. The flips continue to the 53rd bit, so
// values have the full resolution of float64 below 1, and lie in [0, 1).
//
// # Invariants
//
//   - Of the first 2ᵐ points, exactly one lies in each of the 2ᵐ equal intervals of
//     every coordinate. The same holds for points k·2ᵐ … (k+1)·2ᵐ−1. Use 2ᵐ points
//     if you can choose, and skip none, including the first.
//   - Coordinates 0 and 1 together are a (0,m,2)-net, which has one point in each of
//     the 2ᵐ boxes of any shape 2^−a × 2^−(m−a).
//   - A point depends only on the seed and its index. Golden values check this.
//
// Coordinates from TableDims on are padding. Each runs through the points of a scrambled
// van der Corput sequence, shuffled within blocks of 2ᵐ on its own (B. Burley, Practical
// Hash-based Owen Scrambling, JCGT 2020). Alone each is as even as the others. Together
// they are no better than random.
//
// # Costs
//
// New reads the table, 0.5 µs a coordinate, and keeps 136 bytes of it. A point costs O(bits
// of its index) a coordinate, about 60 ns.
package sobol
