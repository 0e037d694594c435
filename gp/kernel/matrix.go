package kernel

import "fmt"

// panelRows is the number of rows that the dense helpers fill at once, and the
// width of the column panels of Gramian.
const panelRows = 64

// checkPair verifies that k can be evaluated on x and y.
func checkPair(k Kernel, x, y Rows) error {
	if x.Dim() != y.Dim() {
		return &DimensionError{What: "y", Got: y.Dim(), Want: x.Dim()}
	}
	for _, side := range []struct {
		name string
		rows Rows
	}{{"x", x}, {"y", y}} {
		if err := k.Check(side.rows); err != nil {
			return err
		}
		if err := CheckFinite(side.name, side.rows); err != nil {
			return err
		}
	}
	return nil
}

// Matrix returns the dense matrix K(X, Y) of x.Len()×y.Len() in row-major order,
// element (i, j) at i·y.Len() + j. It is for small matrices. Products with large ones
// go through [Operator]. It costs one evaluation for each pair. Its errors are those of
// k.Check, [*DimensionError], and [*NonFiniteError] for inputs and for kernel values.
func Matrix(k Kernel, x, y Rows) ([]float64, error) {
	if err := checkPair(k, x, y); err != nil {
		return nil, err
	}
	n, m := x.Len(), y.Len()
	out := make([]float64, n*m)
	if len(out) == 0 {
		return out, nil
	}
	s := scratches.Get().(*Scratch)
	Prepare(k, y).Fill(out, m, x, 0, n, s)
	s.Release(Mark{})
	scratches.Put(s)
	return out, checkFiniteMatrix("K(X, Y)", out, m, 0)
}

// Gramian returns the dense symmetric matrix K(X, X) of n×n in row-major order. It is
// exactly symmetric, with Diag on the diagonal, and costs about half the evaluations of
// Matrix. Its errors are those of [Matrix].
func Gramian(k Kernel, x Rows) ([]float64, error) {
	out := make([]float64, x.Len()*x.Len())
	if err := GramianTo(out, k, x); err != nil {
		return nil, err
	}
	return out, nil
}

// GramianTo is [Gramian] into out, n×n. After an error out is unspecified.
func GramianTo(out []float64, k Kernel, x Rows) error {
	n := x.Len()
	if len(out) != n*n {
		return &ShapeError{In: "kernel", What: "K(X, X)", Got: len(out), Want: fmt.Sprintf("n² = %d", n*n)}
	}
	if err := checkPair(k, x, x); err != nil {
		return err
	}
	s := scratches.Get().(*Scratch)
	for j0 := 0; j0 < n; j0 += panelRows {
		j1 := min(j0+panelRows, n)
		Prepare(k, x.Slice(j0, j1)).Fill(out[j0*n+j0:], n, x, j0, n, s)
	}
	s.Release(Mark{})
	scratches.Put(s)
	for i := range n {
		out[i*n+i] = k.Diag(x, i)
		for j := range i {
			out[j*n+i] = out[i*n+j]
		}
	}
	if n == 0 {
		return nil
	}
	return checkFiniteMatrix("K(X, X)", out, n, 0)
}

// DiagonalTo sets out to k(x_i, x_i) for every row of x, which must be finite and accepted by
// k.Check.
func DiagonalTo(out []float64, k Kernel, x Rows) {
	if base, ok := k.(*Base); ok && base.st.kind.isDistance() {
		for i := range out {
			out[i] = base.atZero
		}
		return
	}
	for i := range out {
		out[i] = k.Diag(x, i)
	}
}

// Diagonal returns k(x_i, x_i) for every row. Its errors are those of [Matrix].
func Diagonal(k Kernel, x Rows) ([]float64, error) {
	if err := checkPair(k, x, x); err != nil {
		return nil, err
	}
	out := make([]float64, x.Len())
	DiagonalTo(out, k, x)
	return out, checkFiniteMatrix("diagonal of K(X, X)", out, 1, 0)
}
