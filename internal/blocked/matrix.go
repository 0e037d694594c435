package blocked

import (
	"sync"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Float is the element type of a matrix.
type Float = simd.Float

// Matrix is Rows×Cols elements, with element (i, j) at Data[i·Stride + j].
type Matrix[T Float] struct {
	Rows, Cols, Stride int
	Data               []T
}

// New returns a matrix on data, or on new zeros if data is nil.
func New[T Float](rows, cols int, data []T) Matrix[T] {
	if data == nil {
		data = make([]T, rows*cols)
	}
	m := Matrix[T]{rows, cols, cols, data}
	m.check("data")
	return m
}

// Sub returns the view of the rows and columns from (i, j) to (i2, j2), exclusive.
func (m Matrix[T]) Sub(i, j, i2, j2 int) Matrix[T] {
	v := Matrix[T]{Rows: i2 - i, Cols: j2 - j, Stride: m.Stride}
	if v.Rows > 0 && v.Cols > 0 {
		v.Data = m.Data[i*m.Stride+j : (i2-1)*m.Stride+j2]
	}
	return v
}

// row returns row i.
func (m Matrix[T]) row(i int) []T { return m.Data[i*m.Stride:][:m.Cols] }

func (m Matrix[T]) empty() bool { return m.Rows == 0 || m.Cols == 0 }

func (m Matrix[T]) check(name string) {
	if m.Rows < 0 || m.Cols < 0 || m.Stride < m.Cols || !m.empty() && len(m.Data) < (m.Rows-1)*m.Stride+m.Cols {
		panic("blocked: precondition: " + name + " is too short, or its stride is")
	}
}

func (m Matrix[T]) checkSquare(name string) {
	m.check(name)
	if m.Rows != m.Cols {
		panic("blocked: precondition: " + name + " is not square")
	}
}

func checkSame(a, b int, what string) {
	if a != b {
		panic("blocked: precondition: shapes do not match: " + what)
	}
}

// operand is a factor of a product, transposed or not. Element (i, l) is data[i·rs + l·cs],
// and one of the steps is 1.
type operand[T Float] struct {
	data   []T
	rs, cs int
}

func (m Matrix[T]) operand(trans bool) operand[T] {
	if trans {
		return operand[T]{m.Data, 1, m.Stride}
	}
	return operand[T]{m.Data, m.Stride, 1}
}

func (o operand[T]) from(i, l int) operand[T] {
	if at := i*o.rs + l*o.cs; at < len(o.data) {
		o.data = o.data[at:]
	}
	return o
}

func (o operand[T]) transposed() operand[T] { return operand[T]{o.data, o.cs, o.rs} }

// buffers is the packing memory of one goroutine.
type buffers[T Float] struct {
	a, b, c []T
	ok      int // result of a kernel
}

var pool32, pool64 = sync.Pool{New: func() any { return new(buffers[float32]) }}, sync.Pool{New: func() any { return new(buffers[float64]) }}

func take[T Float]() *buffers[T] {
	if simd.Size[T]() == 4 {
		return pool32.Get().(*buffers[T])
	}
	return pool64.Get().(*buffers[T])
}

func (b *buffers[T]) give() {
	if simd.Size[T]() == 4 {
		pool32.Put(b)
		return
	}
	pool64.Put(b)
}

// share splits 0 ≤ i < n into pieces of a multiple of unit, one for each worker. It is for
// work whose results do not depend on the ends of the pieces.
func share(workers, n, unit int, f func(from, to int)) {
	units := (n + unit - 1) / unit
	workers = max(1, min(workers, units))
	if workers == 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		from, to := units*w/workers*unit, min(n, units*(w+1)/workers*unit)
		if w == workers-1 {
			f(from, to)
			continue
		}
		wg.Go(func() { f(from, to) })
	}
	wg.Wait()
}
