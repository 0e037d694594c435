package space

import (
	"fmt"
	"math"
	"strconv"
)

// Kind is the type of a [Value]'s content, one of four.
type Kind uint8

// The kinds of a Value. The zero Kind belongs to the zero Value, which stands
// for "no value" and is valid nowhere.
const (
	KindNone   Kind = iota
	KindFloat       // float64
	KindInt         // int64
	KindString      // string
	KindBool        // bool
)

// String names the kind as error messages do.
func (k Kind) String() string {
	return named("Kind", uint8(k), []string{KindNone: "none", KindFloat: "float", KindInt: "int", KindString: "string", KindBool: "bool"})
}

// Value is one parameter's value. It is a float, an int, a string or a bool. It is a closed
// sum type and safe as a map key. Values are comparable with ==. Two NaN values compare
// unequal, but no valid Value is NaN.
type Value struct {
	kind Kind
	bits uint64 // float64 bits, int64, or 0/1
	text string // KindString only
}

// Float returns the Value of x. Negative zero becomes zero, so that equal numbers are equal
// Values.
func Float(x float64) Value {
	if x == 0 {
		x = 0
	}
	return Value{kind: KindFloat, bits: math.Float64bits(x)}
}

// Int returns the Value of n.
func Int(n int64) Value { return Value{kind: KindInt, bits: uint64(n)} }

// String returns the Value of s.
func String(s string) Value { return Value{kind: KindString, text: s} }

// Bool returns the Value of b.
func Bool(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.bits = 1
	}
	return v
}

// Kind returns the kind of v.
func (v Value) Kind() Kind { return v.kind }

// AsFloat returns the float in v. If v has another kind, ok is false.
func (v Value) AsFloat() (x float64, ok bool) {
	return math.Float64frombits(v.bits), v.kind == KindFloat
}

// AsInt returns the int in v. If v has another kind, ok is false.
func (v Value) AsInt() (n int64, ok bool) { return int64(v.bits), v.kind == KindInt }

// AsString returns the string in v. If v has another kind, ok is false.
func (v Value) AsString() (s string, ok bool) { return v.text, v.kind == KindString }

// AsBool returns the bool in v. If v has another kind, ok is false.
func (v Value) AsBool() (b, ok bool) { return v.bits == 1, v.kind == KindBool }

// Number returns a float or int as a float64 (ints beyond 2⁵³ are rounded). For other kinds
// ok is false.
func (v Value) Number() (x float64, ok bool) {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.bits), true
	case KindInt:
		return float64(int64(v.bits)), true
	default:
		return 0, false
	}
}

// String formats v as a person would type it. This is the shortest decimal that reads back
// exactly, a bare string, true or false.
func (v Value) String() string {
	switch v.kind {
	case KindNone:
		return "<none>"
	case KindFloat:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	case KindInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case KindString:
		return v.text
	case KindBool:
		return strconv.FormatBool(v.bits == 1)
	default:
		panic(fmt.Sprintf("space: Value of unknown kind %d", v.kind))
	}
}

// Short formats v with at most six digits.
func (v Value) Short() string {
	if x, ok := v.AsFloat(); ok {
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	return v.String()
}

// named returns the i-th name of a type's constants, or the type with the number.
func named(typ string, i uint8, names []string) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}
