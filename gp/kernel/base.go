package kernel

import (
	"fmt"
	"math"
	"slices"
)

var (
	_ Elementwise    = (*Base)(nil)
	_ Differentiable = (*Base)(nil)
	_ Tunable        = (*Base)(nil)
)

// Base is a built-in kernel that is not made of others. It is k(x, y) = φ(s(x, y)) for
// a pair [Statistic] s, with the length scales inside s and the remaining parameters
// inside φ. Its constructors (NewGaussian, NewLaplace, …) take either one length scale
// for all coordinates or one per coordinate (automatic relevance determination), all
// positive, in the units of the inputs.
type Base struct {
	name   string
	scales []float64 // ℓ, or nil if the kernel has none
	st     Statistic
	phi    profile
	dim    int     // the only dimension it accepts, or 0 for any
	atZero float64 // φ(0)
}

// profile is the function φ of a Base kernel. For an inner-product statistic
// with norms it also depends on xx = s(x, x) and yy = s(y, y).
type profile interface {
	// at returns φ(s).
	at(s, xx, yy float64) float64
	// slope returns ∂φ/∂s, ∂φ/∂xx and ∂φ/∂yy. At a kink it returns the mean of both
	// sides.
	slope(s, xx, yy float64) (ds, dxx, dyy float64)
	// bound returns sup k(x, x).
	bound() float64
	// shape returns the parameters of φ, of which fixed ones are not tuned.
	shape() []shapeParameter
}

// rowProfile is a profile with a faster way to map many statistics at once, without
// norms.
type rowProfile interface {
	profile
	mapRow(s []float64)
}

// shapeParameter is one parameter of a profile.
type shapeParameter struct {
	Parameter
	fixed bool
}

// tunableProfile is a profile with parameters to tune.
type tunableProfile interface {
	profile
	// withShape returns φ with other values for the tuned parameters.
	withShape(values []float64) (profile, error)
	// addShapeGrad adds scale·∂φ/∂log θ for the tuned parameters θ.
	addShapeGrad(dst []float64, scale, s, xx, yy float64)
}

// newBase validates the length scales and builds the kernel.
func newBase(name string, kind StatisticKind, scales []float64, phi profile) (*Base, error) {
	if len(scales) == 0 {
		return nil, &ShapeError{In: "kernel", What: "length scales", Got: 0, Want: "1 or d"}
	}
	k := &Base{name: name, scales: slices.Clone(scales), phi: phi, atZero: phi.at(0, 0, 0)}
	k.st = Statistic{Kind: kind, Weights: make([]float64, len(scales))}
	for c, l := range scales {
		w := 1 / l
		if kind.weightPower() == 2 {
			w /= l
		}
		if !(l > 0) || w == 0 || !isFinite(w) {
			return nil, parameterError(name, scaleName(len(scales), c), l, "> 0 and finite")
		}
		k.st.Weights[c] = w
	}
	return k, nil
}

// newUnscaled is for kernels without length scales.
func newUnscaled(name string, kind StatisticKind, dim int, phi profile) *Base {
	return &Base{name: name, st: Statistic{Kind: kind, Weights: []float64{1}}, phi: phi, dim: dim, atZero: phi.at(0, 0, 0)}
}

func scaleName(p, c int) string {
	if p == 1 {
		return "length_scale"
	}
	return fmt.Sprintf("length_scale[%d]", c)
}

// Name returns the family, such as "gaussian".
func (k *Base) Name() string { return k.name }

// LengthScales returns ℓ, which is one for all coordinates, one for each, or none.
func (k *Base) LengthScales() []float64 { return slices.Clone(k.scales) }

// Eval returns k(x_i, y_j).
func (k *Base) Eval(x Rows, i int, y Rows, j int) float64 {
	return k.phi.at(k.statistics(asNumeric(x).row(i), asNumeric(y).row(j)))
}

