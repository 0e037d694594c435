package space

import (
	"math"
	"slices"
	"strings"
)

// Space is a valid set of parameters and their encoding. It is immutable and safe for concurrent
// use. The zero Space, like New(), has no parameters and one configuration, the empty one.
type Space struct {
	members []member
	order   []int          // indices of members, parents before children
	byName  []int          // indices of members in order of name
	index   map[string]int // name → index
	axes    []int          // coordinate → index of the member

	constraints []constraint
	equations   []equation  // of the constraints
	anchors     [][]float64 // points that keep the constraints, not empty if there are any
}

// member is a parameter with the data that New derived from it.
type member struct {
	Parameter
	axis       axis // nil for a constant
	coordinate int  // -1 for a constant
	conditions []condition
	depth      int // of conditions above it
	line       int // in the file it was read from, or 0
}

// New returns the space of the parameters, in the order given. If they have faults, the
// error joins an [Error] for each. See [Faults].
func New(parameters ...Parameter) (*Space, error) {
	c := &checker{src: &source{words: ownDialect}}
	s := c.compile(parameters)
	if c.any() {
		return nil, c.err()
	}
	return s, nil
}

// compile checks and normalises the parameters and builds the encoding. If c has no faults
// then, the result is valid.
func (c *checker) compile(parameters []Parameter) *Space {
	if n := len(parameters); n > MaxParameters {
		c.add(&Error{Value: itoa(n) + " parameters", Rule: "a space has at most " + itoa(MaxParameters), Remedy: "fix the ones that matter least"})
		return nil
	}
	s := &Space{members: make([]member, len(parameters)), index: make(map[string]int, len(parameters))}
	for i, p := range parameters {
		s.members[i] = c.member(i, p.clone())
	}
	c.names(s)
	if c.any() {
		return nil // conditions on faulty parents would only repeat the fault
	}
	c.conditions(s)
	if c.any() {
		return nil
	}
	s.number()
	return s
}

// number assigns the coordinates in order of declaration.
func (s *Space) number() {
	for i := range s.members {
		m := &s.members[i]
		m.coordinate = -1
		if m.axis != nil {
			m.coordinate = len(s.axes)
			s.axes = append(s.axes, i)
		}
		s.byName = append(s.byName, i)
	}
	slices.SortFunc(s.byName, func(a, b int) int { return strings.Compare(s.members[a].Name, s.members[b].Name) })
}

// Parameters returns the parameters in order of declaration, normalised as the encoding
// uses them. Bounds and steps have the parameter's own kind, an int has a step, and numbers
// of one list have one kind. The caller owns the result.
func (s *Space) Parameters() []Parameter {
	out := make([]Parameter, len(s.members))
	for i := range s.members {
		out[i] = s.members[i].clone()
	}
	return out
}

// Len returns the number of parameters, including constants.
func (s *Space) Len() int { return len(s.members) }

// Lookup returns the named parameter as [Space.Parameters] does.
func (s *Space) Lookup(name string) (p Parameter, ok bool) {
	i, ok := s.index[name]
	if !ok {
		return Parameter{}, false
	}
	return s.members[i].clone(), true
}

// Dim returns the number of coordinates of the cube, one for each parameter that is not constant.
func (s *Space) Dim() int { return len(s.axes) }

// Coordinate returns the named parameter's coordinate. If there is no such parameter or it
// is constant, ok is false.
func (s *Space) Coordinate(name string) (i int, ok bool) {
	k, ok := s.index[name]
	if !ok || s.members[k].axis == nil {
		return 0, false
	}
	return s.members[k].coordinate, true
}

// Axis describes one coordinate of the cube.
type Axis struct {
	Parameter   string
	Levels      uint64 // number of values, each with an equal or logarithmic cell, 0 if continuous
	Ordered     bool   // near coordinates mean near values, false for categoricals only
	Conditional bool   // the parameter is active only under conditions
}

// Axes describes the coordinates in order.
func (s *Space) Axes() []Axis {
	out := make([]Axis, len(s.axes))
	for i, k := range s.axes {
		m := &s.members[k]
		out[i] = Axis{Parameter: m.Name, Levels: m.axis.levels(), Ordered: m.Type != TypeCategorical, Conditional: len(m.conditions) > 0}
	}
	return out
}

// Equal reports whether s and t have equal parameters and constraints in the same order.
func (s *Space) Equal(t *Space) bool {
	return slices.Equal(s.Constraints(), t.Constraints()) && slices.EqualFunc(s.members, t.members, func(a, b member) bool { return a.Parameter.Equal(b.Parameter) })
}

// newAxis returns the axis of a normalised parameter. It is nil for a constant, and for a
// stepped float whose points are not distinct.
func newAxis(p *Parameter) axis {
	switch p.Type {
	case TypeFloat:
		return newFloatAxis(p)
	case TypeInt:
		low, _ := p.Low.AsInt()
		high, _ := p.High.AsInt()
		step, _ := p.Step.AsInt()
		if p.Scale != Linear && low < high {
			return newLogIntAxis(low, high, p.Scale == ReverseLog)
		}
		return newIntAxis(low, high, uint64(step))
	case TypeOrdinal, TypeCategorical:
		return newListAxis(p.Values)
	default:
		return nil
	}
}

func newFloatAxis(p *Parameter) axis {
	low, _ := p.Low.AsFloat()
	high, _ := p.High.AsFloat()
	step, stepped := p.Step.AsFloat()
	switch {
	case low == high, stepped && step > high-low && !math.IsInf(high-low, 0):
		return singleAxis{p.Low}
	case stepped:
		if g := newGridAxis(low, high, step); g != nil {
			return g
		}
		return nil
	default:
		return newContinuousAxis(low, high, p.Scale)
	}
}
