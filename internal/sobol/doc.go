// Package sobol makes Sobol' sequences with Owen's scrambling. Their points fill the unit
// cube more evenly than random ones.
//
// In base 2, coordinate j of point i is the sum modulo 2 of the direction numbers v_{j,k} over
// the bits k of i's Gray code that are set (Sobol' 1967, Antonov and Saleev 1979). The direction
// numbers of the first [TableDims] coordinates are Joe and Kuo's "new-joe-kuo-6" (Constructing
// Sobol sequences with better two-dimensional projections, SIAM J. Sci. Comput. 30, 2008).
// Further coordinates each run through a scrambled van der Corput sequence, shuffled on its own
// (B. Burley, Practical Hash-based Owen Scrambling, JCGT 2020).
//
// Nested uniform scrambling (A. B. Owen, Randomly permuted (t,m,s)-nets and
// (t,s)-sequences, 1995) flips every bit of a coordinate, up to the 53rd, by a coin that depends
// on the seed, the coordinate and all higher bits. The coins are bits of a hash.
//
// # Invariants
//
//   - Of the points k·2ᵐ … (k+1)·2ᵐ−1, exactly one lies in each of the 2ᵐ equal intervals of
//     every coordinate. Use 2ᵐ points if you can choose, and skip none.
//   - Coordinates 0 and 1 together are a (0,m,2)-net, which has one point in each of
//     the 2ᵐ boxes of any shape 2^−a × 2^−(m−a).
//   - A point depends only on the seed and its index. Golden values check this.
package sobol
