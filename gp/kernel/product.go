package kernel

var (
	_ Preparer       = (*Product)(nil)
	_ Differentiable = (*Product)(nil)
	_ Tunable        = (*Product)(nil)
	_ compound       = (*Product)(nil)
)

// Product is k(x, y) = Π_p k_p(x, y).
type Product struct{ partList }

// NewProduct returns the product of one or more kernels.
func NewProduct(parts ...Kernel) (*Product, error) {
	l, err := newPartList("product", parts)
	if err != nil {
		return nil, err
	}
	return &Product{l}, nil
}

// Eval returns k(x_i, y_j).
func (k *Product) Eval(x Rows, i int, y Rows, j int) float64 {
	product := 1.0
	for _, part := range k.list {
		product *= part.Eval(x, i, y, j)
	}
	return product
}

// Diag returns k(x_i, x_i).
func (k *Product) Diag(x Rows, i int) float64 {
	product := 1.0
	for _, part := range k.list {
		product *= part.Diag(x, i)
	}
	return product
}

// Bound returns the product of the parts' bounds.
func (k *Product) Bound() float64 {
	product := 1.0
	for _, part := range k.list {
		b := part.Bound()
		if b == 0 {
			return 0
		}
		product *= b
	}
	return product
}

// Prepare packs y for every part.
func (k *Product) Prepare(y Rows) Prepared { return k.prepare(y, multiplyTo) }

func multiplyTo(dst, part []float64) {
	for j, v := range part {
		dst[j] *= v
	}
}

// others returns scale times the product of all parts except p. With it the gradient
// needs no division by a factor that may be 0.
func (k *Product) others(p int, scale float64, x Rows, i int, y Rows, j int) float64 {
	for q, part := range k.list {
		if q != p {
			scale *= part.Eval(x, i, y, j)
		}
	}
	return scale
}

// AddInputGrad adds scale·∂k(x_i, y_j)/∂x_i to dst.
func (k *Product) AddInputGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	for p, part := range k.list {
		part.(Differentiable).AddInputGrad(dst, k.others(p, scale, x, i, y, j), x, i, y, j)
	}
}

// WithLogParameters returns the product with other parameters.
func (k *Product) WithLogParameters(logTheta []float64) (Kernel, error) {
	l, err := k.withLogParameters(logTheta)
	if err != nil {
		return nil, err
	}
	return &Product{l}, nil
}

// AddLogGrad adds scale·∂k(x_i, y_j)/∂log θ to dst.
func (k *Product) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	for p, part := range k.list {
		if t, ok := AsTunable(part); ok {
			t.AddLogGrad(dst, k.others(p, scale, x, i, y, j), x, i, y, j)
			dst = dst[k.tuned[p]:]
		}
	}
}

// Spec describes the product.
func (k *Product) Spec() Spec { return Spec{Name: "product", Parts: specs(k.list)} }
