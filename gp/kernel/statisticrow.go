package kernel

import "math"

// fillRow sets s_j = s(x, y_j) for the rows of the packed len(s)×d matrix y.
func (st *Statistic) fillRow(s, x, y []float64) {
	if len(st.Weights) == 1 {
		switch st.Kind {
		case SquaredDistance:
			squaredRow(s, x, y)
		case Manhattan:
			manhattanRow(s, x, y)
		case InnerProduct:
			innerRow(s, x, y)
		default:
			mismatchesRow(s, x, y, []float64{1})
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
	case Manhattan:
		weightedManhattanRow(s, x, y, st.Weights)
	case InnerProduct:
		weightedInnerRow(s, x, y, st.Weights)
	default:
		mismatchesRow(s, x, y, st.Weights)
	}
}

// The row functions below take four pairs at a time. Four independent sums hide the
// latency of an addition, and each is still in coordinate order.

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

func manhattanRow(s, x, y []float64) {
	d := len(x)
	j := 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			s0 += math.Abs(v - y0[c])
			s1 += math.Abs(v - y1[c])
			s2 += math.Abs(v - y2[c])
			s3 += math.Abs(v - y3[c])
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			sum += math.Abs(x[c] - v)
		}
		s[j] = sum
	}
}

func weightedManhattanRow(s, x, y, w []float64) {
	d := len(x)
	w = w[:d]
	j := 0
	for ; j+4 <= len(s); j += 4 {
		y0, y1, y2, y3 := four(y[j*d:], d)
		var s0, s1, s2, s3 float64
		for c, v := range x {
			wc := w[c]
			s0 += math.Abs(v-y0[c]) * wc
			s1 += math.Abs(v-y1[c]) * wc
			s2 += math.Abs(v-y2[c]) * wc
			s3 += math.Abs(v-y3[c]) * wc
		}
		s[j], s[j+1], s[j+2], s[j+3] = s0, s1, s2, s3
	}
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			sum += math.Abs(x[c]-v) * w[c]
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

// mismatchesRow adds weights w, one or one for each coordinate, without branches,
// because no processor can predict which categories are equal.
func mismatchesRow(s, x, y, w []float64) {
	d := len(x)
	j := 0
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
	for ; j < len(s); j++ {
		sum := 0.0
		for c, v := range y[j*d : (j+1)*d] {
			sum += unless(x[c] == v, math.Float64bits(w[min(c, len(w)-1)]))
		}
		s[j] = sum
	}
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
