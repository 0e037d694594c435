package kernel

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var (
	_ numeric = (*Points[float64])(nil)
	_ numeric = (*Points[float32])(nil)
)

// Points is a dense n×d matrix of inputs, one per row, in row-major order.
type Points[T Float] struct {
	n, d int
	data []T
}

// NewPoints returns the n×d points stored in data, which is not copied. A nil data means
// new, zeroed memory. It panics if n or d is negative or data is shorter than n·d.
func NewPoints[T Float](n, d int, data []T) *Points[T] {
	if n < 0 || d < 0 || d > 0 && n > math.MaxInt/d {
		panic(fmt.Sprintf("kernel: precondition: points of %d×%d", n, d))
	}
	if data == nil {
		data = make([]T, n*d)
	}
	if len(data) < n*d {
		panic(fmt.Sprintf("kernel: precondition: %d elements for points of %d×%d", len(data), n, d))
	}
	return &Points[T]{n: n, d: d, data: data}
}

// ConvertPoints returns a copy of p with elements of type U and no gaps.
func ConvertPoints[U, T Float](p *Points[T]) *Points[U] {
	out := NewPoints[U](p.n, p.d, nil)
	for i := range p.n {
		dst := out.Row(i)
		for c, v := range p.Row(i) {
			dst[c] = U(v)
		}
	}
	return out
}

// Len returns n.
func (p *Points[T]) Len() int { return p.n }

// Dim returns d.
func (p *Points[T]) Dim() int { return p.d }

// Data returns the memory behind the points, in which row i starts at i·d.
func (p *Points[T]) Data() []T { return p.data }

// packed returns the points for package panel.
func (p *Points[T]) packed() panel.Rows[T] {
	return panel.Rows[T]{Data: p.data, N: p.n, D: p.d}
}

// Row returns row i as a view of length d.
func (p *Points[T]) Row(i int) []T {
	if uint(i) >= uint(p.n) {
		panic((&IndexError{Index: i, Len: p.n}).Error())
	}
	o := i * p.d
	return p.data[o : o+p.d : o+p.d]
}

// Slice returns rows i ≤ r < j as a view.
func (p *Points[T]) Slice(i, j int) Rows {
	if i < 0 || j < i || j > p.n {
		panic(fmt.Sprintf("kernel: precondition: slice [%d:%d] of %d rows", i, j, p.n))
	}
	return &Points[T]{n: j - i, d: p.d, data: p.data[i*p.d : j*p.d : j*p.d]}
}

// Select returns a copy of the chosen rows.
func (p *Points[T]) Select(idx []int) Rows {
	out := NewPoints[T](len(idx), p.d, nil)
	for r, i := range idx {
		copy(out.Row(r), p.Row(i))
	}
	return out
}

// Concat returns a copy of p followed by the rows of rest.
func (p *Points[T]) Concat(rest ...Rows) (Rows, error) {
	n := p.n
	for _, r := range rest {
		q, ok := r.(*Points[T])
		if !ok {
			return nil, concatTypeError(p, r)
		}
		if q.d != p.d {
			return nil, &DimensionError{What: "rows to append", Got: q.d, Want: p.d}
		}
		n += q.n
	}
	out := append(make([]T, 0, n*p.d), p.data[:p.n*p.d]...)
	for _, r := range rest {
		q := r.(*Points[T])
		out = append(out, q.data[:q.n*q.d]...)
	}
	return NewPoints(n, p.d, out), nil
}

func (p *Points[T]) row(i int) vector { return denseVector(p.Row(i)) }

func denseVector[T Float](x []T) vector {
	switch x := any(x).(type) {
	case []float64:
		return vector{f64: x}
	case []float32:
		return vector{f32: x}
	}
	panic("unreachable")
}

func (p *Points[T]) nonFinite() (row, col int, value float64, found bool) {
	for i := range p.n {
		for c, v := range p.Row(i) {
			if v-v != 0 {
				return i, c, float64(v), true
			}
		}
	}
	return 0, 0, 0, false
}
