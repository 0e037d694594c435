package bbob

import "math"

// rotatedEllipsoid is f10.
func rotatedEllipsoid(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r, weights := place(d, seed), rotation(d, seed+turn), powers(1e6, d)
	return func(x []float64) float64 {
		return squares(oscillated(r.times(minus(x, opt))), weights)
	}, opt
}

// first returns weights that are a for the first coordinate and b for the others.
func first(a, b float64, d int) []float64 {
	w := make([]float64, d)
	for i := range w {
		w[i] = b
	}
	w[0] = a
	return w
}

// discus is f11.
func discus(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r, weights := place(d, seed), rotation(d, seed+turn), first(1e6, 1, d)
	return func(x []float64) float64 {
		return squares(oscillated(r.times(minus(x, opt))), weights)
	}, opt
}

// bentCigar is f12.
func bentCigar(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r, weights := place(d, seed+turn), rotation(d, seed+turn), first(1, 1e6, d)
	return func(x []float64) float64 {
		return squares(r.times(asymmetric(r.times(minus(x, opt)), 0.5)), weights)
	}, opt
}

// sharpRidge is f13.
func sharpRidge(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, others := place(d, seed), first(0, 1, d)
	m := sandwich(rotation(d, seed+turn), powers(math.Sqrt(10), d), rotation(d, seed))
	return func(x []float64) float64 {
		z := m.times(minus(x, opt))
		return z[0]*z[0] + 100*math.Sqrt(squares(z, others))
	}, opt
}

// differentPowers is f14.
func differentPowers(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r := place(d, seed), rotation(d, seed+turn)
	return func(x []float64) float64 {
		sum := 0.0
		for i, v := range r.times(minus(x, opt)) {
			sum += math.Pow(math.Abs(v), 2+4*part(i, d))
		}
		return math.Sqrt(sum)
	}, opt
}
