package falkon

import (
	"math"
	"math/bits"
	"sync"
)

// lossSum adds non-negative numbers, each rounded to a multiple of lossUnit. The sum is
// exact and does not depend on the order in which goroutines process the rows.
type lossSum struct {
	mu     sync.Mutex
	hi, lo uint64
}

const (
	lossUnit = 0x1p-40
	lossMost = 0x1p+20 // the largest contribution of a row
)

func (s *lossSum) add(v float64) {
	if !(v < lossMost) {
		v = lossMost
	}
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, uint64(math.Round(v/lossUnit)), 0)
	s.hi += carry
}

// merge adds the sum of part. It is safe for concurrent use.
func (s *lossSum) merge(part *lossSum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, part.lo, 0)
	s.hi, _ = bits.Add64(s.hi, part.hi, carry)
}

func (s *lossSum) value() float64 {
	return (float64(s.hi)*0x1p64 + float64(s.lo)) * lossUnit
}
