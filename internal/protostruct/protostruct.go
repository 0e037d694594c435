// Package protostruct copies between structs and the generated messages of protobuf that
// have the same fields.
//
// A field of a struct and one of a message belong together if their names are the same but
// for case. [Table.Names] pairs others. A field without a counterpart that Names does not
// name makes the first use of the pair panic, so that none is forgotten.
//
// Integers saturate on the way to a message and must fit on the way back. The numbers of
// enums must be known. A struct that is zero is a message that is left out, except in lists
// and behind pointers. Empty slices and maps become nil. Other types need [Convert].
package protostruct

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// FieldError refuses a field of a message.
type FieldError struct {
	Field string // path, as in the schema
	Value any
	Rule  string
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s = %v: %s", e.Field, e.Value, e.Rule) }

// Table knows how structs differ from their messages. Add to it before its first use.
type Table struct {
	// Optional are fields of messages that need no counterpart.
	Optional []string
	// Needed are structs that are sent even if they are zero, and must not be missing.
	Needed []reflect.Type
	// Check, if not nil, is called for each message that is read.
	Check func(message protoreflect.ProtoMessage) error

	names  map[reflect.Type][]string
	custom map[key]pair
	made   sync.Map // of key to pair
}

// key is a type with that of its message or field of a message.
type key struct{ plain, wire reflect.Type }

// copier sets one value from another. state is that of [Table.Decode].
type copier func(state any, to, from reflect.Value) error

type pair struct{ encode, decode copier }

// Names pairs fields of the type of a struct with those of its messages, as
// "Message=Struct". Fields without a counterpart are named as in "Message=" and "=Struct".
func (t *Table) Names(of any, names ...string) {
	if t.names == nil {
		t.names = make(map[reflect.Type][]string)
	}
	t.names[reflect.TypeOf(of)] = names
}

// Convert copies between two types by functions.
func Convert[S, M any](t *Table, encode func(S) (M, error), decode func(state any, m M) (S, error)) {
	if t.custom == nil {
		t.custom = make(map[key]pair)
	}
	t.custom[key{reflect.TypeFor[S](), reflect.TypeFor[M]()}] = pair{
		encode: func(_ any, to, from reflect.Value) (err error) {
			*to.Addr().Interface().(*M), err = encode(*from.Addr().Interface().(*S))
			return err
		},
		decode: func(state any, to, from reflect.Value) (err error) {
			*to.Addr().Interface().(*S), err = decode(state, *from.Addr().Interface().(*M))
			return err
		},
	}
}

// Encode copies the struct at from to a message.
func (t *Table) Encode(message, from any) error {
	to, of := reflect.ValueOf(message).Elem(), reflect.ValueOf(from).Elem()
	return t.fields(of.Type(), to.Type()).encode(nil, to, of)
}

// Decode copies a message to the struct at to. A nil message is an empty one. Functions of
// [Convert] get the state.
func (t *Table) Decode(state, to, message any) error {
	at, from := reflect.ValueOf(to).Elem(), reflect.ValueOf(message)
	if from.IsNil() {
		from = reflect.New(from.Type().Elem())
	}
	return t.fields(at.Type(), from.Type().Elem()).decode(state, at, from.Elem())
}

// of returns the copiers between a type and that of a field of a message.
func (t *Table) of(s, m reflect.Type) pair {
	if custom, ok := t.custom[key{s, m}]; ok {
		return custom
	}
	switch {
	case m.Implements(reflect.TypeFor[protoreflect.Enum]()):
		return pair{encodeEnum, decodeEnum}
	case isInt(s) && isInt(m):
		return pair{encodeInt, decodeInt}
	case s.Kind() == m.Kind() && s.ConvertibleTo(m):
		return pair{convert, convert}
	case s.Kind() == reflect.Slice && m.Kind() == reflect.Slice:
		each := t.part(s.Elem(), m.Elem())
		return pair{list(each.encode), list(each.decode)}
	case s.Kind() == reflect.Struct && m.Kind() == reflect.Pointer:
		part := t.part(s, m)
		if slices.Contains(t.Needed, s) {
			return pair{part.encode, func(state any, to, from reflect.Value) error {
				if from.IsNil() {
					return &FieldError{Value: "none", Rule: "is missing"}
				}
				return part.decode(state, to, from)
			}}
		}
		return pair{unless(reflect.Value.IsZero, part.encode), part.decode}
	case s.Kind() == reflect.Pointer && m.Kind() == reflect.Pointer:
		part := t.part(s.Elem(), m)
		return pair{
			encode: unless(reflect.Value.IsNil, func(state any, to, from reflect.Value) error { return part.encode(state, to, from.Elem()) }),
			decode: unless(reflect.Value.IsNil, func(state any, to, from reflect.Value) error {
				to.Set(reflect.New(s.Elem()))
				return part.decode(state, to.Elem(), from)
			}),
		}
	default:
		panic(fmt.Sprintf("protostruct: precondition: no way between %v and %v", s, m))
	}
}

// part returns the copiers of what is there even if it is zero.
func (t *Table) part(s, m reflect.Type) pair {
	if _, custom := t.custom[key{s, m}]; custom || s.Kind() != reflect.Struct || m.Kind() != reflect.Pointer {
		return t.of(s, m)
	}
	fields := t.fields(s, m.Elem())
	return pair{
		encode: func(state any, to, from reflect.Value) error {
			to.Set(reflect.New(m.Elem()))
			return fields.encode(state, to.Elem(), from)
		},
		decode: unless(reflect.Value.IsNil, func(state any, to, from reflect.Value) error {
			return fields.decode(state, to, from.Elem())
		}),
	}
}

func isInt(t reflect.Type) bool {
	return t.Kind() == reflect.Int || t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64
}

func encodeEnum(_ any, to, from reflect.Value) error {
	to.SetInt(int64(from.Uint()))
	return nil
}

func decodeEnum(_ any, to, from reflect.Value) error {
	e := from.Interface().(protoreflect.Enum)
	if e.Descriptor().Values().ByNumber(e.Number()) == nil {
		return &FieldError{Value: e, Rule: "is unknown to this version"}
	}
	to.SetUint(uint64(e.Number()))
	return nil
}

func encodeInt(_ any, to, from reflect.Value) error {
	n := from.Int()
	if to.OverflowInt(n) {
		n = min(max(n, math.MinInt32), math.MaxInt32)
	}
	to.SetInt(n)
	return nil
}

func decodeInt(_ any, to, from reflect.Value) error {
	if to.OverflowInt(from.Int()) {
		return &FieldError{Value: from.Int(), Rule: "is too large"}
	}
	to.SetInt(from.Int())
	return nil
}

// convert is for types of one kind.
func convert(_ any, to, from reflect.Value) error {
	if k := from.Kind(); (k == reflect.Map || k == reflect.Slice) && from.Len() == 0 {
		to.SetZero()
	} else if from.Type() == to.Type() {
		to.Set(from)
	} else {
		to.Set(from.Convert(to.Type()))
	}
	return nil
}

// unless sets what would be copied to zero under a condition.
func unless(condition func(reflect.Value) bool, do copier) copier {
	return func(state any, to, from reflect.Value) error {
		if condition(from) {
			to.SetZero()
			return nil
		}
		return do(state, to, from)
	}
}

func list(each copier) copier {
	return unless(func(from reflect.Value) bool { return from.Len() == 0 }, func(state any, to, from reflect.Value) error {
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if err := each(state, to.Index(i), from.Index(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// field is a field of a message with its counterpart in a struct.
type field struct {
	name        string // in the schema
	plain, wire int
	pair
}

// fields returns the copiers between a struct and that of a message.
func (t *Table) fields(s, m reflect.Type) pair {
	if made, ok := t.made.Load(key{s, m}); ok {
		return made.(pair)
	}
	fields := t.match(s, m)
	p := pair{
		encode: func(state any, to, from reflect.Value) error {
			for i := range fields {
				f := &fields[i]
				if err := f.encode(state, to.Field(f.wire), from.Field(f.plain)); err != nil {
					return f.within(err)
				}
			}
			return nil
		},
		decode: func(state any, to, from reflect.Value) error {
			if t.Check != nil {
				if err := t.Check(from.Addr().Interface().(protoreflect.ProtoMessage)); err != nil {
					return err
				}
			}
			for i := range fields {
				f := &fields[i]
				if err := f.decode(state, to.Field(f.plain), from.Field(f.wire)); err != nil {
					return f.within(err)
				}
			}
			return nil
		},
	}
	t.made.Store(key{s, m}, p)
	return p
}

// within adds the field to the path of an error.
func (f *field) within(err error) error {
	if e, ok := err.(*FieldError); ok {
		e.Field = strings.TrimSuffix(f.name+"."+e.Field, ".")
	}
	return err
}

// match pairs the exported fields.
func (t *Table) match(s, m reflect.Type) (fields []field) {
	names, matched := t.names[s], make(map[string]bool)
	ours := exported(s)
	for _, theirs := range exported(m) {
		want := theirs.Name
		for _, n := range names {
			if message, plain, _ := strings.Cut(n, "="); message == theirs.Name {
				want = plain
			}
		}
		i := slices.IndexFunc(ours, func(f reflect.StructField) bool { return strings.EqualFold(f.Name, want) })
		if want == "" || i < 0 && slices.Contains(t.Optional, want) {
			continue
		}
		if i < 0 {
			panic(fmt.Sprintf("protostruct: precondition: %v has no field %s for %v", s, want, m))
		}
		name, _, _ := strings.Cut(theirs.Tag.Get("json"), ",")
		fields = append(fields, field{name: name, plain: ours[i].Index[0], wire: theirs.Index[0], pair: t.of(ours[i].Type, theirs.Type)})
		matched[ours[i].Name] = true
	}
	for _, f := range ours {
		if !matched[f.Name] && !slices.Contains(names, "="+f.Name) {
			panic(fmt.Sprintf("protostruct: precondition: %v has no field for %v.%s", m, s, f.Name))
		}
	}
	return fields
}

func exported(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return !f.IsExported() })
}
