package space

import (
	"fmt"
	"unicode/utf8"
)

// MarshalJSON writes c as an object in order of name, such as
// {"lr":0.01,"optimizer":"sgd"}. Floats always have a dot or an exponent and ints never do,
// so that [Config.UnmarshalJSON] returns equal values. It fails on values that no space
// allows. These are no value, NaN, infinities, and text that is not UTF-8.
func (c Config) MarshalJSON() ([]byte, error) {
	for _, e := range c.entries {
		if rule, _ := valueFault(e.Value); rule != "" && len(e.Value.text) <= MaxTextBytes {
			return nil, fmt.Errorf("space: writing %s: %s", quote(e.Name), rule)
		}
		if !utf8.ValidString(e.Name) {
			return nil, fmt.Errorf("space: writing %s: a name is valid UTF-8", quote(e.Name))
		}
	}
	var w writer
	w.join("{}", len(c.entries), func(i int) {
		w.key(c.entries[i].Name)
		w.value(c.entries[i].Value)
	})
	return []byte(w.String()), nil
}

// UnmarshalJSON reads an object of numbers, strings and bools. A number written as an
// integer becomes an Int, any other a Float. [Space.Complete] converts them to the kind
// that the space needs. Repeated keys, keys that differ only in case, null and nested
// values are errors, returned as joined [Error]s.
func (c *Config) UnmarshalJSON(data []byte) error {
	out, err := readConfig(data)
	if err != nil {
		return err
	}
	*c = out
	return nil
}

// ParseConfig reads a configuration of s from JSON, as UnmarshalJSON does. It gives numbers
// the kind that the parameter has (1 for a float, 64.0 for an int) and validates the
// result. It converts or fills in nothing else.
func (s *Space) ParseConfig(data []byte) (Config, error) {
	c, err := readConfig(data)
	if err != nil {
		return Config{}, err
	}
	return s.convert(c, (*member).convert, false)
}

func readConfig(data []byte) (Config, error) {
	if len(data) > MaxFileBytes {
		return Config{}, &Error{Value: itoa(len(data)) + " bytes", Rule: "a configuration has at most " + itoa(MaxFileBytes)}
	}
	if !utf8.Valid(data) {
		return Config{}, &Error{Rule: "the configuration is not valid UTF-8", Remedy: "encode it as UTF-8"}
	}
	if err := jsonSyntax(data); err != nil {
		return Config{}, err
	}
	tree, err := readJSON(data)
	if err != nil {
		return Config{}, err
	}
	if tree.kind != nodeObject {
		return Config{}, &Error{Value: tree.shown(), Rule: "a configuration is an object, not " + tree.kind.String(), Remedy: `write {"name": value, …}`}
	}
	var b builder
	b.keys(tree, "", nil, "")
	entries := make([]Assignment, 0, len(tree.members))
	for i := range tree.members {
		m := &tree.members[i]
		v, rule, remedy := m.value.scalar()
		if rule != "" {
			b.add(&Error{Parameter: m.key, Value: m.value.shown(), Rule: rule, Remedy: remedy})
		}
		entries = append(entries, Assignment{Name: m.key, Value: v})
	}
	if err := b.err(); err != nil {
		return Config{}, err
	}
	return NewConfig(entries...), nil
}
