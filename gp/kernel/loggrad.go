package kernel

// AddLogGradRow adds Σ_j w_j ∂k(x_i, y_j)/∂log θ over the first len(w) rows of y to dst,
// which has length p. It is the sum of [Tunable].AddLogGrad, in another order. A [Base]
// kernel of squared distances, also [Scaled], takes d operations for each dense row y_j
// and one exponential.
func AddLogGradRow(dst []float64, k Tunable, w []float64, x Rows, i int, y Rows, s *Scratch) {
	if r, ok := k.(rowTunable); ok {
		if _, ok := r.addLogGradRow(dst, w, x, i, y, s); ok {
			return
		}
	}
	for j, v := range w {
		if v != 0 {
			k.AddLogGrad(dst, v, x, i, y, j)
		}
	}
}

// rowTunable is a Tunable with a faster sum over a row.
type rowTunable interface {
	// addLogGradRow is AddLogGradRow. It also returns Σ_j w_j k(x_i, y_j). If ok is
	// false, it has done nothing.
	addLogGradRow(dst, w []float64, x Rows, i int, y Rows, s *Scratch) (sum float64, ok bool)
}

func (k *Scaled) addLogGradRow(dst, w []float64, x Rows, i int, y Rows, s *Scratch) (sum float64, ok bool) {
	inner, ok := k.k.(rowTunable)
	if !ok {
		return 0, false
	}
	defer s.Release(s.Mark())
	scaled := s.Floats(len(w))
	for j, v := range w {
		scaled[j] = k.factor * v
	}
	if sum, ok = inner.addLogGradRow(dst[1:], scaled, x, i, y, s); ok {
		dst[0] += sum
	}
	return sum, ok
}

func (k *Base) addLogGradRow(dst, w []float64, x Rows, i int, y Rows, s *Scratch) (sum float64, ok bool) {
	a, dense := x.(*Points[float64])
	b, packed := y.(*Points[float64])
	_, shaped := k.phi.(tunableProfile)
	if !dense || !packed || shaped || k.scales == nil || k.st.Kind != SquaredDistance || b.stride != b.d {
		return 0, false
	}
	defer s.Release(s.Mark())
	m, d := len(w), b.d
	values, slopes, g, u := s.Floats(m), s.Floats(m), s.Floats(d), a.Row(i)[:d]
	clear(g)
	radialBase{k}.FillSlopes(values, slopes, u, b.data[:m*d])
	for j, v := range w {
		sum += v * values[j]
		slopes[j] *= v
	}
	j := 0
	for ; j+4 <= m; j += 4 { // four rows for each load and store of g
		h0, h1, h2, h3 := slopes[j], slopes[j+1], slopes[j+2], slopes[j+3]
		y0, y1, y2, y3 := four(b.data[j*d:], d)
		for c, v := range u {
			e0, e1, e2, e3 := v-y0[c], v-y1[c], v-y2[c], v-y3[c]
			g[c] += (h0*e0*e0 + h1*e1*e1) + (h2*e2*e2 + h3*e3*e3)
		}
	}
	for ; j < m; j++ {
		addSquares(g, slopes[j], u, b.data[j*d:])
	}
	if !allFinite(g) { // a pair that is too far apart has the slope 0, and adds nothing
		clear(g)
		for j, h := range slopes {
			if h != 0 {
				addSquares(g, h, u, b.data[j*d:])
			}
		}
	}
	// The slopes are 2φ', and the derivative of a weight ℓ⁻² is −2ℓ⁻².
	for c, v := range g {
		c %= len(k.scales)
		dst[c] -= v * k.st.Weights[c]
	}
	return sum, true
}

// addSquares adds h(u_c − y_c)² to g.
func addSquares(g []float64, h float64, u, y []float64) {
	for c, z := range y[:len(u)] {
		e := u[c] - z
		g[c] += h * e * e
	}
}

func allFinite(g []float64) bool {
	for _, v := range g {
		if v-v != 0 {
			return false
		}
	}
	return true
}
