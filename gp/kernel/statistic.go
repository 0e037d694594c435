package kernel

import "math"

// StatisticKind is the kind of number that a [Statistic] takes of a pair.
type StatisticKind int

// The kinds of pair statistics, with weights w_c.
const (
	SquaredDistance StatisticKind = iota // Σ_c w_c (x_c − y_c)²
	Manhattan                            // Σ_c w_c |x_c − y_c|
	InnerProduct                         // Σ_c w_c x_c y_c
	Mismatches                           // Σ_c w_c [x_c ≠ y_c]
)

// Statistic is the one number per pair of which an [Elementwise] kernel is a
// function. Weights has length 1 (the same for every coordinate) or d.
//
// Distances are sums of direct differences, not ‖x‖² + ‖y‖² − 2xᵀy: they lose
// nothing to cancellation, are exactly 0 for equal inputs and never negative.
type Statistic struct {
	Kind    StatisticKind
	Weights []float64
	Norms   bool // Map also needs s(x, x) and s(y, y)
}

// pair returns s(a, b). It sums in the order of the coordinates, as fillRow.
func (st *Statistic) pair(a, b vector) float64 {
	if !a.sparse && !b.sparse && a.f32 == nil && b.f32 == nil {
		return st.densePair(a.f64, b.f64)
	}
	uniform := len(st.Weights) == 1
	sum := 0.0
	for w := walk(a, b); ; {
		c, x, y, ok := w.next()
		if !ok {
			break
		}
		t := st.Kind.term(x, y)
		if !uniform {
			t *= st.Weights[c]
		}
		sum += t
	}
	if uniform {
		sum *= st.Weights[0]
	}
	return sum
}

// densePair is pair for dense float64 vectors.
func (st *Statistic) densePair(x, y []float64) float64 {
	var s [1]float64
	st.fillRow(s[:], x, y)
	return s[0]
}

// term is the contribution of one coordinate, without its weight.
func (k StatisticKind) term(x, y float64) float64 {
	switch k {
	case SquaredDistance:
		return (x - y) * (x - y)
	case Manhattan:
		return math.Abs(x - y)
	case InnerProduct:
		return x * y
	case Mismatches:
		if x != y {
			return 1
		}
		return 0
	}
	panic("kernel: precondition: unknown statistic")
}

// slope returns the derivative of term with respect to x.
func (k StatisticKind) slope(x, y float64) float64 {
	switch k {
	case SquaredDistance:
		return 2 * (x - y)
	case Manhattan:
		switch {
		case x > y:
			return 1
		case x < y:
			return -1
		}
		return 0
	case InnerProduct:
		return y
	default:
		return 0
	}
}

// weightPower is the p with w = ℓ^−p, so that the kernel is a function of x/ℓ
// where lengths have a meaning.
func (k StatisticKind) weightPower() int {
	switch k {
	case SquaredDistance, InnerProduct:
		return 2
	default:
		return 1
	}
}

// fillRow sets s_j = s(x, y_j) for the rows of the packed len(s)×d matrix y.
func (st *Statistic) fillRow(s, x, y []float64) {
	if len(st.Weights) == 1 {
		switch st.Kind {
		case SquaredDistance:
			squaredRow(s, x, y)
		case InnerProduct:
			innerRow(s, x, y)
		default:
			st.plainRow(s, x, y)
		}
		if w := st.Weights[0]; w != 1 {
			for j := range s {
				s[j] *= w
			}
		}
		return
	}
	switch st.Kind {
	case SquaredDistance:
		weightedSquaredRow(s, x, y, st.Weights)
	case InnerProduct:
		weightedInnerRow(s, x, y, st.Weights)
	default:
		st.plainRow(s, x, y)
	}
}

// plainRow is fillRow for every kind, one pair at a time, without the weight
// when that is uniform.
func (st *Statistic) plainRow(s, x, y []float64) {
	d := len(x)
	uniform := len(st.Weights) == 1
	for j := range s {
		sum := 0.0
		for c, yc := range y[j*d : (j+1)*d] {
			t := st.Kind.term(x[c], yc)
			if !uniform {
				t *= st.Weights[c]
			}
			sum += t
		}
		s[j] = sum
	}
}

// The row functions below take four pairs at a time: four independent sums
// hide the latency of an addition, and each is still in coordinate order.

func squaredRow(s, x, y []float64) {
	d := len(x)
	j := 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			e0, e1, e2, e3 := v-y0[c], v-y1[c], v-y2[c], v-y3[c]
			s0 += e0 * e0
			s1 += e1 * e1
			s2 += e2 * e2
			s3 += e3 * e3
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			e := x[c] - v
			sum += e * e
		}
		s[j] = sum
	}
}

func weightedSquaredRow(s, x, y, w []float64) {
	d := len(x)
	w = w[:d]
	j := 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			wc := w[c]
			e0, e1, e2, e3 := v-y0[c], v-y1[c], v-y2[c], v-y3[c]
			s0 += e0 * e0 * wc
			s1 += e1 * e1 * wc
			s2 += e2 * e2 * wc
			s3 += e3 * e3 * wc
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			e := x[c] - v
			sum += e * e * w[c]
		}
		s[j] = sum
	}
}

func innerRow(s, x, y []float64) {
	d := len(x)
	j := 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			s0 += v * y0[c]
			s1 += v * y1[c]
			s2 += v * y2[c]
			s3 += v * y3[c]
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			sum += x[c] * v
		}
		s[j] = sum
	}
}

func weightedInnerRow(s, x, y, w []float64) {
	d := len(x)
	w = w[:d]
	j := 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			wc := w[c]
			s0 += v * y0[c] * wc
			s1 += v * y1[c] * wc
			s2 += v * y2[c] * wc
			s3 += v * y3[c] * wc
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			sum += x[c] * v * w[c]
		}
		s[j] = sum
	}
}

// four returns the first four rows of the packed matrix y.
func four(y []float64, d int) (y0, y1, y2, y3 []float64) {
	return y[:d:d], y[d : 2*d : 2*d], y[2*d : 3*d : 3*d], y[3*d : 4*d : 4*d]
}
