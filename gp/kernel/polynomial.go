package kernel

import "math"

var (
	linearFamily     = Family{Name: "linear", Points: true, build: withScales(NewLinear)}
	polynomialFamily = Family{
		Name: "polynomial", Points: true, Params: []string{"degree", "offset"},
		build: func(p *params, l []float64) (*Base, error) {
			return NewPolynomial(p.integer("degree"), p.number("offset"), l...)
		},
	}
)

// NewLinear returns k(x, y) = Σ_c x_c y_c/ℓ_c². It has no bound, so κ² = +Inf.
func NewLinear(lengthScales ...float64) (*Base, error) {
	return newBase("linear", InnerProduct, lengthScales, linear{})
}

// linear is φ(s) = s.
type linear struct{}

func (linear) at(s, _, _ float64) float64                   { return s }
func (linear) slope(_, _, _ float64) (ds, dxx, dyy float64) { return 1, 0, 0 }
func (linear) bound() float64                               { return math.Inf(1) }
func (linear) shape() []shapeParameter                      { return nil }

// maxDegree limits the powers of a polynomial kernel.
const maxDegree = 64

// NewPolynomial returns k(x, y) = (Σ_c x_c y_c/ℓ_c² + offset)^degree for an integer
// 1 ≤ degree ≤ 64 and offset ≥ 0. It has no bound, so κ² = +Inf. The offset is tunable
// unless it is 0.
func NewPolynomial(degree int, offset float64, lengthScales ...float64) (*Base, error) {
	phi, err := newPolynomial(degree, offset)
	if err != nil {
		return nil, err
	}
	return newBase("polynomial", InnerProduct, lengthScales, phi)
}

func newPolynomial(degree int, offset float64) (profile, error) {
	if degree < 1 || degree > maxDegree {
		return nil, parameterError("polynomial", "degree", float64(degree), "1 to 64")
	}
	if !(offset >= 0) || math.IsInf(offset, 1) {
		return nil, parameterError("polynomial", "offset", offset, "≥ 0 and finite")
	}
	return polynomial{degree, offset}, nil
}

// polynomial is φ(s) = (s + c)^p.
type polynomial struct {
	degree int
	offset float64
}

func (p polynomial) at(s, _, _ float64) float64 { return power(s+p.offset, p.degree) }

func (p polynomial) slope(s, _, _ float64) (ds, dxx, dyy float64) {
	return float64(p.degree) * power(s+p.offset, p.degree-1), 0, 0
}

func (polynomial) bound() float64 { return math.Inf(1) }

func (p polynomial) shape() []shapeParameter {
	return []shapeParameter{
		{Parameter{"degree", float64(p.degree)}, true},
		{Parameter{"offset", p.offset}, p.offset == 0},
	}
}

func (p polynomial) withShape(values []float64) (profile, error) {
	if p.offset == 0 {
		return p, nil
	}
	return newPolynomial(p.degree, values[0])
}

func (p polynomial) addShapeGrad(dst []float64, scale, s, _, _ float64) {
	if p.offset != 0 {
		ds, _, _ := p.slope(s, 0, 0)
		dst[0] += scale * ds * p.offset
	}
}

// power returns b^p for p ≥ 0 by repeated squaring.
func power(b float64, p int) float64 {
	out := 1.0
	for ; p > 0; p >>= 1 {
		if p&1 == 1 {
			out *= b
		}
		b *= b
	}
	return out
}
