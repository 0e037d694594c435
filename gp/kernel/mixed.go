package kernel

import (
	"fmt"
	"math"
	"slices"
)

// Mixed is the kernel of configurations with ordered and nominal coordinates,
//
//	k(u, v) = b + a·M(r)·exp(−Σ_c [u_c ≠ v_c]/ℓ_c),  r² = Σ_j (u_j − v_j)²/ℓ_j²
//
// where M is the Matérn-5/2 function, j runs over ordered coordinates and c over
// nominal ones. With a fidelity ([Mixed.WithFidelity]) the inputs have one more
// coordinate, δ, and a has the factor exp(−|δ_u − δ_v|/ℓ_δ). The constant b, which is 0
// unless [Mixed.WithConstant] sets it, is the prior variance of the process' mean. Pairs, rows
// and gradients need no allocation.
type Mixed struct {
	composed         Kernel // without the constant
	ordered, nominal []int  // coordinates
	factor           float64
	lengths          []float64 // ℓ of ordered, then of nominal coordinates, one for each or one for each kind
	inverse          []float64 // 1/ℓ² of every ordered coordinate, 1/ℓ of every nominal one
	isNominal        []bool
	decay            float64 // 1/ℓ_δ, or 0 without a fidelity
	constant         float64 // b
}

var (
	_ Tunable        = (*Mixed)(nil)
	_ Differentiable = (*Mixed)(nil)
	_ Preparer       = (*Mixed)(nil)
	_ Radial         = (*Mixed)(nil)
)

// NewMixed returns the kernel with hyper-parameters theta. They are the factor a > 0,
// then the length scales of the ordered coordinates, then those of the nominal ones.
// Each kind has a length scale for every coordinate or one for all. Together ordered
// and nominal are the coordinates 0 … d−1, each once. Its errors are [*SpecError],
// [*ShapeError] and [*ParameterError].
func NewMixed(ordered, nominal []int, theta []float64) (*Mixed, error) {
	k := &Mixed{ordered: slices.Clone(ordered), nominal: slices.Clone(nominal)}
	split, err := k.split(theta)
	if err != nil {
		return nil, err
	}
	for c, at := range slices.Sorted(slices.Values(slices.Concat(ordered, nominal))) {
		if c != at {
			return nil, &SpecError{Name: "mixed", Reason: fmt.Sprintf("coordinate %d is missing, or another occurs twice", c)}
		}
	}
	k.factor, k.lengths = theta[0], append([]float64(nil), theta[1:]...)
	var parts []Kernel
	if len(ordered) > 0 {
		m, err := NewMatern52(theta[1:split]...)
		if err != nil {
			return nil, err
		}
		parts = append(parts, m)
	}
	if len(nominal) > 0 {
		h, err := NewHamming(theta[split:]...)
		if err != nil {
			return nil, err
		}
		parts = append(parts, h)
	}
	if len(parts) == 2 {
		for i, coordinates := range [][]int{ordered, nominal} {
			if parts[i], err = NewRestricted(parts[i], coordinates...); err != nil {
				return nil, err
			}
		}
		if parts[0], err = NewProduct(parts...); err != nil {
			return nil, err
		}
	}
	if k.composed, err = NewScaled(k.factor, parts[0]); err != nil {
		return nil, err
	}
	k.invert(split - 1)
	return k, nil
}

// WithConstant returns the kernel with the constant b ≥ 0.
func (k *Mixed) WithConstant(b float64) *Mixed {
	q := *k
	q.constant = b
	return &q
}

