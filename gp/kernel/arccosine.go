package kernel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var arcCosineFamily = Family{Name: "arc_cosine", Points: true, build: withScales(NewArcCosine)}

// NewArcCosine returns the arc-cosine kernel of order 1,
//
//	k(x, y) = ‖x‖‖y‖ (sin θ + (π − θ) cos θ)/π,  θ the angle of x and y,
//
// with norms and angle in units of the length scales. It is the limit of random ReLU
// features √2 max(0, wᵀx), w ~ N(0, I) (Cho and Saul 2009, Kernel Methods for Deep
// Learning). k(x, x) = ‖x‖², so that there is no bound and κ² = +Inf.
func NewArcCosine(lengthScales ...float64) (*Base, error) {
	return newBase("arc_cosine", innerProduct, lengthScales, arcCosine)
}

// arcCosine is φ(s, xx, yy) = √(xx·yy) (sin θ + (π − θ) cos θ)/π with cos θ = s/√(xx·yy).
var arcCosine = profile{
	bound:  math.Inf(1),
	vector: func(f *panel.Function, _ float64) { f.Func, f.Norms = simd.ArcCosine, true },
	norms: &normProfile{
		at: func(s, xx, yy float64) float64 {
			norms := math.Sqrt(xx) * math.Sqrt(yy)
			if norms == 0 {
				return 0
			}
			cos := max(-1, min(1, s/norms))
			sin := math.Sqrt((1 - cos) * (1 + cos))
			return norms * (sin + (math.Pi-math.Acos(cos))*cos) / math.Pi
		},
		// ∂φ/∂s = (π − θ)/π and ∂φ/∂xx = √(yy/xx) sin θ/(2π). At x = 0, a kink, the mean over
		// opposite directions is 1/2 and 0.
		slope: func(s, xx, yy float64) (ds, dxx, dyy float64) {
			a, b := math.Sqrt(xx), math.Sqrt(yy)
			if a == 0 || b == 0 {
				return 0.5, 0, 0
			}
			cos := max(-1, min(1, s/(a*b)))
			sin := math.Sqrt((1 - cos) * (1 + cos))
			return (math.Pi - math.Acos(cos)) / math.Pi, b / a * sin / (2 * math.Pi), a / b * sin / (2 * math.Pi)
		},
	},
}
