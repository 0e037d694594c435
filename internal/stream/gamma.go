package stream

import (
	"math"
	"math/rand/v2"
)

// Gamma draws from Γ(shape, 1) by Marsaglia and Tsang, A simple method for generating
// gamma variables, 2000.
func Gamma(shape float64, rng *rand.Rand) float64 {
	if shape < 1 {
		return Gamma(shape+1, rng) * math.Pow(1-rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		z := rng.NormFloat64()
		v := 1 + c*z
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < z*z/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
