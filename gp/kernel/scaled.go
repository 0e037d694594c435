package kernel

import "math"

var (
	_ Preparer = (*Scaled)(nil)
	_ Tunable  = (*Scaled)(nil)
)

// Scaled is a·k(x, y) with a factor a > 0, the signal variance, in the square of the
// units of the output. The factor is tunable.
type Scaled struct {
	factor float64
	k      Kernel
}

// NewScaled returns factor·k.
func NewScaled(factor float64, k Kernel) (*Scaled, error) {
	if !(factor > 0) || math.IsInf(factor, 1) {
		return nil, parameterError("scaled", "factor", factor, "> 0 and finite")
	}
	return &Scaled{factor, k}, nil
}

// Eval returns a·k(x_i, y_j).
func (k *Scaled) Eval(x Rows, i int, y Rows, j int) float64 {
	return k.factor * k.k.Eval(x, i, y, j)
}

// Diag returns a·k(x_i, x_i).
func (k *Scaled) Diag(x Rows, i int) float64 { return k.factor * k.k.Diag(x, i) }

// Bound returns a·κ².
func (k *Scaled) Bound() float64 { return k.factor * k.k.Bound() }

// Check is the Check of the scaled kernel.
func (k *Scaled) Check(x Rows) error { return k.k.Check(x) }

// Prepare packs y for the scaled kernel.
func (k *Scaled) Prepare(y Rows) Prepared {
	inner := Prepare(k.k, y)
	if p, ok := inner.(*panelPrepared); ok {
		return p.scaled(k.factor, k.prepared(p.other, y.Len()))
	}
	return k.prepared(inner, y.Len())
}

func (k *Scaled) prepared(inner Prepared, m int) Prepared {
	return &mappedPrepared{inner, m, func(row []float64) {
		for j := range row {
			row[j] *= k.factor
		}
	}}
}

// Parameters returns "factor", then those of the scaled kernel.
func (k *Scaled) Parameters() []Parameter {
	out := []Parameter{{"factor", k.factor}}
	if t, ok := AsTunable(k.k); ok {
		out = append(out, t.Parameters()...)
	}
	return out
}

// WithLogParameters returns the kernel with other parameters.
func (k *Scaled) WithLogParameters(logTheta []float64) (Kernel, error) {
	if err := checkTheta(k, logTheta); err != nil {
		return nil, err
	}
	inner := k.k
	if t, ok := AsTunable(inner); ok {
		var err error
		if inner, err = t.WithLogParameters(logTheta[1:]); err != nil {
			return nil, err
		}
	}
	return orNil(NewScaled(math.Exp(logTheta[0]), inner))
}

// AddLogGrad adds scale·∂(a·k(x_i, y_j))/∂log θ to dst.
func (k *Scaled) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	dst[0] += scale * k.Eval(x, i, y, j)
	if t, ok := AsTunable(k.k); ok {
		t.AddLogGrad(dst[1:], scale*k.factor, x, i, y, j)
	}
}

// Spec describes the scaled kernel.
func (k *Scaled) Spec() Spec {
	return Spec{Name: "scaled", Params: map[string]float64{"factor": k.factor}, Parts: []Spec{k.k.Spec()}}
}