// WithFidelity returns the kernel with a fidelity δ as an additional last coordinate,
// in which the correlation falls with the given length scale ℓ_δ. A length of 0 does
// not change the kernel. It returns a [*ParameterError].
func (k *Mixed) WithFidelity(length float64) (*Mixed, error) {
	if length == 0 {
		return k, nil
	}
	if k.decay > 0 {
		plain, err := k.WithTheta(k.Theta())
		if err != nil {
			return nil, err
		}
		return plain.WithFidelity(length)
	}
	q, d := *k, len(k.inverse)
	steps, err := NewMatern12(length)
	if err != nil {
		return nil, err
	}
	configuration := make([]int, d)
	for c := range configuration {
		configuration[c] = c
	}
	parts := []Kernel{k.composed, steps}
	for i, coordinates := range [][]int{configuration, {d}} {
		if parts[i], err = NewRestricted(parts[i], coordinates...); err != nil {
			return nil, err
		}
	}
	q.decay = 1 / length
	if q.composed, err = NewProduct(parts...); err != nil {
		return nil, err
	}
	return &q, nil
}

// Dim returns the number of coordinates of inputs, the fidelity included.
func (k *Mixed) Dim() int {
	if k.decay > 0 {
		return len(k.inverse) + 1
	}
	return len(k.inverse)
}

// apart is |δ_u − δ_v|/ℓ_δ.
func (k *Mixed) apart(u, v []float64) float64 {
	if k.decay == 0 {
		return 0
	}
	d := len(k.inverse)
	return math.Abs(u[d]-v[d]) * k.decay
}

// split returns where in theta the length scales of categories begin.
func (k *Mixed) split(theta []float64) (int, error) {
	full := 1 + len(k.ordered) + len(k.nominal)
	shared := 1 + min(len(k.ordered), 1) + min(len(k.nominal), 1)
	switch {
	case len(k.ordered)+len(k.nominal) == 0:
		return 0, &SpecError{Name: "mixed", Reason: "it has no coordinates"}
	case len(theta) == full:
		return 1 + len(k.ordered), nil
	case len(theta) == shared:
		return 1 + min(len(k.ordered), 1), nil
	default:
		return 0, &ShapeError{What: "hyper-parameters", Got: len(theta), Want: fmt.Sprintf("%d or %d", full, shared)}
	}
}

// invert fills inverse. The first n lengths are of ordered coordinates.
func (k *Mixed) invert(n int) {
	k.inverse = make([]float64, len(k.ordered)+len(k.nominal))
	k.isNominal = make([]bool, len(k.inverse))
	for i, c := range k.ordered {
		l := k.lengths[min(i, n-1)]
		k.inverse[c] = 1 / (l * l)
	}
	for i, c := range k.nominal {
		k.inverse[c] = 1 / k.lengths[min(n+i, len(k.lengths)-1)]
		k.isNominal[c] = true
	}
}

// Theta returns the hyper-parameters in the order of [NewMixed].
func (k *Mixed) Theta() []float64 {
	return append([]float64{k.factor}, k.lengths...)
}

// terms returns r² and Σ [u_c ≠ v_c]/ℓ_c + |δ_u − δ_v|/ℓ_δ.
func (k *Mixed) terms(u, v []float64) (squared, differ float64) {
	differ = k.apart(u, v)
	if len(k.nominal) == 0 {
		for c, w := range k.inverse {
			d := u[c] - v[c]
			squared += d * d * w
		}
		return squared, differ
	}
	for c, w := range k.inverse {
		switch {
		case !k.isNominal[c]:
			d := u[c] - v[c]
			squared += d * d * w
		case u[c] != v[c]:
			differ += w
		}
	}
	return squared, differ
}

// dense returns row i of rows that Check has accepted.
func dense(x Rows, i int) []float64 { return x.(*Points[float64]).Row(i) }

// Eval implements [Kernel].
func (k *Mixed) Eval(x Rows, i int, y Rows, j int) float64 {
	s, h := k.terms(dense(x, i), dense(y, j))
	a := math.Sqrt(5 * s)
	return k.constant + k.factor*matern52Polynomial(a)*math.Exp(-a-h)
}

// Diag implements [Kernel].
func (k *Mixed) Diag(Rows, int) float64 { return k.constant + k.factor }

