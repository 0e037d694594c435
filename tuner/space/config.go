package space

import (
	"iter"
	"math"
	"slices"
	"strings"
)

// Config is an assignment of values to parameter names, for the active parameters of one
// trial. It is immutable and ordered by name. The zero Config is empty. [Space.Validate]
// checks whether it is complete and legal.
type Config struct {
	entries []Assignment
}

// Assignment gives one parameter a value.
type Assignment struct {
	Name  string
	Value Value
}

// NewConfig returns the Config with the given assignments, in any order. A
// later assignment to a name replaces an earlier one.
func NewConfig(entries ...Assignment) Config {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Assignment) int { return strings.Compare(a.Name, b.Name) })
	out := sorted[:0]
	for i, e := range sorted {
		if i+1 < len(sorted) && sorted[i+1].Name == e.Name {
			continue
		}
		out = append(out, e)
	}
	return Config{entries: slices.Clip(out)}
}

// Len returns the number of assigned parameters.
func (c Config) Len() int { return len(c.entries) }

// Get returns the value of the named parameter. If c has none, ok is false.
func (c Config) Get(name string) (v Value, ok bool) {
	i, ok := slices.BinarySearchFunc(c.entries, name, func(e Assignment, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return Value{}, false
	}
	return c.entries[i].Value, true
}

// Number returns the value of the named float or int, or NaN if c has none.
func (c Config) Number(name string) float64 {
	if v, ok := c.Get(name); ok {
		if x, ok := v.Number(); ok {
			return x
		}
	}
	return math.NaN()
}

// All yields the assignments in order of name.
func (c Config) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, e := range c.entries {
			if !yield(e.Name, e.Value) {
				return
			}
		}
	}
}

// Equal reports whether c and d assign the same values to the same names.
func (c Config) Equal(d Config) bool { return slices.Equal(c.entries, d.entries) }

// String formats c as name=value pairs in order of name, for logs and errors.
func (c Config) String() string {
	var b strings.Builder
	for i, e := range c.entries {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Name)
		b.WriteByte('=')
		b.WriteString(e.Value.String())
	}
	return b.String()
}

// Short formats c as String does, with at most six digits of a number and 32 characters of a
// value.
func (c Config) Short() string {
	words := make([]string, len(c.entries))
	for i, e := range c.entries {
		words[i] = e.Name + "=" + Head(e.Value.Short(), 32)
	}
	return strings.Join(words, " ")
}
