package sketch

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// lower returns the n×n matrix a, row-major, as a lower triangle.
func lower(a []float64, n int) blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: a}
}

// factorize overwrites the lower triangle of gram = K_JJ, M×M, by that of
// L with LLᵀ = K_JJ + diag(ridge) + jitter·I. jitter is 0 unless rounding has
// left the sum not positive definite: then the smallest of M·ε·max K_jj times
// a power of 100 that mends it.
func factorize(gram, ridge []float64) (jitter float64, err error) {
	m := len(ridge)
	diag, largest := make([]float64, m), 0.0
	for j := range m {
		diag[j] = gram[j*m+j]
		largest = max(largest, diag[j]+ridge[j])
	}
	for try := 0; ; try++ {
		for i := range m {
			gram[i*m+i] = diag[i] + ridge[i] + jitter
			if try > 0 { // the upper triangle still has K
				for j := range i {
					gram[i*m+j] = gram[j*m+i]
				}
			}
		}
		if _, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: m, Stride: m, Data: gram}); ok {
			return jitter, nil
		}
		if try == 4 {
			return jitter, &FactorizationError{Size: m, Jitter: jitter}
		}
		jitter = max(100*jitter, float64(m)*0x1p-52*largest)
	}
}

// solveLower overwrites b, M×cols, by L⁻¹b. Columns do not affect each other,
// not even in the last bit.
func solveLower(l []float64, m int, b []float64, cols int) {
	if m == 0 || cols == 0 {
		return
	}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, lower(l, m), blas64.General{Rows: m, Cols: cols, Stride: cols, Data: b})
}

// addSquares adds to dst the squared norms of the columns of b.
func addSquares(dst, b []float64) {
	cols := len(dst)
	for ; len(b) > 0; b = b[cols:] {
		for i, v := range b[:cols] {
			dst[i] += v * v
		}
	}
}

// score is ℓ̃ for the residual k(x, x) − ‖L⁻¹k_J(x)‖², kept in (0, 1] against
// rounding; 0 if k(x, x) = 0.
func score(residual, diag, ridge float64) float64 {
	return min(max(residual, diag*0x1p-50)/ridge, 1)
}

// selfScores returns ℓ̃_J(x_j, λ) of the points J themselves; it overwrites
// gram = K_JJ. With R = λnA,
//
//	K − K(K + R)⁻¹K = R − R(K + R)⁻¹R,
//
// the right-hand side needs no second matrix, and loses digits only when R is
// far above K.
func selfScores(gram, weights []float64, ridge float64) ([]float64, error) {
	m := len(weights)
	diag, r := make([]float64, m), make([]float64, m)
	extreme := false
	for j, a := range weights {
		diag[j], r[j] = gram[j*m+j], ridge*a
		extreme = extreme || r[j] > 1e4*diag[j]
	}
	var k []float64
	if extreme {
		k = append(k, gram...)
	}
	jitter, err := factorize(gram, r)
	if err != nil {
		return nil, err
	}
	if extreme {
		solveLower(gram, m, k, m)
		return columnScores(k, diag, ridge), nil
	}
	if m > 0 {
		lapack64.Trtri(lower(gram, m))
	}
	norms := make([]float64, m) // ((K + R)⁻¹)_jj = ‖L⁻¹e_j‖²
	for i := range m {
		addSquares(norms[:i+1], gram[i*m:i*m+i+1])
	}
	out := make([]float64, m)
	for j := range out {
		rj := r[j] + jitter
		out[j] = score(rj-rj*rj*norms[j], diag[j], ridge)
	}
	return out, nil
}

// columnScores turns the columns of L⁻¹K into scores.
func columnScores(solved, diag []float64, ridge float64) []float64 {
	norms := make([]float64, len(diag))
	addSquares(norms, solved)
	for i, s := range norms {
		norms[i] = score(diag[i]-s, diag[i], ridge)
	}
	return norms
}
