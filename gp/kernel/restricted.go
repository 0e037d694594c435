package kernel

import (
	"fmt"
	"slices"
)

var (
	_ Preparer       = (*Restricted)(nil)
	_ Differentiable = (*Restricted)(nil)
	_ Tunable        = (*Restricted)(nil)
	_ compound       = (*Restricted)(nil)
)

// Restricted is a kernel applied to only some coordinates of its inputs. The inner
// kernel gets them as dense points in the given order. Blocks copy the coordinates
// once. Eval and the gradients allocate for each pair.
type Restricted struct {
	k      Kernel
	coords []int
}

// NewRestricted returns k on the given coordinates, counted from 0. There must be at
// least one, and all must differ.
func NewRestricted(k Kernel, coords ...int) (*Restricted, error) {
	sorted := slices.Clone(coords)
	slices.Sort(sorted)
	switch {
	case len(coords) == 0:
		return nil, &SpecError{Name: "restricted", Reason: "it has no coordinates"}
	case sorted[0] < 0:
		return nil, &SpecError{Name: "restricted", Reason: fmt.Sprintf("coordinate %d is negative", sorted[0])}
	case len(slices.Compact(sorted)) < len(coords):
		return nil, &SpecError{Name: "restricted", Reason: "a coordinate occurs twice"}
	}
	return &Restricted{k, slices.Clone(coords)}, nil
}

func (k *Restricted) parts() []Kernel { return []Kernel{k.k} }

// Coordinates returns the coordinates that the kernel reads.
func (k *Restricted) Coordinates() []int { return slices.Clone(k.coords) }

// on returns row i of x, restricted to the coordinates, as one row.
func (k *Restricted) on(x Rows, i int) Rows { return asNumeric(x).gather(nil, i, i+1, k.coords) }

// Eval returns k(x_i, y_j).
func (k *Restricted) Eval(x Rows, i int, y Rows, j int) float64 {
	return k.k.Eval(k.on(x, i), 0, k.on(y, j), 0)
}

// Diag returns k(x_i, x_i).
func (k *Restricted) Diag(x Rows, i int) float64 { return k.k.Diag(k.on(x, i), 0) }

// Bound returns the bound of the inner kernel.
func (k *Restricted) Bound() float64 { return k.k.Bound() }

// Check accepts dense and sparse rows that have the coordinates.
func (k *Restricted) Check(x Rows) error {
	v, ok := x.(numeric)
	if !ok {
		return &TypeError{Kernel: "restricted", Got: fmt.Sprintf("%T", x), Want: "Points or CSR"}
	}
	if need := slices.Max(k.coords) + 1; x.Dim() < need {
		return &DimensionError{What: "input of the restricted kernel", Got: x.Dim(), Want: need}
	}
	return k.k.Check(v.gather(nil, 0, 0, k.coords))
}

// Prepare packs the coordinates of y for the inner kernel.
func (k *Restricted) Prepare(y Rows) Prepared {
	rows := asNumeric(y)
	return &restrictedPrepared{Prepare(k.k, rows.gather(nil, 0, rows.Len(), k.coords)), k.coords}
}

type restrictedPrepared struct {
	Prepared
	coords []int
}

func (p *restrictedPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	defer s.Release(s.Mark())
	p.Prepared.Fill(dst, ld, asNumeric(x).gather(s, i0, i1, p.coords), 0, i1-i0, s)
}

// AddInputGrad adds scale·∂k(x_i, y_j)/∂x_i to dst. It is 0 outside the coordinates.
func (k *Restricted) AddInputGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	inner := make([]float64, len(k.coords))
	k.k.(Differentiable).AddInputGrad(inner, scale, k.on(x, i), 0, k.on(y, j), 0)
	for p, c := range k.coords {
		dst[c] += inner[p]
	}
}

// Parameters returns those of the inner kernel.
func (k *Restricted) Parameters() []Parameter { return prefixed("", k.k) }

// WithLogParameters returns the kernel with other parameters.
func (k *Restricted) WithLogParameters(logTheta []float64) (Kernel, error) {
	if err := checkTheta(k, logTheta); err != nil {
		return nil, err
	}
	t, ok := AsTunable(k.k)
	if !ok {
		return k, nil
	}
	inner, err := t.WithLogParameters(logTheta)
	if err != nil {
		return nil, err
	}
	return &Restricted{inner, k.coords}, nil
}

// AddLogGrad adds scale·∂k(x_i, y_j)/∂log θ to dst.
func (k *Restricted) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	if t, ok := AsTunable(k.k); ok {
		t.AddLogGrad(dst, scale, k.on(x, i), 0, k.on(y, j), 0)
	}
}

// Spec describes the restriction.
func (k *Restricted) Spec() Spec {
	return Spec{Name: "restricted", Coordinates: slices.Clone(k.coords), Parts: specs(k.parts())}
}
