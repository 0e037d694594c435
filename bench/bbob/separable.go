package bbob

import (
	"math"
	"slices"
)

// sphere is f1.
func sphere(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, ones := place(d, seed), powers(1, d)
	return func(x []float64) float64 { return squares(minus(x, opt), ones) }, opt
}

// ellipsoid is f2.
func ellipsoid(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, weights := place(d, seed), powers(1e6, d)
	return func(x []float64) float64 { return squares(oscillated(minus(x, opt)), weights) }, opt
}

// rastrigin is f3.
func rastrigin(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, lambda := place(d, seed), powers(math.Sqrt(10), d)
	return func(x []float64) float64 {
		return waves(scaled(asymmetric(oscillated(minus(x, opt)), 0.2), lambda))
	}, opt
}

// waves is Rastrigin's function 10(d − Σ cos 2πz_i) + |z|².
func waves(z []float64) float64 {
	cosines, square := 0.0, 0.0
	for _, v := range z {
		cosines += math.Cos(2 * math.Pi * v)
		square += v * v
	}
	return 10*(float64(len(z))-cosines) + square
}

// buecheRastrigin is f4.
func buecheRastrigin(d int, seed int64) (func(x []float64) float64, []float64) {
	opt, lambda := place(d, seed), powers(math.Sqrt(10), d)
	for i := 0; i < d; i += 2 {
		opt[i] = math.Abs(opt[i])
	}
	return func(x []float64) float64 {
		z := scaled(oscillated(minus(x, opt)), lambda)
		for i := 0; i < d; i += 2 {
			if z[i] > 0 {
				z[i] *= 10
			}
		}
		return waves(z) + 100*outside(x)
	}, opt
}

// linearSlope is f5.
func linearSlope(d int, seed int64) (func(x []float64) float64, []float64) {
	slope, opt := powers(10, d), slices.Repeat([]float64{Bound}, d)
	for i, v := range place(d, seed) {
		if v < 0 {
			slope[i], opt[i] = -slope[i], -opt[i]
		}
	}
	return func(x []float64) float64 {
		sum := 0.0
		for i, s := range slope {
			sum += math.Abs(s) * (Bound - min(Bound, math.Copysign(x[i], x[i]*s)))
		}
		return sum
	}, opt
}
