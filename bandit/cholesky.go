package bandit

import "math"

// The algebra here is in plain loops, since a library may round differently with other vector
// instructions, and suggestions must not depend on these.

// cholesky factors a symmetric matrix, of which only the lower triangle is read, in place. It
// reports whether it is positive definite.
func cholesky(a [][]float64) bool {
	for j, row := range a {
		for _, v := range row[:j] {
			row[j] -= v * v
		}
		if !(row[j] > 0 && row[j] < math.MaxFloat64) {
			return false
		}
		row[j] = math.Sqrt(row[j])
		for _, below := range a[j+1:] {
			for k, v := range row[:j] {
				below[j] -= below[k] * v
			}
			below[j] /= row[j]
		}
	}
	return true
}

// solveL sets b to L⁻¹b.
func solveL(l [][]float64, b []float64) {
	for i, row := range l {
		for k, v := range row[:i] {
			b[i] -= v * b[k]
		}
		b[i] /= row[i]
	}
}

// solveLT sets b to L⁻ᵀb.
func solveLT(l [][]float64, b []float64) {
	for i := len(l) - 1; i >= 0; i-- {
		b[i] /= l[i][i]
		for k, v := range l[i][:i] {
			b[k] -= v * b[i]
		}
	}
}
