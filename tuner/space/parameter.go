package space

import "slices"

// Type is the type of a parameter.
type Type uint8

// The types of a Parameter. The zero Type is not valid.
const (
	TypeFloat       Type = iota + 1 // a range of float64
	TypeInt                         // a range of int64
	TypeOrdinal                     // a list of values in a meaningful order
	TypeCategorical                 // a list of values without order
	TypeConstant                    // one fixed value, given to every trial
)

// String names the type as space files do.
func (t Type) String() string { return named("Type", uint8(t), typeNames) }

var typeNames = []string{TypeFloat: "float", TypeInt: "int", TypeOrdinal: "ordinal", TypeCategorical: "categorical", TypeConstant: "constant"}

// Scale determines how a range is spread over its coordinate.
type Scale uint8

// The scales of a float or int range.
const (
	Linear     Scale = iota // equal differences are equally far apart
	Log                     // equal ratios are equally far apart, dense near Low
	ReverseLog              // mirrored Log, dense near High
)

// String names the scale as space files do.
func (s Scale) String() string { return named("Scale", uint8(s), scaleNames) }

var scaleNames = []string{Linear: "linear", Log: "log", ReverseLog: "reverse-log"}

// Parameter describes one parameter. It is plain data, which [New] checks. The fields that
// apply depend on Type. The others must be zero.
type Parameter struct {
	Name string
	Type Type

	// Low and High bound a float or int, both included. An Int may stand for a float bound,
	// and a Float for an int bound, where no digit is lost.
	Low, High Value
	// Step, if not the zero Value, restricts a linear range to Low + k·Step ≤
	// High. An int without Step has Step 1.
	Step Value
	// Scale is the scale of a float or int.
	Scale Scale

	// Values lists the values of an ordinal (in order) or a categorical. A constant has
	// exactly one. Each keeps its kind.
	Values []Value

	// When has the conditions of the parameter, which is active if all of them are met.
	// With no condition it is always active.
	When []Condition
}

// Condition is met while the parent is active and has one of the Values. A parent is an
// int, ordinal, categorical or constant parameter.
type Condition struct {
	Parent string
	Values []Value
}

// NewFloat describes a float between low and high.
func NewFloat(name string, low, high float64) Parameter {
	return Parameter{Name: name, Type: TypeFloat, Low: Float(low), High: Float(high)}
}

// NewInt describes an int between low and high.
func NewInt(name string, low, high int64) Parameter {
	return Parameter{Name: name, Type: TypeInt, Low: Int(low), High: Int(high)}
}

// NewOrdinal describes a choice among values in a meaningful order.
func NewOrdinal(name string, values ...Value) Parameter {
	return Parameter{Name: name, Type: TypeOrdinal, Values: values}
}

// NewCategorical describes a choice among values without order.
func NewCategorical(name string, values ...Value) Parameter {
	return Parameter{Name: name, Type: TypeCategorical, Values: values}
}

// NewBool describes a categorical of false and true.
func NewBool(name string) Parameter { return NewCategorical(name, Bool(false), Bool(true)) }

// NewConstant describes a value that every trial gets.
func NewConstant(name string, v Value) Parameter {
	return Parameter{Name: name, Type: TypeConstant, Values: []Value{v}}
}

// WithScale returns p on another scale.
func (p Parameter) WithScale(s Scale) Parameter {
	p.Scale = s
	return p
}

// WithStep returns p restricted to multiples of step above Low.
func (p Parameter) WithStep(step Value) Parameter {
	p.Step = step
	return p
}

// Given returns p with one more condition. It is active only while the parent has one of
// the values.
func (p Parameter) Given(parent string, values ...Value) Parameter {
	p.When = append(slices.Clip(p.When), Condition{Parent: parent, Values: values})
	return p
}

// Equal reports whether p and q describe the same parameter, field by field.
func (p Parameter) Equal(q Parameter) bool {
	return p.Name == q.Name && p.Type == q.Type && p.Scale == q.Scale &&
		p.Low == q.Low && p.High == q.High && p.Step == q.Step &&
		slices.Equal(p.Values, q.Values) &&
		slices.EqualFunc(p.When, q.When, func(a, b Condition) bool {
			return a.Parent == b.Parent && slices.Equal(a.Values, b.Values)
		})
}

// clone returns a copy of p that shares no slice with it.
func (p Parameter) clone() Parameter {
	p.Values = slices.Clone(p.Values)
	p.When = slices.Clone(p.When)
	for i := range p.When {
		p.When[i].Values = slices.Clone(p.When[i].Values)
	}
	return p
}