// Diag returns k(x_i, x_i).
func (k *Base) Diag(x Rows, i int) float64 {
	if kind := k.st.Kind; kind != SquaredDistance && kind != Manhattan {
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
	if k.st.Norms {
		xx, yy = k.st.pair(a, a), k.st.pair(b, b)
	}
	return k.st.pair(a, b), xx, yy
}

// Bound returns κ² = sup k(x, x).
func (k *Base) Bound() float64 { return k.phi.bound() }

// Check accepts dense and sparse rows of the right dimension.
func (k *Base) Check(x Rows) error {
	if _, ok := x.(numeric); !ok {
		return &TypeError{Kernel: k.name, Got: fmt.Sprintf("%T", x), Want: "Points or CSR"}
	}
	want := k.dim
	if len(k.scales) > 1 {
		want = len(k.scales)
	}
	if want > 0 && x.Dim() != want {
		return &DimensionError{What: "input of the " + k.name + " kernel", Got: x.Dim(), Want: want}
	}
	return nil
}

// Statistic returns s.
func (k *Base) Statistic() Statistic { return k.st }

// Map applies φ to one row of statistics.
func (k *Base) Map(s []float64, xx float64, yy []float64) {
	if phi, ok := k.phi.(rowProfile); ok {
		phi.mapRow(s)
		return
	}
	if yy == nil {
		for j, v := range s {
			s[j] = k.phi.at(v, 0, 0)
		}
		return
	}
	for j, v := range s {
		s[j] = k.phi.at(v, xx, yy[j])
	}
}

// AddInputGrad adds scale·∂k(x_i, y_j)/∂x_i to dst.
func (k *Base) AddInputGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	a, b := asNumeric(x).row(i), asNumeric(y).row(j)
	ds, dxx, _ := k.phi.slope(k.statistics(a, b))
	for w := walk(a, b); ; {
		c, u, v, ok := w.next()
		if !ok {
			return
		}
		g := ds * k.st.Kind.slope(u, v)
		if dxx != 0 {
			g += dxx * 2 * u
		}
		dst[c] += scale * g * k.st.Weights[c%len(k.st.Weights)]
	}
}

// Parameters returns the length scales, followed by the tunable parameters of φ.
func (k *Base) Parameters() []Parameter {
	var out []Parameter
	for c, l := range k.scales {
		out = append(out, Parameter{scaleName(len(k.scales), c), l})
	}
	for _, p := range k.phi.shape() {
		if !p.fixed {
			out = append(out, p.Parameter)
		}
	}
	return out
}

// WithLogParameters returns the kernel with other parameters.
func (k *Base) WithLogParameters(logTheta []float64) (Kernel, error) {
	if p := len(k.Parameters()); len(logTheta) != p {
		return nil, &ShapeError{In: "kernel", What: "log parameters", Got: len(logTheta), Want: fmt.Sprint(p)}
	}
	theta := make([]float64, len(logTheta))
	for p, v := range logTheta {
		theta[p] = math.Exp(v)
	}
	phi := k.phi
	if t, ok := k.phi.(tunableProfile); ok {
		var err error
		if phi, err = t.withShape(theta[len(k.scales):]); err != nil {
			return nil, err
		}
	}
	if k.scales == nil {
		out := *k
		out.phi, out.atZero = phi, phi.at(0, 0, 0)
		return &out, nil
	}
	out, err := newBase(k.name, k.st.Kind, theta[:len(k.scales)], phi)
	if err != nil {
		return nil, err
	}
	out.st.Norms, out.dim = k.st.Norms, k.dim
	return out, nil
}

// AddLogGrad adds scale·∂k(x_i, y_j)/∂log θ to dst. A weight is w = ℓ^−p, so
// ∂s/∂log ℓ_c = −p·w_c·term_c.
func (k *Base) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	a, b := asNumeric(x).row(i), asNumeric(y).row(j)
	s, xx, yy := k.statistics(a, b)
	if t, ok := k.phi.(tunableProfile); ok {
		t.addShapeGrad(dst[len(k.scales):], scale, s, xx, yy)
	}
	if k.scales == nil {
		return
	}
	ds, dxx, dyy := k.phi.slope(s, xx, yy)
	if ds == 0 && dxx == 0 && dyy == 0 {
		return // also where a term overflows
	}
	minusPower := -float64(k.st.Kind.weightPower())
	for w := walk(a, b); ; {
		c, u, v, ok := w.next()
		if !ok {
			return
		}
		g := ds * k.st.Kind.term(u, v)
		if dxx != 0 || dyy != 0 {
			g += dxx*u*u + dyy*v*v
		}
		c %= len(k.scales)
		dst[c] += scale * minusPower * k.st.Weights[c] * g
	}
}

// Spec names the family and its parameters.
func (k *Base) Spec() Spec {
	spec := Spec{Name: k.name, LengthScales: slices.Clone(k.scales)}
	params := map[string]float64{}
	for _, p := range k.phi.shape() {
		params[p.Name] = p.Value
	}
	if len(params) > 0 {
		spec.Params = params
	}
	return spec
}
