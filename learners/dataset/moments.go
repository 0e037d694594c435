package dataset

import "math"

// moments holds mean and spread of a stream of numbers with weights (Welford, Note on a
// method for calculating corrected sums of squares and products, Technometrics 1962).
type moments struct {
	n        float64 // the sum of the weights
	mean, m2 float64
	min, max float64
}

func (m *moments) add(v, w float64) {
	if m.n == 0 {
		m.min, m.max = v, v
	}
	m.n += w
	m.min, m.max = min(m.min, v), max(m.max, v)
	delta := v - m.mean
	m.mean += w * delta / m.n
	m.m2 += w * delta * (v - m.mean)
}

// addZeros adds zeros with the sum k of their weights.
func (m *moments) addZeros(k float64) {
	if !(k > 0) {
		return
	}
	if m.n == 0 {
		m.min, m.max = 0, 0
	}
	m.min, m.max = min(m.min, 0), max(m.max, 0)
	n := m.n + k
	m.m2 += m.mean * m.mean * m.n * k / n
	m.mean *= m.n / n
	m.n = n
}

func (m *moments) constant() bool { return m.n == 0 || m.min == m.max }

// scale returns the standard deviation, or half the range where squares under-
// or overflow. It is positive unless the numbers are constant.
func (m *moments) scale() float64 {
	s := math.Sqrt(m.m2 / m.n)
	if s > 1e-150 && s <= math.MaxFloat64 {
		return s
	}
	if s = m.max/2 - m.min/2; s > 0 {
		return s
	}
	return m.max - m.min
}

// center returns the mean, or the middle of the range where sums overflow.
func (m *moments) center() float64 {
	if m.mean-m.mean == 0 {
		return min(max(m.mean, m.min), m.max)
	}
	return m.min/2 + m.max/2
}
