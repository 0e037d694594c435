package kernel

import (
	"fmt"
	"slices"
)

var (
	_ Preparer = (*combined)(nil)
	_ Tunable  = (*combined)(nil)
)

// combined is the sum or the product of kernels.
type combined struct {
	product bool
	list    []Kernel
	tuned   []int // number of hyper-parameters of each
}

// NewSum returns k(x, y) = Σ_p k_p(x, y) of one or more kernels.
func NewSum(parts ...Kernel) (Kernel, error) { return combine(false, parts) }

// NewProduct returns k(x, y) = Π_p k_p(x, y) of one or more kernels.
func NewProduct(parts ...Kernel) (Kernel, error) { return combine(true, parts) }

func combine(product bool, parts []Kernel) (Kernel, error) {
	k := &combined{product: product, list: slices.Clone(parts), tuned: make([]int, len(parts))}
	if len(parts) == 0 {
		return nil, &SpecError{Name: k.name(), Reason: "it has no parts"}
	}
	for i, part := range parts {
		k.tuned[i] = len(prefixed("", part))
	}
	return k, nil
}

func (k *combined) name() string {
	if k.product {
		return "product"
	}
	return "sum"
}

// fold combines a number of each part.
func (k *combined) fold(of func(part Kernel) float64) float64 {
	out := of(k.list[0])
	for _, part := range k.list[1:] {
		if v := of(part); k.product {
			out *= v
		} else {
			out += v
		}
	}
	return out
}

func (k *combined) Eval(x Rows, i int, y Rows, j int) float64 {
	return k.fold(func(part Kernel) float64 { return part.Eval(x, i, y, j) })
}

func (k *combined) Diag(x Rows, i int) float64 {
	return k.fold(func(part Kernel) float64 { return part.Diag(x, i) })
}

func (k *combined) Bound() float64 {
	if k.product && slices.ContainsFunc(k.list, func(part Kernel) bool { return part.Bound() == 0 }) {
		return 0 // also where another has none
	}
	return k.fold(Kernel.Bound)
}

// Check returns the first error of a part.
func (k *combined) Check(x Rows) error {
	for _, part := range k.list {
		if err := part.Check(x); err != nil {
			return err
		}
	}
	return nil
}

// factor returns scale times what part p is multiplied with. That needs no division by a
// factor that may be 0.
func (k *combined) factor(p int, scale float64, x Rows, i int, y Rows, j int) float64 {
	for q, part := range k.list {
		if k.product && q != p {
			scale *= part.Eval(x, i, y, j)
		}
	}
	return scale
}

func (k *combined) AddLogGrad(dst []float64, scale float64, x Rows, i int, y Rows, j int) {
	for p, part := range k.list {
		if t, ok := AsTunable(part); ok {
			t.AddLogGrad(dst, k.factor(p, scale, x, i, y, j), x, i, y, j)
			dst = dst[k.tuned[p]:]
		}
	}
}

// Parameters returns those of the tunable parts in turn, named like "parts[1].length_scale".
func (k *combined) Parameters() []Parameter {
	var out []Parameter
	for i, part := range k.list {
		out = append(out, prefixed(fmt.Sprintf("parts[%d].", i), part)...)
	}
	return out
}

func prefixed(prefix string, k Kernel) []Parameter {
	t, ok := AsTunable(k)
	if !ok {
		return nil
	}
	out := t.Parameters()
	for p := range out {
		out[p].Name = prefix + out[p].Name
	}
	return out
}

func (k *combined) WithLogParameters(logTheta []float64) (Kernel, error) {
	if err := checkTheta(k, logTheta); err != nil {
		return nil, err
	}
	list := slices.Clone(k.list)
	for i, part := range k.list {
		if t, ok := AsTunable(part); ok {
			var err error
			if list[i], err = t.WithLogParameters(logTheta[:k.tuned[i]]); err != nil {
				return nil, err
			}
			logTheta = logTheta[k.tuned[i]:]
		}
	}
	return combine(k.product, list)
}

func (k *combined) Spec() Spec { return Spec{Name: k.name(), Parts: specs(k.list)} }

// combinedPrepared fills a block part by part and combines them element by element.
type combinedPrepared struct {
	parts   []Prepared
	m       int
	product bool
}

func (k *combined) Prepare(y Rows) Prepared {
	p := &combinedPrepared{m: y.Len(), product: k.product}
	for _, part := range k.list {
		p.parts = append(p.parts, Prepare(part, y))
	}
	return p
}

func (p *combinedPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	defer s.Release(s.Mark())
	p.parts[0].Fill(dst, ld, x, i0, i1, s)
	if len(p.parts) == 1 {
		return
	}
	block := s.Floats((i1 - i0) * p.m)
	for _, part := range p.parts[1:] {
		part.Fill(block, p.m, x, i0, i1, s)
		for i := range i1 - i0 {
			to, from := dst[i*ld:][:p.m], block[i*p.m:][:p.m]
			if !p.product {
				addTo(to, from)
				continue
			}
			for j, v := range from {
				to[j] *= v
			}
		}
	}
}

func addTo(dst, part []float64) {
	for j, v := range part {
		dst[j] += v
	}
}
