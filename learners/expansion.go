package learners

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Expansion is f(x) = Σ_j k(x, c_j) a_j with M centres c_j and coefficients a_j ∈ ℝᶜ.
type Expansion struct {
	kernel  kernel.Kernel
	centers kernel.Rows
	coef    []float64 // M×c
	c       int
	link    Link
	mapping []float64 // L, d×d, or nil for I
}

var _ Linked = (*Expansion)(nil)

// NewExpansion returns the expansion with the M centres and the coefficients coef, M×c
// row-major. It keeps both, and the caller must not change them any more. The errors
// are those of k.Check, *kernel.ShapeError and *kernel.NonFiniteError.
func NewExpansion(k kernel.Kernel, centers kernel.Rows, coef []float64, c int) (*Expansion, error) {
	if err := k.Check(centers); err != nil {
		return nil, fmt.Errorf("centers: %w", err)
	}
	if c < 1 || centers.Len() < 1 || len(coef) != centers.Len()*c {
		return nil, &kernel.ShapeError{In: "learners", What: "coefficients (M×c)", Got: len(coef), Want: fmt.Sprintf("M·c = %d·%d, both at least 1", centers.Len(), c)}
	}
	if err := kernel.CheckFinite("centers", centers); err != nil {
		return nil, err
	}
	if err := checkFinite("coefficients", coef, c); err != nil {
		return nil, err
	}
	return &Expansion{kernel: k, centers: centers, coef: coef, c: c}, nil
}

// WithLink returns the expansion with outputs of another meaning.
func (e *Expansion) WithLink(l Link) *Expansion {
	with := *e
	with.link = l
	return &with
}

// WithMap returns x ↦ f(xL) for a map L, d×d row-major.
func (e *Expansion) WithMap(l []float64) *Expansion {
	with := *e
	with.mapping = l
	return &with
}

// Dim returns d.
func (e *Expansion) Dim() int { return e.centers.Dim() }

// Outputs returns c.
func (e *Expansion) Outputs() int { return e.c }

// Link says what the outputs mean.
func (e *Expansion) Link() Link { return e.link }

// Kernel returns k.
func (e *Expansion) Kernel() kernel.Kernel { return e.kernel }

// Centers returns the M centres.
func (e *Expansion) Centers() kernel.Rows { return e.centers }

// Coefficients returns a, M×c row-major, which the caller must not change.
func (e *Expansion) Coefficients() []float64 { return e.coef }

// Predict sets dst, n×c, to f(x_i), with n·M kernel evaluations. Its errors are those
// of kernel.Operator.
func (e *Expansion) Predict(ctx context.Context, dst []float64, x kernel.Source) error {
	if err := checkPredict(e, dst, x); err != nil {
		return err
	}
	if x.Len() == 0 {
		return nil
	}
	if e.mapping != nil {
		x = data.MapInputs(x, e.mapping)
	}
	op, err := kernel.NewOperator(e.kernel, x, e.centers, kernel.Options{})
	if err != nil {
		return err
	}
	defer op.Close()
	return op.Apply(ctx, dst, e.coef)
}

// checkPredict verifies the shapes of a prediction.
func checkPredict(m Model, dst []float64, x kernel.Source) error {
	if x.Dim() != m.Dim() {
		return &kernel.DimensionError{What: "x", Got: x.Dim(), Want: m.Dim()}
	}
	if len(dst) != x.Len()*m.Outputs() {
		return &kernel.ShapeError{In: "learners", What: "outputs (n×c)", Got: len(dst), Want: fmt.Sprintf("n·c = %d·%d", x.Len(), m.Outputs())}
	}
	return nil
}

// checkFinite returns a *kernel.NonFiniteError for the first value of a, with c
// columns, that is not finite.
func checkFinite(what string, a []float64, c int) error {
	for i, v := range a {
		if v-v != 0 {
			return &kernel.NonFiniteError{What: what, Row: i / c, Col: i % c, Value: v}
		}
	}
	return nil
}
