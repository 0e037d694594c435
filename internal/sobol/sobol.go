package sobol

import (
	"fmt"
	"math/bits"

	"github.com/bkbtuner/bkb/internal/stream"
)

// Sequence is a Sobol' sequence in a cube of any dimension. It is immutable and safe for
// concurrent use.
type Sequence struct {
	dims       int
	directions []directions // of the coordinates in the table
	keys       []uint64     // of the scramble, one a coordinate, nil if unscrambled
	shuffles   []uint64     // keys of the orders of the coordinates beyond the table
}

// New returns the sequence of points with dims ≥ 0 coordinates, scrambled by seed.
func New(dims int, seed uint64) *Sequence {
	s := newSequence(dims, seed)
	s.keys = make([]uint64, dims)
	for j := range s.keys {
		s.keys[j] = stream.Derive(seed, "sobol", uint64(j))
	}
	return s
}

// NewUnscrambled returns the sequence as in the literature, which begins at the origin.
// Padding, beyond [TableDims], is shuffled nevertheless.
func NewUnscrambled(dims int) *Sequence { return newSequence(dims, 0) }

func newSequence(dims int, seed uint64) *Sequence {
	if dims < 0 {
		panic(fmt.Sprintf("sobol: %d dimensions", dims))
	}
	s := &Sequence{dims: dims, directions: make([]directions, 0, min(dims, TableDims))}
	if dims == 0 {
		return s
	}
	s.directions = append(s.directions, firstDirections())
	for _, r := range rows(min(dims, TableDims) - 1) {
		s.directions = append(s.directions, r.directions())
	}
	for j := TableDims; j < dims; j++ {
		s.shuffles = append(s.shuffles, stream.Derive(seed, "sobol padding", uint64(j)))
	}
	return s
}

// At writes the coordinates of point i to dst, which has the length of the sequence. They lie
// in [0, 1).
func (s *Sequence) At(i uint32, dst []float64) {
	if len(dst) != s.dims {
		panic(fmt.Sprintf("sobol: a point of %d coordinates for a sequence of %d", len(dst), s.dims))
	}
	gray := i ^ i>>1
	for j := range dst {
		x := s.net(gray, i, j)
		if s.keys == nil {
			dst[j] = float64(x) / (1 << 32)
			continue
		}
		dst[j] = scrambled(x, s.keys[j])
	}
}

// net is coordinate j of point i before it is scrambled, as a fraction of 2³².
func (s *Sequence) net(gray, i uint32, j int) uint32 {
	if j >= TableDims {
		return bits.Reverse32(nested(i, s.shuffles[j-TableDims]))
	}
	v := &s.directions[j]
	x := uint32(0)
	for ; gray != 0; gray &= gray - 1 {
		x ^= v[bits.TrailingZeros32(gray)]
	}
	return x
}

// scrambled is x/2³², scrambled and continued to 53 bits.
func scrambled(x uint32, key uint64) float64 {
	tail := stream.Mix(key^stream.Mix(uint64(x)+1<<40)) >> (64 - 21)
	return float64(uint64(nested(x, key))<<21|tail) / (1 << 53)
}

// levels of the tree of coins that one hash decides, with 63 inner nodes of one bit each.
const levels = 6

// nested flips every bit of x by a coin that depends on the bits above it.
func nested(x uint32, key uint64) (y uint32) {
	for top := 0; top < 32; top += levels {
		above := uint64(1)<<top | uint64(x)>>(32-top) // the node of the tree, numbered like a heap's
		coins := stream.Mix(key + above*0x9e3779b97f4a7c15)
		// The nodes below it are numbered like a heap's too. Without a loop over the bits
		// the processor reads all coins at once.
		b := uint64(x) << 32 << top >> (64 - levels)
		flips := coins>>1&1<<5 | coins>>(2|b>>5)&1<<4 | coins>>(4|b>>4)&1<<3 |
			coins>>(8|b>>3)&1<<2 | coins>>(16|b>>2)&1<<1 | coins>>(32|b>>1)&1
		y |= uint32((b ^ flips) << (64 - levels) >> top >> 32)
	}
	return y
}
