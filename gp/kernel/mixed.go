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
// where M is the Matérn-5/2 function, j runs over ordered coordinates and c over nominal ones.
// With a fidelity ([Mixed.WithFidelity]) the inputs have one more coordinate, δ, and a has the
// factor exp(−|δ_u − δ_v|/ℓ_δ). The constant b, which is 0 unless [Mixed.WithConstant] sets it,
// is the prior variance of the process' mean. Pairs, rows and gradients need no allocation.
type Mixed struct {
	ordered, nominal []int  // coordinates
	smooth, differ   *Base  // the kernels of these, or nil
	steps            Kernel // of the fidelity, or nil
	factor           float64
	lengths          []float64 // ℓ of ordered, then of nominal coordinates
	inverse          []float64 // 1/ℓ² of every ordered coordinate, 1/ℓ of every nominal one
	isNominal        []bool
	decay            float64 // 1/ℓ_δ, or 0 without a fidelity
	constant         float64 // b
}

var (
	_ Tunable  = (*Mixed)(nil)
	_ Preparer = (*Mixed)(nil)
	_ Radial   = (*Mixed)(nil)
)

// NewMixed returns the kernel with hyper-parameters theta. They are the factor a > 0,
// then the length scales of the ordered coordinates, then those of the nominal ones. Together ordered
// and nominal are the coordinates 0 … d−1, each once. Its errors are [*SpecError],
// [*ShapeError] and [*ParameterError].
func NewMixed(ordered, nominal []int, theta []float64) (*Mixed, error) {
	k := &Mixed{ordered: slices.Clone(ordered), nominal: slices.Clone(nominal)}
	d, split := len(ordered)+len(nominal), 1+len(ordered)
	if d == 0 {
		return nil, &SpecError{Name: "mixed", Reason: "it has no coordinates"}
	}
	if len(theta) != 1+d {
		return nil, &ShapeError{What: "hyper-parameters", Got: len(theta), Want: fmt.Sprint(1 + d)}
	}
	for c, at := range slices.Sorted(slices.Values(slices.Concat(ordered, nominal))) {
		if c != at {
			return nil, &SpecError{Name: "mixed", Reason: fmt.Sprintf("coordinate %d is missing, or another occurs twice", c)}
		}
	}
	k.factor, k.lengths = theta[0], slices.Clone(theta[1:])
	var err error
	if !(k.factor > 0) || math.IsInf(k.factor, 1) {
		return nil, parameterError("mixed", "factor", k.factor, "> 0 and finite")
	}
	if len(ordered) > 0 {
		if k.smooth, err = NewMatern52(theta[1:split]...); err != nil {
			return nil, err
		}
	}
	if len(nominal) > 0 {
		if k.differ, err = NewHamming(theta[split:]...); err != nil {
			return nil, err
		}
	}
	k.invert()
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
	steps, err := NewMatern12(length)
	if err != nil {
		return nil, err
	}
	q := *k
	q.steps, q.decay = steps, 1/length
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

// invert fills inverse.
func (k *Mixed) invert() {
	k.inverse = make([]float64, len(k.lengths))
	k.isNominal = make([]bool, len(k.inverse))
	for i, c := range k.ordered {
		k.inverse[c] = 1 / (k.lengths[i] * k.lengths[i])
	}
	for i, c := range k.nominal {
		k.inverse[c] = 1 / k.lengths[len(k.ordered)+i]
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

func (k *Mixed) Eval(x Rows, i int, y Rows, j int) float64 {
	s, h := k.terms(dense(x, i), dense(y, j))
	a := math.Sqrt(5 * s)
	return k.constant + k.factor*matern52Polynomial(a)*math.Exp(-a-h)
}

func (k *Mixed) Diag(Rows, int) float64 { return k.constant + k.factor }

func (k *Mixed) Prepare(y Rows) Prepared {
	points, p := y.(*Points[float64]), &mixedPrepared{m: y.Len(), constant: k.constant}
	add := func(inner Kernel, coords []int, factor float64) {
		at := points
		if len(coords) < points.d {
			at = gather(nil, points, 0, points.n, coords)
		}
		p.parts = append(p.parts, mixedPart{Prepare(inner, at), coords, factor})
	}
	switch {
	case k.differ == nil:
		add(&Scaled{k.factor, k.smooth}, k.ordered, 1)
	case k.smooth == nil:
		add(&Scaled{k.factor, k.differ}, k.nominal, 1)
	default:
		add(k.smooth, k.ordered, 1)
		add(k.differ, k.nominal, k.factor)
	}
	if k.steps != nil {
		add(k.steps, []int{len(k.inverse)}, 1)
	}
	if len(p.parts) == 1 && k.constant == 0 {
		return p.parts[0].Prepared
	}
	return p
}

// mixedPrepared multiplies blocks of its parts, and adds the constant.
type mixedPrepared struct {
	parts    []mixedPart
	m        int
	constant float64
}

// mixedPart is the kernel of some coordinates. Its product with the parts before is multiplied by
// the factor.
type mixedPart struct {
	Prepared
	coords []int
	factor float64
}

func (p *mixedPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	defer s.Release(s.Mark())
	points, block := x.(*Points[float64]), s.Floats((i1-i0)*p.m)
	for n, part := range p.parts {
		at, from, to := points, i0, i1
		if len(part.coords) < points.d {
			at, from, to = gather(s, points, i0, i1, part.coords), 0, i1-i0
		}
		if n == 0 {
			part.Fill(dst, ld, at, from, to, s)
			continue
		}
		part.Fill(block, p.m, at, from, to, s)
		for i := range i1 - i0 {
			row := dst[i*ld:][:p.m]
			for j, v := range block[i*p.m:][:p.m] {
				row[j] = row[j] * v * part.factor
			}
		}
	}
	for i := range i1 - i0 {
		for j := range p.m {
			dst[i*ld+j] += p.constant
		}
	}
}

// gather copies coordinates of rows i0 ≤ i < i1, into memory of s unless it is nil.
func gather(s *Scratch, x *Points[float64], i0, i1 int, coords []int) *Points[float64] {
	out := s.points(i1-i0, len(coords))
	for i := range out.n {
		src, dst := x.Row(i0+i), out.Row(i)
		for j, c := range coords {
			dst[j] = src[c]
		}
	}
	return out
}

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

// AddLogGrad implements [Tunable]. With e = a·exp(−√5r − Σ…), ∂k/∂log ℓ_j = e·(5/3)(1 + √5r)(u_j
// − v_j)²/ℓ_j² and ∂k/∂log ℓ_c = k·[u_c ≠ v_c]/ℓ_c, and likewise for ℓ_δ.
func (k *Mixed) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	u, v := dense(x, i), dense(y, j)
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	e := scale * k.factor * math.Exp(-a-h)
	value := e * matern52Polynomial(a)
	dst[0] += value
	slope := e * 5 / 3 * (1 + a)
	for p, c := range k.ordered {
		d := u[c] - v[c]
		dst[1+p] += slope * d * d * k.inverse[c]
	}
	for p, c := range k.nominal {
		if u[c] != v[c] {
			dst[1+len(k.ordered)+p] += value * k.inverse[c]
		}
	}
	if k.decay > 0 {
		dst[1+len(k.lengths)] += value * k.apart(u, v)
	}
}

// SlopeWeights implements [Radial]. It is 1/ℓ² in ordered coordinates, 0 elsewhere.
func (k *Mixed) SlopeWeights(d int) []float64 {
	w := make([]float64, d)
	for _, c := range k.ordered {
		w[c] = k.inverse[c]
	}
	return w
}

func (k *Mixed) FillRow(values, u, y []float64) {
	d := len(u)
	for j := range values {
		s, h := k.terms(u, y[j*d:][:d])
		a := math.Sqrt(5 * s)
		values[j] = k.constant + k.factor*(matern52Polynomial(a)*math.Exp(-a-h))
	}
}

func (k *Mixed) FillSlopes(values, slopes, u, y []float64) {
	d := len(u)
	for j := range values {
		s, h := k.terms(u, y[j*d:][:d])
		a := math.Sqrt(5 * s)
		e := k.factor * math.Exp(-a-h)
		values[j], slopes[j] = k.constant+e*matern52Polynomial(a), -e*5/3*(1+a)
	}
}

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

// Spec implements [Kernel]. Only a [Resolver] can build the kernel from it.
func (k *Mixed) Spec() Spec {
	return Spec{Name: "mixed", LengthScales: slices.Clone(k.lengths), Params: map[string]float64{
		"factor": k.factor, "constant": k.constant, "ordered": float64(len(k.ordered)), FidelityLength: k.FidelityLength(),
	}}
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
