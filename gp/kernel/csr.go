package kernel

import (
	"fmt"
	"math"
	"slices"
)

var (
	_ numeric = (*CSR[float64])(nil)
	_ numeric = (*CSR[float32])(nil)
)

// CSR is a sparse n×d matrix of inputs in compressed-row form. Row i holds the values
// val[ptr[i]:ptr[i+1]] in the columns col[ptr[i]:ptr[i+1]], and 0 elsewhere. Columns
// increase strictly within a row.
type CSR[T Float] struct {
	n, d int
	ptr  []int
	col  []int32
	val  []T
}

// NewCSR returns the sparse n×d rows, without copying. It returns an error that names
// the row unless ptr has n+1 non-decreasing entries within val and the columns of each
// row increase strictly within [0, d).
func NewCSR[T Float](n, d int, ptr []int, col []int32, val []T) (*CSR[T], error) {
	if n < 0 || d < 0 || d > math.MaxInt32 {
		return nil, fmt.Errorf("kernel: sparse rows of %d×%d", n, d)
	}
	if len(ptr) != n+1 {
		return nil, &ShapeError{In: "kernel", What: "ptr", Got: len(ptr), Want: fmt.Sprintf("n+1 = %d", n+1)}
	}
	if len(col) != len(val) {
		return nil, &ShapeError{In: "kernel", What: "col", Got: len(col), Want: fmt.Sprintf("the length of val, %d", len(val))}
	}
	for i := range n {
		lo, hi := ptr[i], ptr[i+1]
		if lo < 0 || hi < lo || hi > len(val) {
			return nil, fmt.Errorf("kernel: sparse row %d spans [%d,%d) of %d values", i, lo, hi, len(val))
		}
		prev := int32(-1)
		for _, c := range col[lo:hi] {
			if c <= prev || int(c) >= d {
				return nil, fmt.Errorf("kernel: sparse row %d has column %d after column %d, want increasing columns below %d", i, c, prev, d)
			}
			prev = c
		}
	}
	return &CSR[T]{n: n, d: d, ptr: ptr, col: col, val: val}, nil
}

// Sparse returns p in compressed-row form, without its zeros.
func Sparse[T Float](p *Points[T]) *CSR[T] {
	out := &CSR[T]{n: p.n, d: p.d, ptr: make([]int, 1, p.n+1)}
	for i := range p.n {
		for c, v := range p.Row(i) {
			if v != 0 {
				out.col = append(out.col, int32(c))
				out.val = append(out.val, v)
			}
		}
		out.ptr = append(out.ptr, len(out.val))
	}
	return out
}

// Len returns n.
func (m *CSR[T]) Len() int { return m.n }

// Dim returns d.
func (m *CSR[T]) Dim() int { return m.d }

// Row returns the columns and values of row i as views.
func (m *CSR[T]) Row(i int) (col []int32, val []T) {
	if uint(i) >= uint(m.n) {
		panic((&IndexError{Index: i, Len: m.n}).Error())
	}
	lo, hi := m.ptr[i], m.ptr[i+1]
	return m.col[lo:hi:hi], m.val[lo:hi:hi]
}

// Slice returns rows i ≤ r < j as a view.
func (m *CSR[T]) Slice(i, j int) Rows {
	if i < 0 || j < i || j > m.n {
		panic(fmt.Sprintf("kernel: precondition: slice [%d:%d] of %d rows", i, j, m.n))
	}
	return &CSR[T]{n: j - i, d: m.d, ptr: m.ptr[i : j+1], col: m.col, val: m.val}
}

// Select returns a copy of the chosen rows.
func (m *CSR[T]) Select(idx []int) Rows {
	out := &CSR[T]{d: m.d, ptr: make([]int, 1, len(idx)+1)}
	for _, i := range idx {
		out.push(m.Row(i))
	}
	return out
}

// Concat returns a copy of m followed by the rows of rest.
func (m *CSR[T]) Concat(rest ...Rows) (Rows, error) {
	out := &CSR[T]{d: m.d, ptr: make([]int, 1, m.n+1)}
	for _, r := range slices.Insert(slices.Clone(rest), 0, Rows(m)) {
		q, ok := r.(*CSR[T])
		if !ok {
			return nil, concatTypeError(m, r)
		}
		if q.d != m.d {
			return nil, &DimensionError{What: "rows to append", Got: q.d, Want: m.d}
		}
		for i := range q.n {
			out.push(q.Row(i))
		}
	}
	return out, nil
}

// push appends one row.
func (m *CSR[T]) push(col []int32, val []T) {
	m.col = append(m.col, col...)
	m.val = append(m.val, val...)
	m.ptr = append(m.ptr, len(m.val))
	m.n++
}

func (m *CSR[T]) row(i int) vector {
	col, val := m.Row(i)
	v := denseVector(val)
	v.sparse, v.col = true, col
	return v
}

func (m *CSR[T]) nonFinite() (row, col int, value float64, found bool) {
	for i := range m.n {
		cols, vals := m.Row(i)
		for k, v := range vals {
			if v-v != 0 {
				return i, int(cols[k]), float64(v), true
			}
		}
	}
	return 0, 0, 0, false
}
