package kernel

import (
	"fmt"
	"slices"
)

// partList is the kernels of which a Sum or a Product is made.
type partList struct {
	list  []Kernel
	tuned []int // number of hyper-parameters of each
}

func newPartList(name string, parts []Kernel) (partList, error) {
	if len(parts) == 0 {
		return partList{}, &SpecError{Name: name, Reason: "it has no parts"}
	}
	return countTuned(slices.Clone(parts)), nil
}

func countTuned(list []Kernel) partList {
	l := partList{list: list, tuned: make([]int, len(list))}
	for i, k := range list {
		l.tuned[i] = len(prefixed("", k))
	}
	return l
}

func (l partList) parts() []Kernel { return l.list }

// Check returns the first error of a part.
func (l partList) Check(x Rows) error {
	for _, k := range l.list {
		if err := k.Check(x); err != nil {
			return err
		}
	}
	return nil
}

// Parameters returns those of the tunable parts in turn, named like
// "parts[1].length_scale".
func (l partList) Parameters() []Parameter {
	var out []Parameter
	for i, k := range l.list {
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
		return partList{}, &ShapeError{In: "kernel", What: "log parameters", Got: len(logTheta), Want: fmt.Sprint(p)}
	}
	out := slices.Clone(l.list)
	for i, k := range l.list {
		if t, ok := AsTunable(k); ok {
			var err error
			if out[i], err = t.WithLogParameters(logTheta[:l.tuned[i]]); err != nil {
				return partList{}, err
			}
			logTheta = logTheta[l.tuned[i]:]
		}
	}
	return countTuned(out), nil
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
	for _, k := range l.list {
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