// Prepare implements [Preparer].
func (k *Mixed) Prepare(y Rows) Prepared {
	p := Prepare(k.composed, y)
	if k.constant == 0 {
		return p
	}
	return &mappedPrepared{p, y.Len(), func(row []float64) {
		for j := range row {
			row[j] += k.constant
		}
	}}
}

// Parameters implements [Tunable].
func (k *Mixed) Parameters() []Parameter {
	out := []Parameter{{Name: "factor", Value: k.factor}}
	for i, l := range k.lengths {
		out = append(out, Parameter{Name: fmt.Sprintf("length_scale[%d]", i), Value: l})
	}
	if k.decay > 0 {
		out = append(out, Parameter{Name: FidelityLength, Value: 1 / k.decay})
	}
	return out
}

// FidelityLength is the name of the parameter ℓ_δ of [Mixed].
const FidelityLength = "fidelity_length"

// WithLogParameters implements [Tunable].
func (k *Mixed) WithLogParameters(logTheta []float64) (Kernel, error) {
	theta := make([]float64, len(logTheta))
	for i, v := range logTheta {
		theta[i] = math.Exp(v)
	}
	length := 0.0
	if k.decay > 0 {
		length = theta[len(theta)-1]
		theta = theta[:len(theta)-1]
	}
	q, err := k.WithTheta(theta)
	if err != nil {
		return nil, err
	}
	return q.WithFidelity(length)
}

// AddLogGrad implements [Tunable]. With e = a·exp(−√5r − Σ…),
// ∂k/∂log ℓ_j = e·(5/3)(1 + √5r)(u_j − v_j)²/ℓ_j² and ∂k/∂log ℓ_c =
// k·[u_c ≠ v_c]/ℓ_c, and likewise for ℓ_δ.
func (k *Mixed) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	u, v := dense(x, i), dense(y, j)
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	e := scale * k.factor * math.Exp(-a-h)
	value := e * matern52Polynomial(a)
	dst[0] += value
	slope := e * 5 / 3 * (1 + a)
	shared := len(k.lengths) < len(k.inverse)
	at, n := 1, len(k.ordered)
	for p, c := range k.ordered {
		d := u[c] - v[c]
		if !shared {
			at = 1 + p
		}
		dst[at] += slope * d * d * k.inverse[c]
	}
	for p, c := range k.nominal {
		at = len(k.lengths)
		if !shared {
			at = 1 + n + p
		}
		if u[c] != v[c] {
			dst[at] += value * k.inverse[c]
		}
	}
	if k.decay > 0 {
		dst[1+len(k.lengths)] += value * k.apart(u, v)
	}
}

// AddInputGrad implements [Differentiable].
func (k *Mixed) AddInputGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	k.addGradient(dst, scale, dense(x, i), dense(y, j))
}

// addGradient adds scale·∂k(u, v)/∂u_c for ordered coordinates.
func (k *Mixed) addGradient(dst []float64, scale float64, u, v []float64) {
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	slope := -scale * k.factor * math.Exp(-a-h) * 5 / 3 * (1 + a)
	for _, c := range k.ordered {
		dst[c] += slope * (u[c] - v[c]) * k.inverse[c]
	}
}

// nearness is k(u, v)/a, 1 for equal points.
func (k *Mixed) nearness(u, v []float64) float64 {
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	return matern52Polynomial(a) * math.Exp(-a-h)
}

// SlopeWeights implements [Radial]. It is 1/ℓ² in ordered coordinates, 0 elsewhere.
func (k *Mixed) SlopeWeights(d int) []float64 {
	w := make([]float64, d)
	for _, c := range k.ordered {
		w[c] = k.inverse[c]
	}
	return w
}

// FillRow implements [Radial].
func (k *Mixed) FillRow(values, u, y []float64) {
	d := len(u)
	if k.smooth() {
		k.fillSquared(values, u, y)
		for j, s := range values {
			a := math.Sqrt(5 * s)
			values[j] = k.constant + k.factor*(matern52Polynomial(a)*math.Exp(-a))
		}
		return
	}
	for j := range values {
		values[j] = k.constant + k.factor*k.nearness(u, y[j*d:][:d])
	}
}

