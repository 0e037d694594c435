package bbob

import "math"

// rotatedRastrigin is f15.
func rotatedRastrigin(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r := place(d, seed), rotation(d, seed+turn)
	m := sandwich(r, powers(math.Sqrt(10), d), rotation(d, seed))
	return func(x []float64) float64 {
		return waves(m.times(asymmetric(oscillated(r.times(minus(x, opt))), 0.2)))
	}, opt
}

// weierstrassTerms is the number of frequencies of f16.
const weierstrassTerms = 12

// weierstrass is f16.
func weierstrass(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r := place(d, seed), rotation(d, seed+turn)
	m := sandwich(r, powers(0.1, d), rotation(d, seed))
	least := fractal(0)
	return func(x []float64) float64 {
		sum := 0.0
		for _, v := range m.times(oscillated(r.times(minus(x, opt)))) {
			sum += fractal(v)
		}
		u := sum/float64(d) - least
		return 10*u*u*u + 10/float64(d)*outside(x)
	}, opt
}

// fractal is Σ_k 2^−k·cos(2π·3^k·(v + ½)).
func fractal(v float64) float64 {
	sum, a, b := 0.0, 1.0, 1.0
	for range weierstrassTerms {
		sum += a * math.Cos(2*math.Pi*(v+0.5)*b)
		a, b = a/2, b*3
	}
	return sum
}

// schaffers is f17 (condition 10) and f18 (condition 1000).
func schaffers(condition float64) recipe {
	return func(d int, seed int64) (func(x []float64) float64, []float64) {
		opt, r, q := place(d, seed), rotation(d, seed+turn), rotation(d, seed)
		lambda := powers(math.Sqrt(condition), d)
		return func(x []float64) float64 {
			z := scaled(q.times(asymmetric(r.times(minus(x, opt)), 0.5)), lambda)
			sum := 0.0
			for i := range d - 1 {
				s := z[i]*z[i] + z[i+1]*z[i+1]
				wave := math.Sin(50 * math.Pow(s, 0.1))
				sum += math.Sqrt(math.Sqrt(s)) * (1 + wave*wave)
			}
			sum /= float64(d - 1)
			return sum*sum + 10*outside(x)
		}, opt
	}
}

// griewankRosenbrock is f19.
func griewankRosenbrock(d int, seed int64) (func(x []float64) float64, []float64) {
	turned, opt := turnedAndMoved(d, seed)
	return func(x []float64) float64 {
		sum, z := 0.0, turned(x)
		for i := range d - 1 {
			s := bend(z[i], z[i+1])
			sum += s/4000 - math.Cos(s)
		}
		return 10 + 10*sum/float64(d-1)
	}, opt
}
