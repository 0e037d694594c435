package sketch

import (
	"runtime"

	"github.com/bkbtuner/bkb/internal/blocked"
)

// factorize overwrites the lower triangle of gram = K_JJ, M×M, by that of L with LLᵀ = K_JJ +
// diag(ridge) + jitter·I. jitter is 0 unless the sum is not positive definite because of
// rounding. Then it is the smallest sufficient value of the form M·ε·max K_jj times a power of
// 100. With the ridge only rounding can make the sum indefinite.
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
		if blocked.Cholesky(threads(m), blocked.New(m, m, gram)) == m {
			return jitter, nil
		}
		if try == 4 {
			return jitter, &FactorizationError{Size: m, Jitter: jitter}
		}
		jitter = max(100*jitter, float64(m)*0x1p-52*largest)
	}
}

// threads is the number of goroutines for m points. Below 512 a second one costs more than
// it saves.
func threads(m int) int {
	if m < 512 {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// solveLower overwrites b, M×cols, by L⁻¹b. Columns do not affect each other,
// not even in the last bit.
func solveLower(l []float64, m int, b []float64, cols int) {
	if m == 0 || cols == 0 {
		return
	}
	blocked.SolveLower(1, false, blocked.New(m, m, l), blocked.New(m, cols, b))
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

// score is ℓ̃ for the residual k(x, x) − ‖L⁻¹k_J(x)‖², clamped to (0, 1] against
// rounding. It is 0 if k(x, x) = 0.
func score(residual, diag, ridge float64) float64 {
	return min(max(residual, diag*0x1p-50)/ridge, 1)
}

// selfScores returns ℓ̃_J(x_j, λ) of the points J themselves. It overwrites
// gram = K_JJ. With R = λnA,
//
//	K − K(K + R)⁻¹K = R − R(K + R)⁻¹R,
//
// and the right-hand side needs no second matrix. It loses digits only when R is far above K.
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
		blocked.SolveLower(threads(m), false, blocked.New(m, m, gram), blocked.New(m, m, k))
		return columnScores(k, diag, ridge), nil
	}
	norms := inverseNorms(gram, m) // ((K + R)⁻¹)_jj = ‖L⁻¹e_j‖²
	out := make([]float64, m)
	for j := range out {
		rj := r[j] + jitter
		out[j] = score(rj-rj*rj*norms[j], diag[j], ridge)
	}
	return out, nil
}

// inverseNorms returns ‖L⁻¹e_j‖² for all j. Column j of L⁻¹ is 0 above row j, so that a block of
// columns needs the rows from its first on, m³/3 operations in all.
func inverseNorms(l []float64, m int) []float64 {
	const width = 64
	norms := make([]float64, m)
	whole := blocked.New(m, m, l)
	space := workspaces.Get().(*workspace)
	defer workspaces.Put(space)
	unit := space.floats(min(width, m) * m)
	for j := 0; j < m; j += width {
		w := min(width, m-j)
		b := blocked.New(m-j, w, unit[:(m-j)*w])
		clear(b.Data)
		for i := range w {
			b.Data[i*w+i] = 1
		}
		blocked.SolveLower(threads(m), false, whole.Sub(j, j, m, m), b)
		addSquares(norms[j:j+w], b.Data)
	}
	return norms
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
