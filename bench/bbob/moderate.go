package bbob

import (
	"math"
	"slices"
)

// turn is added to a seed for the rotation R. Q has the seed itself.
const turn = 1_000_000

// attractiveSector is f6.
func attractiveSector(d int, seed int64) (func(x []float64) float64, []float64) {
	opt := place(d, seed)
	m := sandwich(rotation(d, seed+turn), powers(math.Sqrt(10), d), rotation(d, seed))
	return func(x []float64) float64 {
		sum := 0.0
		for i, v := range m.times(minus(x, opt)) {
			if v*opt[i] > 0 {
				v *= 100
			}
			sum += v * v
		}
		return math.Pow(oscillate(sum), 0.9)
	}, opt
}

// stepEllipsoid is f7.
func stepEllipsoid(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, r, q := place(d, seed), rotation(d, seed+turn), rotation(d, seed)
	lambda, weights := powers(math.Sqrt(10), d), powers(100, d)
	return func(x []float64) float64 {
		z := scaled(q.times(minus(x, opt)), lambda)
		first := z[0]
		for i, v := range z {
			if z[i] = round(v); math.Abs(v) <= 0.5 {
				z[i] = round(10*v) / 10
			}
		}
		return 0.1*max(math.Abs(first)*1e-4, squares(r.times(z), weights)) + outside(x)
	}, opt
}

// valley is Rosenbrock's function of z, 0 at (1, …, 1).
func valley(z []float64) float64 {
	sum := 0.0
	for i := range len(z) - 1 {
		sum += bend(z[i], z[i+1])
	}
	return sum
}

// bend is one term of Rosenbrock's function.
func bend(a, b float64) float64 {
	u, v := a*a-b, a-1
	return 100*u*u + v*v
}

// stretch is the scale of Rosenbrock's functions.
func stretch(d int) float64 { return max(1, math.Sqrt(float64(d))/8) }

// rosenbrock is f8.
func rosenbrock(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, scale := place(d, seed), stretch(d)
	for i := range opt {
		opt[i] *= 0.75
	}
	return func(x []float64) float64 {
		z := minus(x, opt)
		for i := range z {
			z[i] = scale*z[i] + 1
		}
		return valley(z)
	}, opt
}

// rotatedRosenbrock is f9.
func rotatedRosenbrock(d int, seed int64) (func(x []float64) float64, []float64) {
	turned, opt := turnedAndMoved(d, seed)
	return func(x []float64) float64 { return valley(turned(x)) }, opt
}

// turnedAndMoved returns the map x ↦ max(1, √d/8)·R·x + ½ and the point that it maps to (1,
// …, 1).
func turnedAndMoved(d int, seed int64) (func(x []float64) []float64, []float64) {
	r, scale := rotation(d, seed), stretch(d)
	return func(x []float64) []float64 {
		z := r.times(x)
		for i := range z {
			z[i] = scale*z[i] + 0.5
		}
		return z
	}, r.backTimes(slices.Repeat([]float64{0.5 / scale}, d))
}
