package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Family describes the built-in kernels of a name that are not made of others. A new
// kernel declares one in its file and has a line in [Families].
type Family struct {
	// Name is the name in a [Spec].
	Name string
	// Points says that inputs are numbers, with a length scale for all coordinates or for each.
	Points bool
	// Params are the names of the parameters beside the length scales.
	Params []string
	// Spectrum draws frequencies of random features, or is nil if the kernel is not
	// stationary or has none.
	Spectrum *Spectrum

	build func(p *params, lengthScales []float64) (*Base, error)
}

// Families returns the families of built-in kernels. The caller must not change them.
func Families() []Family {
	return []Family{
		gaussianFamily, laplaceFamily, matern12Family, matern32Family, matern52Family, rationalQuadraticFamily,
		linearFamily, polynomialFamily, arcCosineFamily, hammingFamily,
	}
}

// FamilyNamed returns the family with this name.
func FamilyNamed(name string) (Family, bool) {
	all := Families()
	i := slices.IndexFunc(all, func(f Family) bool { return f.Name == name })
	if i < 0 {
		return Family{}, false
	}
	return all[i], true
}

// withScales builds a kernel without other parameters.
func withScales(build func(lengthScales ...float64) (*Base, error)) func(*params, []float64) (*Base, error) {
	return func(_ *params, l []float64) (*Base, error) { return build(l...) }
}

// Spectrum is the distribution of the random frequencies w of a stationary kernel with k(x, x) =
// 1, which is the mean of cos(wᵀ(x − y)) by Bochner's theorem. One of its fields is set.
type Spectrum struct {
	// Stretch draws the factor s of wℓ = s·z, z ~ N(0, I), for kernels of the Euclidean
	// distance. params are those of the [Spec].
	Stretch func(params map[string]float64, rng *rand.Rand) float64
	// Coordinate draws one of the independent coordinates of wℓ.
	Coordinate func(rng *rand.Rand) float64
}

// studentSpectrum is the multivariate t distribution of f degrees, with √(f/χ²_f).
func studentSpectrum(f int) *Spectrum {
	return &Spectrum{Stretch: func(_ map[string]float64, rng *rand.Rand) float64 {
		square := 0.0
		for range f {
			z := rng.NormFloat64()
			square += z * z
		}
		return math.Sqrt(float64(f) / square)
	}}
}
