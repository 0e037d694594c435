package kernel

import "fmt"

// Kernel is a positive semi-definite function k(x, y) of two inputs. It is
// immutable and safe for concurrent use.
//
// Eval and Diag may be called only with rows that Check accepts, of equal dimension.
// Otherwise they panic, also on an index out of range.
type Kernel interface {
	// Eval returns k(x_i, y_j) = k(y_j, x_i).
	Eval(x Rows, i int, y Rows, j int) float64
	// Diag returns k(x_i, x_i), the same number as Eval(x, i, x, i).
	Diag(x Rows, i int) float64
	// Bound returns κ² ≥ sup_x k(x, x), or +Inf if no bound is known.
	Bound() float64
	// Check returns a [*TypeError] or a [*DimensionError] if the kernel cannot read x,
	// and nil otherwise. It does not check the values of x.
	Check(x Rows) error
	// Spec names the kernel and its parameters, so that [New] can build an equal one.
	Spec() Spec
}

// The interfaces below are optional. [Prepare], [AsRadial] and [AsTunable]
// discover them, so that callers never need concrete types.

// Preparer is a Kernel with its own way to evaluate many pairs at once.
type Preparer interface {
	Kernel
	// Prepare packs the centres y, which Check has accepted, for [Prepared].Fill. It may keep y.
	Prepare(y Rows) Prepared
}

// Tunable is a Kernel with positive continuous hyper-parameters θ_1 … θ_p.
// All gradients are with respect to log θ, the scale on which they are fitted.
type Tunable interface {
	Kernel
	// Parameters returns the hyper-parameters in a fixed order.
	Parameters() []Parameter
	// WithLogParameters returns the same kernel with θ = exp(logTheta). It returns a
	// [*ShapeError] if the length is not p, and a [*ParameterError] where exp(logTheta)
	// is outside the domain.
	WithLogParameters(logTheta []float64) (Kernel, error)
	// AddLogGrad adds scale·∂k(x_i, y_j)/∂log θ to dst, which has length p.
	AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int)
}

// checkTheta verifies the number of parameters.
func checkTheta(k Tunable, logTheta []float64) error {
	if p := len(k.Parameters()); len(logTheta) != p {
		return &ShapeError{In: "kernel", What: "log parameters", Got: len(logTheta), Want: fmt.Sprint(p)}
	}
	return nil
}

// Parameter is one hyper-parameter with its name, such as "length_scale[2]", and value.
type Parameter struct {
	Name  string
	Value float64
}

// AsTunable returns k as a Tunable if it is one.
func AsTunable(k Kernel) (Tunable, bool) {
	t, ok := k.(Tunable)
	return t, ok
}
