package model

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
)

// manyCoordinates is how many coordinates get a length scale each; with more,
// all share one.
const manyCoordinates = 64

// covariance is the kernel of encoded configurations,
//
//	k(u, v) = a·M(r)·exp(−Σ_c [u_c ≠ v_c]/ℓ_c),  r² = Σ_j (u_j − v_j)²/ℓ_j²
//
// with M the Matérn-5/2, j over ordered coordinates and c over categories. With
// a fidelity (withFidelity) the inputs have one coordinate more, δ, and k has the
// factor exp(−|δ_u − δ_v|/ℓ_δ); see package documentation.
// Configurations that differ in nothing active are one point of the cube, so
// what is inactive plays no part. Values, blocks and gradients are those of the
// kernel in package gp/kernel that it is composed of; pairs and gradients come
// without allocation.
type covariance struct {
	kernel.Kernel          // composed
	ordered, nominal []int // coordinates
	factor           float64
	lengths          []float64 // ℓ of ordered, then of nominal: one each, or one of each sort
	inverse          []float64 // of every coordinate: 1/ℓ² if ordered, 1/ℓ if nominal
	isNominal        []bool
	decay            float64 // 1/ℓ_δ; 0 without a fidelity
}

var (
	_ kernel.Tunable        = (*covariance)(nil)
	_ kernel.Differentiable = (*covariance)(nil)
	_ kernel.Preparer       = (*covariance)(nil)
)

// layout tells which coordinates of a space are ordered.
func layout(sp *space.Space) (ordered, nominal []int) {
	for i, a := range sp.Axes() {
		if a.Ordered {
			ordered = append(ordered, i)
		} else {
			nominal = append(nominal, i)
		}
	}
	return ordered, nominal
}

// priorCovariance is where the first fit begins. The space has a coordinate.
func priorCovariance(sp *space.Space) *covariance {
	ordered, nominal := layout(sp)
	d := len(ordered) + len(nominal)
	count := func(n int) int {
		if d > manyCoordinates {
			return min(n, 1)
		}
		return n
	}
	theta := []float64{1}
	for range count(len(ordered)) {
		theta = append(theta, 0.35*math.Sqrt(float64(d)))
	}
	for range count(len(nominal)) {
		theta = append(theta, 1.5)
	}
	k, err := newCovariance(ordered, nominal, theta)
	if err != nil {
		panic("model: the prior kernel: " + err.Error())
	}
	return k
}

// newCovariance returns the kernel with hyper-parameters theta: the factor and
// the length scales.
func newCovariance(ordered, nominal []int, theta []float64) (*covariance, error) {
	k := &covariance{ordered: ordered, nominal: nominal}
	split, err := k.split(theta)
	if err != nil {
		return nil, err
	}
	k.factor, k.lengths = theta[0], append([]float64(nil), theta[1:]...)
	var parts []kernel.Kernel
	if len(ordered) > 0 {
		m, err := kernel.NewMatern52(theta[1:split]...)
		if err != nil {
			return nil, err
		}
		parts = append(parts, m)
	}
	if len(nominal) > 0 {
		h, err := kernel.NewHamming(theta[split:]...)
		if err != nil {
			return nil, err
		}
		parts = append(parts, h)
	}
	if len(parts) == 2 {
		for i, coordinates := range [][]int{ordered, nominal} {
			if parts[i], err = kernel.NewRestricted(parts[i], coordinates...); err != nil {
				return nil, err
			}
		}
		if parts[0], err = kernel.NewProduct(parts...); err != nil {
			return nil, err
		}
	}
	if k.Kernel, err = kernel.NewScaled(k.factor, parts[0]); err != nil {
		return nil, err
	}
	k.invert(split - 1)
	return k, nil
}

// withFidelity returns the kernel with a fidelity as its last coordinate, where
// the correlation falls with the given length; without one if that is 0.
func (k *covariance) withFidelity(length float64) (*covariance, error) {
	if length == 0 {
		return k, nil
	}
	q, d := *k, len(k.inverse)
	steps, err := kernel.NewMatern12(length)
	if err != nil {
		return nil, err
	}
	configuration := make([]int, d)
	for c := range configuration {
		configuration[c] = c
	}
	parts := []kernel.Kernel{k.Kernel, steps}
	for i, coordinates := range [][]int{configuration, {d}} {
		if parts[i], err = kernel.NewRestricted(parts[i], coordinates...); err != nil {
			return nil, err
		}
	}
	q.decay = 1 / length
	q.Kernel, err = kernel.NewProduct(parts...)
	return &q, err
}

// dim is the number of coordinates of inputs.
func (k *covariance) dim() int {
	if k.decay > 0 {
		return len(k.inverse) + 1
	}
	return len(k.inverse)
}

