package sketch

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/stream"
)

// By Bochner's theorem a stationary kernel with k(x, x) = 1 is the mean of
// cos(wᵀ(x − y)) over a random frequency w. For r = ‖(x − y)/ℓ‖ these are, with z ~
// N(0, I),
//
//	exp(−r²/2)               w = z
//	Matérn-ν                 w = z√(2ν/χ²_2ν), multivariate t of 2ν degrees
//	rational quadratic       w = z√g, g ~ Γ(α, rate α)
//	exp(−Σ|x_c − y_c|/ℓ_c)   w_c independent Cauchy
//
// each over ℓ. All but the last are isotropic, z times a random radius.

// stationary are the kernels to which Fourier features converge.
var stationary = []string{"gaussian", "laplace", "matern12", "matern32", "matern52", "rational_quadratic"}

// isotropic are the kernels whose frequencies have a uniform direction.
var isotropic = []string{"gaussian", "matern12", "matern32", "matern52", "rational_quadratic"}

// stretch draws the factor of z.
func (t *target) stretch(rng *rand.Rand) float64 {
	switch t.base.Name {
	case "matern12":
		return studentStretch(1, rng)
	case "matern32":
		return studentStretch(3, rng)
	case "matern52":
		return studentStretch(5, rng)
	case "rational_quadratic":
		alpha := t.base.Params["alpha"]
		return math.Sqrt(gamma(alpha, rng) / alpha)
	}
	return 1
}

// studentStretch draws √(f/χ²_f).
func studentStretch(f int, rng *rand.Rand) float64 {
	square := 0.0
	for range f {
		z := rng.NormFloat64()
		square += z * z
	}
	return math.Sqrt(float64(f) / square)
}

// gamma draws from Γ(shape, 1) by Marsaglia and Tsang, A simple method for generating
// gamma variables, 2000.
func gamma(shape float64, rng *rand.Rand) float64 {
	if shape < 1 {
		return gamma(shape+1, rng) * math.Pow(1-rng.Float64(), 1/shape)
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

// frequency draws w for features number j.
func (t *target) frequency(w []float64, rng *rand.Rand) {
	if t.base.Name == "laplace" {
		for c := range w {
			w[c] = math.Tan(math.Pi*(rng.Float64()-0.5)) / t.lengthScale(c)
		}
		return
	}
	for c := range w {
		w[c] = rng.NormFloat64()
	}
	s := t.stretch(rng)
	for c := range w {
		w[c] *= s / t.lengthScale(c)
	}
}

// rng returns the stream of frequency j, or of block j of frequencies.
func (t *target) rng(j int) *rand.Rand {
	return stream.New(stream.Derive(t.Seed, "sketch/"+string(t.Family), uint64(j)))
}
