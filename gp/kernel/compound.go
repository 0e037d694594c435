package kernel

import (
	"fmt"
	"slices"
)

// parts are the kernels of which a Sum or a Product is made.
type partList []Kernel

func newPartList(name string, parts []Kernel) (partList, error) {
	if len(parts) == 0 {
		return nil, &SpecError{Name: name, Reason: "it has no parts"}
	}
	return slices.Clone(parts), nil
}

func (l partList) parts() []Kernel { return l }

// Check returns the first objection of a part.
func (l partList) Check(x Rows) error {
	for _, k := range l {
		if err := k.Check(x); err != nil {
			return err
		}
	}
	return nil
}

// Parameters returns those of the tunable parts in turn, named as
// "parts[1].length_scale".
func (l partList) Parameters() []Parameter {
	var out []Parameter
	for i, k := range l {
		out = append(out, prefixed(fmt.Sprintf("parts[%d].", i), k)...)
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

// withLogParameters returns the parts with new parameters.
func (l partList) withLogParameters(logTheta []float64) (partList, error) {
	if p := len(l.Parameters()); len(logTheta) != p {
		return nil, &ShapeError{What: "log parameters", Got: len(logTheta), Want: fmt.Sprint(p)}
	}
	out := slices.Clone(l)
	for i, k := range l {
		if t, ok := AsTunable(k); ok {
			p := len(t.Parameters())
			var err error
			if out[i], err = t.WithLogParameters(logTheta[:p]); err != nil {
				return nil, err
			}
			logTheta = logTheta[p:]
		}
	}
	return out, nil
}

// partsPrepared fills a block part by part and combines them element by
// element.
type partsPrepared struct {
	parts   []Prepared
	m       int
	combine func(dst, part []float64)
}

func (l partList) prepare(y Rows, combine func(dst, part []float64)) Prepared {
	p := &partsPrepared{m: y.Len(), combine: combine}
	for _, k := range l {
		p.parts = append(p.parts, Prepare(k, y))
	}
	return p
}

func (p *partsPrepared) Fill(dst []float64, ld int, x Rows, i0, i1 int, s *Scratch) {
	defer s.Release(s.Mark())
	p.parts[0].Fill(dst, ld, x, i0, i1, s)
	if len(p.parts) == 1 {
		return
	}
	block := s.Floats((i1 - i0) * p.m)
	for _, part := range p.parts[1:] {
		part.Fill(block, p.m, x, i0, i1, s)
		for i := range i1 - i0 {
			p.combine(dst[i*ld:][:p.m], block[i*p.m:][:p.m])
		}
	}
}