// apart is |δ_u − δ_v|/ℓ_δ.
func (k *covariance) apart(u, v []float64) float64 {
	if k.decay == 0 {
		return 0
	}
	d := len(k.inverse)
	return math.Abs(u[d]-v[d]) * k.decay
}

// split returns where in theta the length scales of categories begin.
func (k *covariance) split(theta []float64) (int, error) {
	full := 1 + len(k.ordered) + len(k.nominal)
	shared := 1 + min(len(k.ordered), 1) + min(len(k.nominal), 1)
	switch {
	case len(k.ordered)+len(k.nominal) == 0:
		return 0, fmt.Errorf("a kernel needs a coordinate")
	case len(theta) == full:
		return 1 + len(k.ordered), nil
	case len(theta) == shared:
		return 1 + min(len(k.ordered), 1), nil
	default:
		return 0, fmt.Errorf("%d hyper-parameters for %d coordinates", len(theta), full-1)
	}
}

// invert fills inverse in; the first n lengths are of ordered coordinates.
func (k *covariance) invert(n int) {
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

// theta are the hyper-parameters, as newCovariance takes them.
func (k *covariance) theta() []float64 {
	return append([]float64{k.factor}, k.lengths...)
}

// terms returns r² and Σ [u_c ≠ v_c]/ℓ_c + |δ_u − δ_v|/ℓ_δ.
func (k *covariance) terms(u, v []float64) (squared, differ float64) {
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

func dense(x kernel.Rows) *kernel.Points[float64] { return x.(*kernel.Points[float64]) }

// Eval implements [kernel.Kernel].
func (k *covariance) Eval(x kernel.Rows, i int, y kernel.Rows, j int) float64 {
	s, h := k.terms(dense(x).Row(i), dense(y).Row(j))
	a := math.Sqrt(5 * s)
	return k.factor * (1 + a + a*a/3) * math.Exp(-a-h)
}

// Diag implements [kernel.Kernel].
func (k *covariance) Diag(kernel.Rows, int) float64 { return k.factor }

// Prepare implements [kernel.Preparer].
func (k *covariance) Prepare(y kernel.Rows) kernel.Prepared { return kernel.Prepare(k.Kernel, y) }

// Parameters implements [kernel.Tunable].
func (k *covariance) Parameters() []kernel.Parameter {
	out := []kernel.Parameter{{Name: "factor", Value: k.factor}}
	for i, l := range k.lengths {
		out = append(out, kernel.Parameter{Name: fmt.Sprintf("length_scale[%d]", i), Value: l})
	}
	if k.decay > 0 {
		out = append(out, kernel.Parameter{Name: fidelityLength, Value: 1 / k.decay})
	}
	return out
}

// fidelityLength is the name of ℓ_δ.
const fidelityLength = "fidelity_length"

// WithLogParameters implements [kernel.Tunable].
func (k *covariance) WithLogParameters(logTheta []float64) (kernel.Kernel, error) {
	theta := make([]float64, len(logTheta))
	for i, v := range logTheta {
		theta[i] = math.Exp(v)
	}
	length := 0.0
	if k.decay > 0 {
		length = theta[len(theta)-1]
		theta = theta[:len(theta)-1]
	}
	q, err := newCovariance(k.ordered, k.nominal, theta)
	if err != nil {
		return nil, err
	}
	return q.withFidelity(length)
}

// AddLogGrad implements [kernel.Tunable]. With e = a·exp(−√5r − Σ…),
// ∂k/∂log ℓ_j = e·(5/3)(1 + √5r)(u_j − v_j)²/ℓ_j² and ∂k/∂log ℓ_c =
// k·[u_c ≠ v_c]/ℓ_c, and likewise for ℓ_δ.
func (k *covariance) AddLogGrad(dst []float64, scale float64, x kernel.Rows, i int, y kernel.Rows, j int) {
	u, v := dense(x).Row(i), dense(y).Row(j)
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	e := scale * k.factor * math.Exp(-a-h)
	value := e * (1 + a + a*a/3)
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

// AddInputGrad implements [kernel.Differentiable].
func (k *covariance) AddInputGrad(dst []float64, scale float64, x kernel.Rows, i int, y kernel.Rows, j int) {
	k.addGradient(dst, scale, dense(x).Row(i), dense(y).Row(j))
}

// addGradient adds scale·∂k(u, v)/∂u_c for ordered coordinates.
func (k *covariance) addGradient(dst []float64, scale float64, u, v []float64) {
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	slope := -scale * k.factor * math.Exp(-a-h) * 5 / 3 * (1 + a)
	for _, c := range k.ordered {
		dst[c] += slope * (u[c] - v[c]) * k.inverse[c]
	}
}

// nearness is k(u, v)/a, 1 for equal points.
func (k *covariance) nearness(u, v []float64) float64 {
	s, h := k.terms(u, v)
	a := math.Sqrt(5 * s)
	return (1 + a + a*a/3) * math.Exp(-a-h)
}
