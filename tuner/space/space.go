package space

import (
	"math"
	"slices"
	"strings"
)

// Space is a sound set of parameters and their encoding. It is immutable and
// safe for concurrent use. The zero Space, like New(), has no parameters and
// one configuration, the empty one.
type Space struct {
	members []member
	order   []int          // indices of members, parents before children
	byName  []int          // indices of members in order of name
	index   map[string]int // name → index
	axes    []int          // coordinate → index of the member
}

// member is a parameter together with what New derived from it.
type member struct {
	Parameter
	axis       axis // nil for a constant
	coordinate int  // -1 for a constant
	conditions []condition
	depth      int // of conditions above it
	line       int // in the file it was read from, or 0
}

// New returns the space of the parameters, in the order given. If they are not
// sound the error joins an [Error] for every fault found; see [Faults].
func New(parameters ...Parameter) (*Space, error) {
	c := &checker{src: &source{words: ownDialect()}}
	s := c.compile(parameters)
	if c.any() {
		return nil, c.err()
	}
	return s, nil
}

// compile checks and normalises the parameters and builds the encoding. The
// result is sound if c has no faults then.
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
		return nil // conditions on unsound parents would only echo
	}
	c.conditions(s)
	if c.any() {
		return nil
	}
	s.number()
	return s
}

// number gives the coordinates in order of declaration.
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

// Parameters returns the parameters in order of declaration, normalised as the
// encoding uses them: bounds and steps of the parameter's own kind, an int's
// step given, numbers of one list of one kind. The caller owns the result.
func (s *Space) Parameters() []Parameter {
	out := make([]Parameter, len(s.members))
	for i := range s.members {
		out[i] = s.members[i].clone()
	}
	return out
}

// Len is the number of parameters, constants included.
func (s *Space) Len() int { return len(s.members) }

// Lookup returns the named parameter as [Space.Parameters] does.
func (s *Space) Lookup(name string) (p Parameter, ok bool) {
	i, ok := s.index[name]
	if !ok {
		return Parameter{}, false
	}
	return s.members[i].clone(), true
}

// Dim is the number of coordinates of the cube: of parameters that are not
// constant.
func (s *Space) Dim() int { return len(s.axes) }

// Coordinate returns the named parameter's coordinate; ok is false if there is
// no such parameter or it is constant.
func (s *Space) Coordinate(name string) (i int, ok bool) {
	k, ok := s.index[name]
	if !ok || s.members[k].axis == nil {
		return 0, false
	}
	return s.members[k].coordinate, true
}

// Axis says what one coordinate of the cube stands for.
type Axis struct {
	Parameter   string
	Levels      uint64 // number of values, each with an equal or logarithmic cell; 0 if continuous
	Ordered     bool   // near coordinates mean near values: all but categoricals
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

// Equal tells whether s and t have equal parameters in the same order.
func (s *Space) Equal(t *Space) bool {
	return slices.EqualFunc(s.members, t.members, func(a, b member) bool { return a.Parameter.Equal(b.Parameter) })
}

// newAxis returns the axis of a normalised parameter; nil for a constant, and
// for a stepped float whose points cannot be told apart.
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
