package stream

import (
	"encoding/binary"
	"math/rand/v2"
)

// golden is 2⁶⁴ divided by the golden ratio, made odd. It is the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// Mix is a bijection of 64 bits that looks random. It is SplitMix64's finaliser.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Derive returns the seed of decision n for the given purpose in a study with the given seed.
func Derive(study uint64, purpose string, n uint64) uint64 {
	h := Mix(study + golden)
	for i := range len(purpose) {
		h = Mix(h ^ uint64(purpose[i]) + golden)
	}
	h = Mix(h ^ uint64(len(purpose)))
	return Mix(h + (n+1)*golden)
}

// New returns the generator of a derived seed.
func New(seed uint64) *rand.Rand {
	key := [32]byte{8: 'b', 'k', 'b', ' ', 's', 't', 'r', 'e', 'a', 'm', ' ', '1'}
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.New(rand.NewChaCha8(key))
}
