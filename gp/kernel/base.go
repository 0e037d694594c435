package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var (
	_ Preparer = (*Base)(nil)
	_ Tunable  = (*Base)(nil)
)

// Base is a built-in kernel that is not made of others. It is k(x, y) = φ(s(x, y)) for
// a statistic s of pairs, with the length scales inside s and the remaining parameters
// inside φ. Its constructors (NewGaussian, NewLaplace, …) take one length scale for all
// coordinates or one each, in the units of the inputs.
type Base struct {
	name   string
	scales []float64 // ℓ
	st     statistic
	phi    profile
	atZero float64 // φ(0)
}

// profile is the function φ of a Base kernel with its parameters.
type profile struct {
	// at returns φ(s), and slope φ'(s). At a kink it is the mean of both sides.
	at, slope func(s float64) float64
	bound     float64 // sup k(x, x)
	shape     []shapeParameter

	// The others are optional.

	// norms has at and slope of a function of s, xx = s(x, x) and yy = s(y, y).
	norms *normProfile
	// both returns at and slope with one exponential.
	both func(s float64) (value, slope float64)
	// mapRow is at for many statistics.
	mapRow func(s []float64)
	// vector sets f to φ of the statistic times w, if package simd has the function.
	vector func(f *panel.Function, w float64)
	// tune returns φ with another value θ of the parameter that is not fixed, and tuneGrad
	// scale·∂φ/∂log θ.
	tune     func(theta float64) (profile, error)
	tuneGrad func(scale, s float64) float64
	// slopeKernel returns a kernel and a factor of which −2φ'(s) is the product, for the
	// kernel k with this profile. toSlopes changes the values of the other kernel first.
	slopeKernel func(k *Base) (other *Base, factor float64, err error)
	toSlopes    func(values []float64)
}

type normProfile struct {
	at    func(s, xx, yy float64) float64
	slope func(s, xx, yy float64) (ds, dxx, dyy float64)
}

// shapeParameter is one parameter of a profile.
type shapeParameter struct {
	Parameter
	fixed bool
}

// newBase validates the length scales and builds the kernel.
func newBase(name string, kind statisticKind, scales []float64, phi profile) (*Base, error) {
	if len(scales) == 0 {
		return nil, &ShapeError{In: "kernel", What: "length scales", Got: 0, Want: "1 or d"}
	}
	st := statistic{kind: kind, weights: make([]float64, len(scales)), norms: phi.norms != nil}
	k := &Base{name: name, scales: slices.Clone(scales), st: st, phi: phi}
	k.atZero = k.value(0, 0, 0)
	for c, l := range scales {
		w := 1 / l
		if kind.weightPower() == 2 {
			w /= l
		}
		if !(l > 0) || w == 0 || !isFinite(w) {
			return nil, parameterError(name, scaleName(len(scales), c), l, "> 0 and finite")
		}
		k.st.weights[c] = w
	}
	return k, nil
}

// value returns φ, where xx and yy are 0 unless the statistic has norms.
func (k *Base) value(s, xx, yy float64) float64 {
	if k.phi.norms != nil {
		return k.phi.norms.at(s, xx, yy)
	}
	return k.phi.at(s)
}

// slopes returns the derivatives of φ.
func (k *Base) slopes(s, xx, yy float64) (ds, dxx, dyy float64) {
	if k.phi.norms != nil {
		return k.phi.norms.slope(s, xx, yy)
	}
	return k.phi.slope(s), 0, 0
}

func scaleName(p, c int) string {
	if p == 1 {
		return "length_scale"
	}
	return fmt.Sprintf("length_scale[%d]", c)
}

// LengthScales returns ℓ, which is one for all coordinates or one for each.
func (k *Base) LengthScales() []float64 { return slices.Clone(k.scales) }

func (k *Base) Eval(x Rows, i int, y Rows, j int) float64 {
	return k.value(k.statistics(asNumeric(x).row(i), asNumeric(y).row(j)))
}

