package kernel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

// The Matérn kernels have r² = Σ_c (x_c − y_c)²/ℓ_c², the Euclidean distance in units
// of the length scales, and κ² = 1. See Rasmussen and Williams, Gaussian Processes for
// Machine Learning, equation (4.17).

var (
	matern12Family = Family{Name: "matern12", Points: true, build: withScales(NewMatern12), Spectrum: studentSpectrum(1)}
	matern32Family = Family{Name: "matern32", Points: true, build: withScales(NewMatern32), Spectrum: studentSpectrum(3)}
	matern52Family = Family{Name: "matern52", Points: true, build: withScales(NewMatern52), Spectrum: studentSpectrum(5)}
)

// NewMatern12 returns k(x, y) = exp(−r), ν = 1/2. For the ℓ1 distance see [NewLaplace].
func NewMatern12(lengthScales ...float64) (*Base, error) {
	return newBase("matern12", squaredDistance, lengthScales, matern12)
}

// NewMatern32 returns k(x, y) = (1 + √3 r) exp(−√3 r), ν = 3/2.
func NewMatern32(lengthScales ...float64) (*Base, error) {
	return newBase("matern32", squaredDistance, lengthScales, matern32)
}

// NewMatern52 returns k(x, y) = (1 + √5 r + 5r²/3) exp(−√5 r), ν = 5/2.
func NewMatern52(lengthScales ...float64) (*Base, error) {
	return newBase("matern52", squaredDistance, lengthScales, matern52)
}

// matern12 is φ(s) = exp(−√s), s = r².
var matern12 = profile{
	at: func(s float64) float64 { return math.Exp(-math.Sqrt(s)) },
	slope: func(s float64) float64 {
		if s == 0 {
			return 0
		}
		r := math.Sqrt(s)
		return -math.Exp(-r) / (2 * r)
	},
	bound:  1,
	vector: func(f *panel.Function, w float64) { f.Func, f.P0 = simd.Matern12, w },
	// −2φ' = exp(−r)/r, as r = −log φ
	slopeKernel: func(k *Base) (*Base, float64, error) { return k, 1, nil },
	// No slope where r < 1e-8. It adds less than that to a gradient, and the distance is
	// lost in rounding.
	toSlopes: func(values []float64) {
		for j, v := range values {
			values[j] = 0
			if r := -math.Log(v); r >= 1e-8 && v > 0 {
				values[j] = v / r
			}
		}
	},
}

// matern32 is φ(s) = (1 + a) exp(−a), a = √(3s).
var matern32 = profile{
	at: func(s float64) float64 {
		a := math.Sqrt(3 * s)
		return polyExp(1+a, a)
	},
	slope:  func(s float64) float64 { return -1.5 * math.Exp(-math.Sqrt(3*s)) },
	bound:  1,
	vector: func(f *panel.Function, w float64) { f.Func, f.P0 = simd.Matern32, 3*w },
	// −2φ' = 3 exp(−√3 r)
	slopeKernel: func(k *Base) (*Base, float64, error) {
		other, err := NewMatern12(shorter(k.scales, 1./3)...)
		return other, 3, err
	},
}

// matern52 is φ(s) = (1 + a + a²/3) exp(−a), a = √(5s).
var matern52 = profile{
	at: func(s float64) float64 {
		a := math.Sqrt(5 * s)
		return polyExp(matern52Polynomial(a), a)
	},
	slope: func(s float64) float64 {
		a := math.Sqrt(5 * s)
		return -5. / 6 * polyExp(1+a, a)
	},
	bound: 1,
	both: func(s float64) (value, slope float64) {
		a := math.Sqrt(5 * s)
		e := math.Exp(-a)
		if e == 0 {
			return 0, 0
		}
		return matern52Polynomial(a) * e, -5. / 6 * (1 + a) * e
	},
	vector: func(f *panel.Function, w float64) { f.Func, f.P0 = simd.Matern52, 5*w },
	// −2φ' = 5/3 (1 + √5 r) exp(−√5 r)
	slopeKernel: func(k *Base) (*Base, float64, error) {
		other, err := NewMatern32(shorter(k.scales, 3./5)...)
		return other, 5. / 3, err
	},
}

// shorter returns the length scales for squared distances divided by f.
func shorter(scales []float64, f float64) []float64 {
	out := make([]float64, len(scales))
	for c, l := range scales {
		out[c] = l * math.Sqrt(f)
	}
	return out
}

// matern52Polynomial is the factor of exp(−a) in Matérn-5/2.
func matern52Polynomial(a float64) float64 { return 1 + a + a*a/3 }

// polyExp returns p·exp(−a), and 0 where exp(−a) is 0, even if p is +Inf.
func polyExp(p, a float64) float64 {
	e := math.Exp(-a)
	if e == 0 {
		return 0
	}
	return p * e
}
