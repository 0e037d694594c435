package kernel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/blocked"
)

// AddLogGrads adds Σ_ij w_ij ∂k(x_i, y_j)/∂log θ over all rows of x and y to dst, which has
// length p. w is n×m, row-major. It is the sum of [Tunable].AddLogGrad up to rounding the
// squares of inputs, in length scales and from the mean of y.
//
// It fills two n×m matrices and multiplies one by y, or one for the Laplace kernel, of which it sums the
// distances. It returns false and has done nothing if numbers overflow, or if k is not a Gaussian,
// Matérn or Laplace [Base], also [Scaled], or the rows are not dense float64.
func AddLogGrads(dst []float64, k Tunable, w []float64, x, y Rows, s *Scratch) bool {
	b, ok := k.(blockTunable)
	if ok {
		_, ok = b.addLogGrads(dst, 1, w, x, y, s)
	}
	return ok
}

// blockTunable is a Tunable with a faster sum over a block of pairs, for some of its parameters.
type blockTunable interface {
	// addLogGrads is AddLogGrads with weights f·w. It also returns Σ_ij f·w_ij k(x_i, y_j).
	addLogGrads(dst []float64, f float64, w []float64, x, y Rows, s *Scratch) (sum float64, ok bool)
}

func (k *Scaled) addLogGrads(dst []float64, f float64, w []float64, x, y Rows, s *Scratch) (sum float64, ok bool) {
	inner, ok := k.k.(blockTunable)
	if !ok {
		return 0, false
	}
	if sum, ok = inner.addLogGrads(dst[1:], f*k.factor, w, x, y, s); ok {
		dst[0] += sum
	}
	return sum, ok
}

// addLaplaceGrads is addLogGrads for the Laplace kernel, whose gradient is Σ_ij f·w_ij k(x_i, y_j) |x_ic − y_jc|/ℓ_c.
// It costs O(nmd).
func (k *Base) addLaplaceGrads(dst []float64, f float64, w []float64, x, y *Points[float64], s *Scratch) (sum float64, ok bool) {
	defer s.Release(s.Mark())
	values, g := s.Floats(x.n*y.n), s.Floats(y.d)
	clear(g)
	Prepare(k, y).Fill(values, y.n, x, 0, x.n, s)
	for i := range x.n {
		row := x.Row(i)
		for j, v := range values[i*y.n:][:y.n] {
			v *= f * w[i*y.n+j]
			sum += v
			for c, z := range y.Row(j) {
				g[c] += v * math.Abs(row[c]-z)
			}
		}
	}
	for c, z := range g {
		if z *= k.st.weights[c%len(k.scales)]; z-z != 0 {
			return 0, false
		}
		g[c] = z
	}
	for c, z := range g {
		dst[c%len(k.scales)] += z
	}
	return sum, true
}

// addLogGrads computes, with S_ij = −2f·w_ij φ'(s_ij),
//
//	Σ_ij S_ij (x_ic − y_jc)² = Σ_i x_ic (x_ic Σ_j S_ij − 2 (S·y)_ic) + Σ_j y_jc² Σ_i S_ij,
//
// of which the gradient is the product with ℓ_c⁻².
func (k *Base) addLogGrads(dst []float64, f float64, w []float64, x, y Rows, s *Scratch) (sum float64, ok bool) {
	a, dense := x.(*Points[float64])
	b, packed := y.(*Points[float64])
	switch {
	case !dense || !packed:
		return 0, false
	case k.st.kind == manhattan:
		return k.addLaplaceGrads(dst, f, w, a, b, s)
	case k.phi.slopeKernel == nil:
		return 0, false
	}
	other, factor, err := k.phi.slopeKernel(k)
	if err != nil {
		return 0, false // length scales at the limits of numbers
	}
	defer s.Release(s.Mark())
	n, m, d := a.n, b.n, b.d
	slopes := s.Floats(n * m)
	Prepare(k, y).Fill(slopes, m, x, 0, n, s)
	sum = f * blocked.Dot(w, slopes)
	if other != k {
		Prepare(other, y).Fill(slopes, m, x, 0, n, s)
	}
	if k.phi.toSlopes != nil {
		k.phi.toSlopes(slopes)
	}
	columns, g := s.Floats(m), s.Floats(d)
	clear(columns)
	clear(g)
	for i := range n {
		row := slopes[i*m:][:m]
		for j, h := range w[i*m:][:m] {
			row[j] *= h
			columns[j] += row[j]
		}
	}
	// The last column of v is 1, so that of the product has the sums of rows.
	u, v, product := s.Floats(n*d), s.Floats(m*(d+1)), s.Floats(n*(d+1))
	mean := centre(b.packed())
	for i := range n {
		for c, z := range a.Row(i) {
			u[i*d+c] = z - mean[c]
		}
	}
	for j := range m {
		row := v[j*(d+1):][:d+1]
		for c, z := range b.Row(j) {
			z -= mean[c]
			row[c] = z
			g[c] += z * z * columns[j]
		}
		row[d] = 1
	}
	blocked.Gemm(1, false, blocked.New(n, m, slopes), false, blocked.New(m, d+1, v), 1, 0, blocked.New(n, d+1, product))
	for i := range n {
		row := product[i*(d+1):][:d+1]
		for c, z := range u[i*d:][:d] {
			g[c] += z * (z*row[d] - 2*row[c])
		}
	}
	for c, z := range g {
		if g[c] = f * factor * z; g[c]-g[c] != 0 {
			return 0, false // inputs, or a value, that are too large
		}
	}
	for c, z := range g {
		c %= len(k.scales)
		dst[c] += z * k.st.weights[c]
	}
	return sum, true
}
