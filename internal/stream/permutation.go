package stream

import "math/bits"

// Permutation is a shuffled order of 0 … n−1. The zero Permutation is empty. It is
// immutable and safe for concurrent use.
type Permutation struct {
	n    uint64
	half uint // bits of each half of a Feistel block, with 2^(2·half) ≥ n
	keys [rounds]uint64
}

// rounds of the Feistel network, ten as NIST requires for small domains (FF1).
const rounds = 10

// NewPermutation returns the order of 0 … n−1 for a seed.
func NewPermutation(seed, n uint64) Permutation {
	p := Permutation{n: n}
	if n > 1 {
		p.half = uint(bits.Len64(n-1)+1) / 2
	}
	for i := range p.keys {
		p.keys[i] = Derive(seed, "permutation", uint64(i))
	}
	return p
}

// At returns element i of the order, 0 ≤ i < n. Other i are returned unchanged.
func (p Permutation) At(i uint64) uint64 {
	if i >= p.n || p.n == 1 {
		return i
	}
	for i = p.block(i); i >= p.n; { // at most 4 blocks for each number < n, so there are few turns
		i = p.block(i)
	}
	return i
}

// block permutes 0 … 2^(2·half)−1.
func (p Permutation) block(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	l, r := x>>p.half, x&mask
	for _, k := range p.keys {
		l, r = r, (l^Mix(r^k))&mask
	}
	return l<<p.half | r
}
