package kernel

import (
	"fmt"
	"math"
)

// Float is the element type of numeric rows. Sums over elements are always computed in float64.
type Float interface{ float32 | float64 }

// NoDim is the dimension of rows that are not vectors (strings, graphs, …).
const NoDim = -1

// Rows is a finite sequence of inputs, x_0 … x_{n−1}. Your own type can be another than those
// of this package, for [Pairwise] kernels or your own kernels. Rows are read-only to this
// package and safe for concurrent reading.
type Rows interface {
	// Len returns n.
	Len() int
	// Dim returns the number of coordinates d ≥ 0, or NoDim.
	Dim() int
	// Slice returns rows i ≤ r < j as a view on the same memory. It panics
	// unless 0 ≤ i ≤ j ≤ Len.
	Slice(i, j int) Rows
	// Select returns a copy of the rows idx[0], idx[1], … in that order. An index may
	// occur more than once. It panics on an index out of range.
	Select(idx []int) Rows
	// Concat returns a copy of these rows followed by those of rest. All
	// must have the receiver's type and dimension.
	Concat(rest ...Rows) (Rows, error)
}

// numeric rows are vectors of numbers.
type numeric interface {
	Rows
	// row returns a view of row i.
	row(i int) vector
	// nonFinite finds the first NaN or infinity.
	nonFinite() (row, col int, value float64, found bool)
}

// asNumeric is for rows that a kernel's Check has accepted.
func asNumeric(x Rows) numeric {
	v, ok := x.(numeric)
	if !ok {
		panic(fmt.Sprintf("kernel: precondition: %T rows passed to a kernel on vectors; call Check first", x))
	}
	return v
}

// CheckFinite returns a [*NonFiniteError] for the first NaN or infinity in
// dense or sparse rows, nil for other rows. what names the rows in the error.
func CheckFinite(what string, x Rows) error {
	return checkFiniteFrom(what, x, 0)
}

// checkFiniteFrom is CheckFinite for a block that starts at row row0.
func checkFiniteFrom(what string, x Rows, row0 int) error {
	v, ok := x.(numeric)
	if !ok {
		return nil
	}
	if row, col, value, found := v.nonFinite(); found {
		return &NonFiniteError{What: what, Row: row0 + row, Col: col, Value: value}
	}
	return nil
}

// checkFiniteMatrix returns an error for a NaN or infinity in an r×cols matrix whose
// first row has index row0.
func checkFiniteMatrix(what string, a []float64, cols, row0 int) error {
	for i, v := range a {
		if !isFinite(v) {
			return &NonFiniteError{What: what, Row: row0 + i/cols, Col: i % cols, Value: v}
		}
	}
	return nil
}

// isFinite uses that v − v is 0 for finite v and NaN otherwise.
func isFinite(v float64) bool { return v-v == 0 }

// concatTypeError reports parts of unequal type.
func concatTypeError(want, got Rows) error {
	return fmt.Errorf("kernel: cannot append %T to %T", got, want)
}

// vector is a view of one numeric row. It is dense when col is nil, else sparse with
// strictly increasing columns. Exactly one of f64 and f32 is in use.
type vector struct {
	sparse bool
	col    []int32
	f64    []float64
	f32    []float32
}

// stored returns the number of stored elements.
func (v *vector) stored() int {
	if v.f32 != nil {
		return len(v.f32)
	}
	return len(v.f64)
}

// element returns the k-th stored element and its column.
func (v *vector) element(k int) (col int, value float64) {
	col = k
	if v.sparse {
		col = int(v.col[k])
	}
	if v.f32 != nil {
		return col, float64(v.f32[k])
	}
	return col, v.f64[k]
}

// scatter writes the vector to dst, whose length is d.
func (v *vector) scatter(dst []float64) {
	if v.sparse {
		clear(dst)
	} else if v.f64 != nil {
		copy(dst, v.f64)
		return
	}
	for k := range v.stored() {
		c, x := v.element(k)
		dst[c] = x
	}
}

// CopyRow writes row i of x, dense or sparse numbers, to dst, whose length is d. It returns
// false for rows of another kind.
func CopyRow(dst []float64, x Rows, i int) bool {
	v, ok := x.(numeric)
	if ok {
		row := v.row(i)
		row.scatter(dst)
	}
	return ok
}

// walker visits the coordinates at which at least one of two vectors is
// stored, in increasing order.
type walker struct {
	a, b vector
	p, q int
}

func walk(a, b vector) walker { return walker{a: a, b: b} }

func (w *walker) next() (col int, x, y float64, ok bool) {
	ca, cb := math.MaxInt, math.MaxInt
	var va, vb float64
	if w.p < w.a.stored() {
		ca, va = w.a.element(w.p)
	}
	if w.q < w.b.stored() {
		cb, vb = w.b.element(w.q)
	}
	switch {
	case ca == math.MaxInt && cb == math.MaxInt:
		return 0, 0, 0, false
	case ca == cb:
		w.p++
		w.q++
		return ca, va, vb, true
	case ca < cb:
		w.p++
		return ca, va, 0, true
	default:
		w.q++
		return cb, 0, vb, true
	}
}