// FillSlopes implements [Radial].
func (k *Mixed) FillSlopes(values, slopes, u, y []float64) {
	if k.smooth() {
		k.fillSquared(values, u, y)
		for j, s := range values {
			values[j], slopes[j] = k.valueSlope(s, 0)
		}
		return
	}
	d := len(u)
	for j := range values {
		values[j], slopes[j] = k.valueSlope(k.terms(u, y[j*d:][:d]))
	}
}

// valueSlope returns k and 2·∂k/∂(r²) for r² and the exponent h of the others.
func (k *Mixed) valueSlope(squared, h float64) (value, slope float64) {
	a := math.Sqrt(5 * squared)
	e := k.factor * math.Exp(-a-h)
	return k.constant + e*matern52Polynomial(a), -e * 5 / 3 * (1 + a)
}

// smooth tells whether all coordinates are ordered and there is no fidelity.
func (k *Mixed) smooth() bool { return len(k.nominal) == 0 && k.decay == 0 }

// fillSquared sets dst[j] to r² of u and row j of y, for a smooth kernel.
func (k *Mixed) fillSquared(dst, u, y []float64) {
	d := len(u)
	for j := range dst {
		row, sum := y[j*d:][:d], 0.0
		for c, w := range k.inverse {
			diff := u[c] - row[c]
			sum += diff * diff * w
		}
		dst[j] = sum
	}
}

// Factor returns a, the variance of the process around its mean.
func (k *Mixed) Factor() float64 { return k.factor }

// LengthScale returns ℓ of coordinate c. It is in the units of the inputs for an
// ordered coordinate, and in numbers of differing coordinates for a nominal one.
func (k *Mixed) LengthScale(c int) float64 {
	if k.isNominal[c] {
		return 1 / k.inverse[c]
	}
	return 1 / math.Sqrt(k.inverse[c])
}

// FidelityLength returns ℓ_δ, or 0 without a fidelity.
func (k *Mixed) FidelityLength() float64 {
	if k.decay == 0 {
		return 0
	}
	return 1 / k.decay
}

// Apart returns the distances of two inputs. These are r² in ordered coordinates, and
// the exponent Σ_c [u_c ≠ v_c]/ℓ_c + |δ_u − δ_v|/ℓ_δ of the others.
func (k *Mixed) Apart(u, v []float64) (squared, differ float64) { return k.terms(u, v) }

// Bound implements [Kernel] with κ² = b + a.
func (k *Mixed) Bound() float64 { return k.constant + k.factor }

// Check implements [Kernel]. It accepts dense rows of float64.
func (k *Mixed) Check(x Rows) error {
	if _, ok := x.(*Points[float64]); !ok {
		return &TypeError{Kernel: "mixed", Got: fmt.Sprintf("%T", x), Want: "Points[float64]"}
	}
	if x.Dim() != k.Dim() {
		return &DimensionError{What: "input of the mixed kernel", Got: x.Dim(), Want: k.Dim()}
	}
	return nil
}

// Spec implements [Kernel]. It is the Spec of the product that fills blocks, and of the
// constant, as a polynomial with lengths at which its inner product rounds to 0.
func (k *Mixed) Spec() Spec {
	if k.constant == 0 {
		return k.composed.Spec()
	}
	constant := Spec{Name: "polynomial", LengthScales: []float64{1e150}, Params: map[string]float64{"degree": 1, "offset": k.constant}}
	return Spec{Name: "sum", Parts: []Spec{k.composed.Spec(), constant}}
}

// WithTheta returns the kernel of the same coordinates, without a fidelity, with other
// hyper-parameters. Its errors are those of [NewMixed].
func (k *Mixed) WithTheta(theta []float64) (*Mixed, error) {
	q, err := NewMixed(k.ordered, k.nominal, theta)
	if err != nil {
		return nil, err
	}
	return q.WithConstant(k.constant), nil
}
