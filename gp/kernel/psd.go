package kernel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// CheckPSD tests a caller's own kernel on the sample x, of at most a few hundred rows. The
// kernel must be symmetric to the bit, and K(X, X) must have no eigenvalue below
// −1e-10·Σ|k(x, x)|. It returns an [*AsymmetryError], a [*NotPSDError], or an error of [Matrix].
// It costs n² evaluations and O(n³) operations.
func CheckPSD(k Kernel, x Rows) error {
	if err := checkPair(k, x, x); err != nil {
		return err
	}
	n := x.Len()
	if n == 0 {
		return nil
	}
	gram := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			ij, ji := k.Eval(x, i, x, j), k.Eval(x, j, x, i)
			if !isFinite(ij) {
				return &NonFiniteError{What: "K(X, X)", Row: i, Col: j, Value: ij}
			}
			if ij != ji {
				return &AsymmetryError{I: i, J: j, IJ: ij, JI: ji}
			}
			gram.SetSym(i, j, ij)
		}
	}
	scale := 0.0
	for i := range n {
		scale += math.Abs(gram.At(i, i))
	}
	return smallestEigenvalue(gram, 1e-10*scale)
}

func smallestEigenvalue(gram *mat.SymDense, tol float64) error {
	var eig mat.EigenSym
	if !eig.Factorize(gram, true) {
		return fmt.Errorf("kernel: the eigenvalues of a %d×%[1]d kernel matrix did not converge", gram.SymmetricDim())
	}
	least := eig.Values(nil)[0]
	if least >= -tol {
		return nil
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	row, most := 0, 0.0 // the largest weight in the eigenvector
	for i := range gram.SymmetricDim() {
		if v := math.Abs(vectors.At(i, 0)); v > most {
			row, most = i, v
		}
	}
	return &NotPSDError{In: "kernel", What: "the smallest eigenvalue of K", Row: row, Pivot: least, Tolerance: tol}
}
