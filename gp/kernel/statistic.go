package kernel

import "math"

// statisticKind is the kind of a [statistic].
type statisticKind int

// These are the kinds, with weights w_c.
const (
	squaredDistance statisticKind = iota // Σ_c w_c (x_c − y_c)²
	manhattan                            // Σ_c w_c |x_c − y_c|
	innerProduct                         // Σ_c w_c x_c y_c
	mismatches                           // Σ_c w_c [x_c ≠ y_c]
)

// statistic is the number of a pair of which a [Base] kernel is a function. It has one weight
// for all coordinates or one for each. Distances are sums of direct differences, exactly 0 for
// equal inputs and never negative. An [Operator] may compute them the other way, see [Distances].
type statistic struct {
	kind    statisticKind
	weights []float64
	norms   bool // φ also needs s(x, x) and s(y, y)
}

// one is the weight inside the sums of a statistic with a common weight.
var one = []float64{1}

// inner returns the weights inside the sums, and the factor of the sums.
func (st *statistic) inner() (w []float64, factor float64) {
	if len(st.weights) == 1 {
		return one, st.weights[0]
	}
	return st.weights, 1
}

// pair returns s(a, b). It sums in the order of the coordinates, like fillRow.
func (st *statistic) pair(a, b vector) float64 {
	weights, factor := st.inner()
	if !a.sparse && !b.sparse && a.f32 == nil && b.f32 == nil {
		return st.kind.sum(a.f64, b.f64, weights) * factor
	}
	sum := 0.0
	for w := walk(a, b); ; {
		c, x, y, ok := w.next()
		if !ok {
			return sum * factor
		}
		sum += st.kind.term(x, y) * weights[min(c, len(weights)-1)]
	}
}

// sum returns Σ_c w_c·term, where w has one number or one for each coordinate.
func (k statisticKind) sum(x, y, w []float64) float64 {
	sum := 0.0
	for c, v := range x {
		sum += k.term(v, y[c]) * w[min(c, len(w)-1)]
	}
	return sum
}

// term is the contribution of one coordinate, without its weight.
func (k statisticKind) term(x, y float64) float64 {
	switch k {
	case squaredDistance:
		return (x - y) * (x - y)
	case manhattan:
		return math.Abs(x - y)
	case innerProduct:
		return x * y
	}
	if x != y {
		return 1
	}
	return 0
}

// isDistance tells whether the statistic is 0 for equal numbers and grows with their difference.
func (k statisticKind) isDistance() bool { return k == squaredDistance || k == manhattan }

// weightPower returns the p with w = ℓ^−p. With it the kernel is a function of x/ℓ where
// coordinates have a length.
func (k statisticKind) weightPower() int {
	if k == squaredDistance || k == innerProduct {
		return 2
	}
	return 1
}

// fillRow sets s_j = s(x, y_j) for the rows of the packed len(s)×d matrix y.
func (st *statistic) fillRow(s, x, y []float64) {
	j, d := 0, len(x)
	w, factor := st.inner()
	switch st.kind {
	case squaredDistance:
		j = squaredRow(s, x, y, w)
	case mismatches:
		j = mismatchesRow(s, x, y, w)
	}
	for ; j < len(s); j++ {
		s[j] = st.kind.sum(x, y[j*d:(j+1)*d], w)
	}
	if factor != 1 {
		for j := range s {
			s[j] *= factor
		}
	}
}

// squaredRow takes four pairs at a time, which hides the latency of an addition. Each sum is
// still in coordinate order. It returns how many pairs it has done.
func squaredRow(s, x, y, w []float64) int {
	d, j := len(x), 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			wc := w[min(c, len(w)-1)]
			e0, e1, e2, e3 := v-y0[c], v-y1[c], v-y2[c], v-y3[c]
			s0 += e0 * e0 * wc
			s1 += e1 * e1 * wc
			s2 += e2 * e2 * wc
			s3 += e3 * e3 * wc
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	return j
}

// mismatchesRow does the same without branches, because no processor can predict which
// categories are equal.
func mismatchesRow(s, x, y, w []float64) int {
	d, j := len(x), 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			wc := math.Float64bits(w[min(c, len(w)-1)])
			s0 += unless(v == y0[c], wc)
			s1 += unless(v == y1[c], wc)
			s2 += unless(v == y2[c], wc)
			s3 += unless(v == y3[c], wc)
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	return j
}

// unless returns the number with the given bits, or 0 if equal.
func unless(equal bool, bits uint64) float64 {
	var mask uint64
	if equal {
		mask = 1
	}
	return math.Float64frombits((mask - 1) & bits)
}

// four returns the first four rows of the packed matrix y.
func four(y []float64, d int) (y0, y1, y2, y3 []float64) {
	return y[:d:d], y[d : 2*d : 2*d], y[2*d : 3*d : 3*d], y[3*d : 4*d : 4*d]
}
