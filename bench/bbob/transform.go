package bbob

import "math"

// oscillate is T_osz.
func oscillate(x float64) float64 {
	switch {
	case x > 0:
		t := 10 * math.Log(x)
		return math.Exp(0.1 * (t + 0.49*(math.Sin(t)+math.Sin(0.79*t))))
	case x < 0:
		t := 10 * math.Log(-x)
		return -math.Exp(0.1 * (t + 0.49*(math.Sin(0.55*t)+math.Sin(0.31*t))))
	}
	return x
}

// oscillated applies T_osz to every coordinate, in place.
func oscillated(x []float64) []float64 {
	for i, v := range x {
		x[i] = oscillate(v)
	}
	return x
}

// asymmetric applies T_asy^beta, in place.
func asymmetric(x []float64, beta float64) []float64 {
	for i, v := range x {
		if v > 0 {
			x[i] = math.Pow(v, 1+beta*part(i, len(x))*math.Sqrt(v))
		}
	}
	return x
}

// part returns i/(d−1), which goes from 0 to 1 over the coordinates.
func part(i, d int) float64 { return float64(i) / float64(d-1) }

// powers returns base^(i/(d−1)). Λ^α is that of √α, and weights are that of the condition
// number.
func powers(base float64, d int) []float64 {
	out := make([]float64, d)
	for i := range out {
		out[i] = math.Pow(base, part(i, d))
	}
	return out
}

// minus returns x − y.
func minus(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v - y[i]
	}
	return out
}

// scaled multiplies x by w, in place.
func scaled(x, w []float64) []float64 {
	for i := range x {
		x[i] *= w[i]
	}
	return x
}

// squares returns Σ w_i·x_i².
func squares(x, w []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += w[i] * v * v
	}
	return sum
}

// outside is f_pen, the squared distance to the box.
func outside(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		if over := math.Abs(v) - Bound; over > 0 {
			sum += over * over
		}
	}
	return sum
}

// round rounds halves upwards, unlike math.Round.
func round(x float64) float64 { return math.Floor(x + 0.5) }
