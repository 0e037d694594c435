package kernel

import (
	"sync"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// scratches keeps temporary memory between calls.
var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// Scratch is temporary memory for block evaluations. It is a stack with Mark, allocations and
// Release. A repeated evaluation uses the same memory again and allocates nothing. The zero
// Scratch is ready to use. One Scratch serves one goroutine.
type Scratch struct {
	floats [][]float64
	dense  []*Points[float64]
	top    Mark
	block  panel.Block[float64]
}

// Mark is a position in a Scratch's stack.
type Mark struct{ floats, points int }

// Mark returns the present position.
func (s *Scratch) Mark() Mark { return s.top }

// Release returns all memory allocated since m.
func (s *Scratch) Release(m Mark) { s.top = m }

// Floats takes n numbers of unspecified value.
func (s *Scratch) Floats(n int) []float64 {
	if s.top.floats == len(s.floats) {
		s.floats = append(s.floats, nil)
	}
	at := &s.floats[s.top.floats]
	s.top.floats++
	return simd.Sized(at, n)
}

// points takes n×d points of unspecified value. A nil Scratch allocates them.
func (s *Scratch) points(n, d int) *Points[float64] {
	if s == nil {
		return NewPoints[float64](n, d, nil)
	}
	if s.top.points == len(s.dense) {
		s.dense = append(s.dense, new(Points[float64]))
	}
	p := s.dense[s.top.points]
	s.top.points++
	p.n, p.d = n, d
	simd.Sized(&p.data, n*d)
	return p
}
