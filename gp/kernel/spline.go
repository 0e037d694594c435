package kernel

import "math"

const (
	// maxBernoulli is the largest q with a closed form here. Beyond it the series needs
	// few terms.
	maxBernoulli = 10
	// maxDefaultTerms limits the series of NewSpline when terms is 0.
	maxDefaultTerms = 1500
	// maxTerms limits it always, so that a stored Spec costs little to read.
	maxTerms = 1 << 16
)

var splineFamily = Family{
	Name: "spline", Params: []string{"q", "terms"},
	build: func(p *params, _ []float64) (*Base, error) { return NewSpline(p.number("q"), p.integer("terms")) },
}

// NewSpline returns the periodic spline kernel of order q > 1 on the circle [0, 1), for
// d = 1. For more coordinates, restrict and multiply.
//
//	Λ_q(x, z) = Σ_{k≥1} 2 cos(2πk(x − z))/k^q.
//
// The constant k = 0 is left out, so that every function of its space has mean 0. Its main
// property is ⟨Λ_q(x, ·), Λ_q'(z, ·)⟩ = Λ_{q+q'}(x, z) in L² of the uniform distribution.
// κ² = 2ζ(q).
//
// With terms = 0 and q = 2, 4, 6, 8 or 10 it is the Bernoulli polynomial
//
//	Λ_q(x, z) = (−1)^{q/2−1} (2π)^q/q! · B_q({x − z}).
//
// Otherwise it is the series with the given number of terms, which is itself a kernel, at most
// 2·terms^{1−q}/(q−1) below Λ_q in absolute value. terms = 0 means as many as double precision
// needs, at most 1500. One evaluation costs O(terms). Neither q nor terms is tunable.
//
// The source is Pillaud-Vivien, Rudi and Bach (2018), §5, which does not state that
// k = 0 is excluded.
func NewSpline(q float64, terms int) (*Base, error) {
	if !(q > 1) || math.IsInf(q, 1) {
		return nil, parameterError("spline", "q", q, "> 1 and finite")
	}
	if terms < 0 || terms > maxTerms {
		return nil, parameterError("spline", "terms", float64(terms), "0 to 65536")
	}
	var at, slope func(t float64) float64
	if half := q / 2; terms == 0 && q <= maxBernoulli && half == math.Trunc(half) {
		at, slope = bernoulliSpline(int(q))
	} else {
		at, slope = seriesSpline(q, terms)
	}
	return newUnscaled("spline", manhattan, 1, profile{
		at: func(s float64) float64 {
			t, _ := circleDistance(s)
			return at(t)
		},
		slope: func(s float64) float64 {
			t, sign := circleDistance(s)
			return sign * slope(t)
		},
		bound: at(0),
		shape: []shapeParameter{{Parameter{"q", q}, true}, {Parameter{"terms", float64(terms)}, true}},
	}), nil
}

// circleDistance maps s = |x − z| to t = the distance on the circle, at most
// 1/2, and the sign of dt/ds. All spline kernels are even in x − z.
func circleDistance(s float64) (t, sign float64) {
	t = s - math.Floor(s)
	if t > 0.5 {
		return 1 - t, -1
	}
	return t, 1
}

// bernoulliSpline is the closed form for even q.
func bernoulliSpline(q int) (at, slope func(t float64) float64) {
	factor := -1.0
	if q/2%2 == 1 {
		factor = 1
	}
	for i := 1; i <= q; i++ {
		factor *= 2 * math.Pi / float64(i)
	}
	b := bernoulliNumbers(q)
	value, derivative := make([]float64, q+1), make([]float64, q) // coefficients, constant first
	binomial := 1.0                                               // (q choose k)
	for k := 0; k <= q; k++ {
		value[k] = factor * binomial * b[q-k]
		if k > 0 {
			derivative[k-1] = float64(k) * value[k]
		}
		binomial *= float64(q-k) / float64(k+1)
	}
	return func(t float64) float64 { return horner(value, t) }, func(t float64) float64 { return horner(derivative, t) }
}

// bernoulliNumbers returns B_0 … B_n with B_1 = −1/2, from
// Σ_{k≤m} (m+1 choose k) B_k = 0.
func bernoulliNumbers(n int) []float64 {
	b := make([]float64, n+1)
	b[0] = 1
	for m := 1; m <= n; m++ {
		sum, binomial := 0.0, 1.0
		for k := range m {
			sum += binomial * b[k]
			binomial *= float64(m+1-k) / float64(k+1)
		}
		b[m] = -sum / float64(m+1)
	}
	for m := 3; m <= n; m += 2 {
		b[m] = 0 // exactly
	}
	return b
}

func horner(coefficients []float64, t float64) float64 {
	sum := 0.0
	for k := len(coefficients) - 1; k >= 0; k-- {
		sum = sum*t + coefficients[k]
	}
	return sum
}

// seriesSpline is the truncated series. It rotates e^{2πikt} from term to term, with an error
// of O(terms·ε).
func seriesSpline(q float64, terms int) (at, slope func(t float64) float64) {
	if terms == 0 {
		terms = int(min(maxDefaultTerms, math.Ceil(math.Pow(0x1p-54, -1/(q-1)))))
	}
	coef := make([]float64, terms) // 2/k^q at k−1
	for k := range coef {
		coef[k] = 2 * math.Pow(float64(k+1), -q)
	}
	at = func(t float64) float64 {
		sin1, cos1 := math.Sincos(2 * math.Pi * t)
		sum, c, d := 0.0, cos1, sin1
		for _, a := range coef {
			sum += a * c
			c, d = c*cos1-d*sin1, d*cos1+c*sin1
		}
		return sum
	}
	slope = func(t float64) float64 {
		sin1, cos1 := math.Sincos(2 * math.Pi * t)
		sum, c, d := 0.0, cos1, sin1
		for k, a := range coef {
			sum -= a * 2 * math.Pi * float64(k+1) * d
			c, d = c*cos1-d*sin1, d*cos1+c*sin1
		}
		return sum
	}
	return at, slope
}
