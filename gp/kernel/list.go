package kernel

import "slices"

var _ Rows = List[string](nil)

// List is a sequence of inputs of any type, such as strings, graphs or configurations.
type List[X any] []X

// Len returns the number of items.
func (l List[X]) Len() int { return len(l) }

// Dim returns NoDim.
func (l List[X]) Dim() int { return NoDim }

// Row returns item i.
func (l List[X]) Row(i int) X { return l[i] }

// Slice returns items i ≤ r < j as a view.
func (l List[X]) Slice(i, j int) Rows { return l[i:j:j] }

// Select returns a list of the chosen items.
func (l List[X]) Select(idx []int) Rows {
	out := make(List[X], len(idx))
	for r, i := range idx {
		out[r] = l[i]
	}
	return out
}

// Concat returns the items of l followed by those of rest.
func (l List[X]) Concat(rest ...Rows) (Rows, error) {
	out := slices.Clone(l)
	for _, r := range rest {
		q, ok := r.(List[X])
		if !ok {
			return nil, concatTypeError(l, r)
		}
		out = append(out, q...)
	}
	return out, nil
}
