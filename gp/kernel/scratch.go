package kernel

import (
	"sync"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// scratches keeps temporary memory between calls.
var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// Scratch is temporary memory for block evaluations. It is a stack with Mark,
// allocations and Release. A repeated evaluation uses the same memory again and
// allocates nothing. The zero Scratch is ready to use. One Scratch serves one
// goroutine.
type Scratch struct {
	floats [][]float64
	p64    []*Points[float64]
	p32    []*Points[float32]
	top    Mark
	block  panel.Block[float64]
}

// Mark is a position in a Scratch's stack.
type Mark struct{ floats, p64, p32 int }

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

// scratchPoints returns n×d points of unspecified value. If s is nil, it allocates
// them.
func scratchPoints[T Float](s *Scratch, n, d int) *Points[T] {
	if s == nil {
		return NewPoints[T](n, d, nil)
	}
	var p *Points[T]
	switch q := any(&p).(type) {
	case **Points[float64]:
		*q = takePoints(&s.p64, &s.top.p64)
	case **Points[float32]:
		*q = takePoints(&s.p32, &s.top.p32)
	}
	p.n, p.d, p.stride = n, d, d
	simd.Sized(&p.data, n*d)
	return p
}

func takePoints[T Float](stack *[]*Points[T], top *int) *Points[T] {
	if *top == len(*stack) {
		*stack = append(*stack, new(Points[T]))
	}
	*top++
	return (*stack)[*top-1]
}
