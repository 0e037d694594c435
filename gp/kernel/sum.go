package kernel

var (
	_ Preparer       = (*Sum)(nil)
	_ Differentiable = (*Sum)(nil)
	_ Tunable        = (*Sum)(nil)
	_ compound       = (*Sum)(nil)
)

// Sum is k(x, y) = Σ_p k_p(x, y).
type Sum struct{ partList }

// NewSum returns the sum of one or more kernels.
func NewSum(parts ...Kernel) (*Sum, error) {
	l, err := newPartList("sum", parts)
	if err != nil {
		return nil, err
	}
	return &Sum{l}, nil
}

// Eval returns k(x_i, y_j).
func (k *Sum) Eval(x Rows, i int, y Rows, j int) float64 {
	sum := 0.0
	for _, part := range k.list {
		sum += part.Eval(x, i, y, j)
	}
	return sum
}

// Diag returns k(x_i, x_i).
func (k *Sum) Diag(x Rows, i int) float64 {
	sum := 0.0
	for _, part := range k.list {
		sum += part.Diag(x, i)
	}
	return sum
}

// Bound returns the sum of the parts' bounds.
func (k *Sum) Bound() float64 {
	sum := 0.0
	for _, part := range k.list {
		sum += part.Bound()
	}
	return sum
}

// Prepare packs y for every part.
func (k *Sum) Prepare(y Rows) Prepared { return k.prepare(y, addTo) }

func addTo(dst, part []float64) {
	for j, v := range part {
		dst[j] += v
	}
}

// AddInputGrad adds scale·∂k(x_i, y_j)/∂x_i to dst.
func (k *Sum) AddInputGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	for _, part := range k.list {
		part.(Differentiable).AddInputGrad(dst, scale, x, i, y, j)
	}
}

// WithLogParameters returns the sum with other parameters.
func (k *Sum) WithLogParameters(logTheta []float64) (Kernel, error) {
	l, err := k.withLogParameters(logTheta)
	if err != nil {
		return nil, err
	}
	return &Sum{l}, nil
}

// AddLogGrad adds scale·∂k(x_i, y_j)/∂log θ to dst.
func (k *Sum) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	for p, part := range k.list {
		if t, ok := AsTunable(part); ok {
			t.AddLogGrad(dst, scale, x, i, y, j)
			dst = dst[k.tuned[p]:]
		}
	}
}

// Spec describes the sum.
func (k *Sum) Spec() Spec { return Spec{Name: "sum", Parts: specs(k.list)} }