func (k *Base) Diag(x Rows, i int) float64 {
	if !k.st.kind.isDistance() {
		return k.Eval(x, i, x, i)
	}
	v, s := asNumeric(x).row(i), 0.0 // or NaN, if a coordinate is not finite
	for _, e := range v.f64 {
		s += e - e
	}
	for _, e := range v.f32 {
		s += float64(e - e)
	}
	return k.atZero + s
}

func (k *Base) statistics(a, b vector) (s, xx, yy float64) {
	if k.st.norms {
		xx, yy = k.st.pair(a, a), k.st.pair(b, b)
	}
	return k.st.pair(a, b), xx, yy
}

func (k *Base) Bound() float64 { return k.phi.bound }

// Check implements [Kernel]. It accepts dense and sparse rows of the right dimension.
func (k *Base) Check(x Rows) error {
	if _, ok := x.(numeric); !ok {
		return &TypeError{Kernel: k.name, Got: fmt.Sprintf("%T", x), Want: "Points or CSR"}
	}
	if want := len(k.scales); want > 1 && x.Dim() != want {
		return &DimensionError{What: "input of the " + k.name + " kernel", Got: x.Dim(), Want: want}
	}
	return nil
}

// mapRow replaces every s_j = s(x, y_j) of one row of a block by k(x, y_j). With norms
// xx = s(x, x) and yy_j = s(y_j, y_j).
func (k *Base) mapRow(s []float64, xx float64, yy []float64) {
	switch {
	case k.phi.mapRow != nil:
		k.phi.mapRow(s)
	case k.phi.norms != nil:
		for j, v := range s {
			s[j] = k.phi.norms.at(v, xx, yy[j])
		}
	default:
		for j, v := range s {
			s[j] = k.phi.at(v)
		}
	}
}

// Parameters returns the length scales, followed by the tunable parameters of φ.
func (k *Base) Parameters() []Parameter {
	var out []Parameter
	for c, l := range k.scales {
		out = append(out, Parameter{scaleName(len(k.scales), c), l})
	}
	for _, p := range k.phi.shape {
		if !p.fixed {
			out = append(out, p.Parameter)
		}
	}
	return out
}

func (k *Base) WithLogParameters(logTheta []float64) (Kernel, error) {
	if err := checkTheta(k, logTheta); err != nil {
		return nil, err
	}
	theta := make([]float64, len(logTheta))
	for p, v := range logTheta {
		theta[p] = math.Exp(v)
	}
	phi := k.phi
	if phi.tune != nil {
		var err error
		if phi, err = phi.tune(theta[len(k.scales)]); err != nil {
			return nil, err
		}
	}
	return orNil(newBase(k.name, k.st.kind, theta[:len(k.scales)], phi))
}

// AddLogGrad implements [Tunable]. A weight is w = ℓ^−p, so ∂s/∂log ℓ_c = −p·w_c·term_c.
func (k *Base) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	a, b := asNumeric(x).row(i), asNumeric(y).row(j)
	s, xx, yy := k.statistics(a, b)
	if k.phi.tuneGrad != nil {
		dst[len(k.scales)] += k.phi.tuneGrad(scale, s)
	}
	ds, dxx, dyy := k.slopes(s, xx, yy)
	if ds == 0 && dxx == 0 && dyy == 0 {
		return // also where a term overflows
	}
	minusPower := -float64(k.st.kind.weightPower())
	for w := walk(a, b); ; {
		c, u, v, ok := w.next()
		if !ok {
			return
		}
		g := ds * k.st.kind.term(u, v)
		if dxx != 0 || dyy != 0 {
			g += dxx*u*u + dyy*v*v
		}
		c %= len(k.scales)
		dst[c] += scale * minusPower * k.st.weights[c] * g
	}
}

func (k *Base) Spec() Spec {
	spec := Spec{Name: k.name, LengthScales: slices.Clone(k.scales)}
	for _, p := range k.phi.shape {
		if spec.Params == nil {
			spec.Params = map[string]float64{}
		}
		spec.Params[p.Name] = p.Value
	}
	return spec
}
