package bbob

import "math"

// matrix is a square matrix by rows.
type matrix [][]float64

func newMatrix(d int) matrix {
	m, all := make(matrix, d), make([]float64, d*d)
	for i := range m {
		m[i] = all[i*d : (i+1)*d]
	}
	return m
}

// rotation returns the orthogonal matrix of a seed. Normals are filled in by columns, and
// the columns are made orthonormal from left to right.
func rotation(d int, seed int64) matrix {
	m := newMatrix(d)
	for i, v := range normals(d*d, seed) {
		m[i%d][i/d] = v
	}
	for c := range d {
		for before := range c {
			along := m.columns(c, before)
			for _, row := range m {
				row[c] -= along * row[before]
			}
		}
		length := math.Sqrt(m.columns(c, c))
		for _, row := range m {
			row[c] /= length
		}
	}
	return m
}

// columns returns the inner product of two columns.
func (m matrix) columns(a, b int) float64 {
	sum := 0.0
	for _, row := range m {
		sum += row[a] * row[b]
	}
	return sum
}

// times returns m·x.
func (m matrix) times(x []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		for j, v := range row {
			out[i] += v * x[j]
		}
	}
	return out
}

// backTimes returns mᵀ·x.
func (m matrix) backTimes(x []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		for j, v := range row {
			out[j] += v * x[i]
		}
	}
	return out
}

// sandwich returns a·diag(middle)·b.
func sandwich(a matrix, middle []float64, b matrix) matrix {
	m := newMatrix(len(a))
	for i, row := range a {
		for k, v := range row {
			for j, w := range b[k] {
				m[i][j] += v * middle[k] * w
			}
		}
	}
	return m
}
