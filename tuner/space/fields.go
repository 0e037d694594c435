package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// builder turns the nodes of a file into parameters, in any form, and keeps the lines.
type builder struct {
	faults
	src        source
	parameters []Parameter
	nulls      bool // in a list of values, null is NoChoice

	constraints []written
}

// parameter starts the next parameter and returns its reader.
func (b *builder) parameter(name string, line int) *fieldReader {
	b.parameters = append(b.parameters, Parameter{Name: name})
	b.src.lines = append(b.src.lines, map[string]int{"": line})
	b.src.broken = append(b.src.broken, false)
	return &fieldReader{b: b, p: &b.parameters[len(b.parameters)-1], lines: b.src.lines[len(b.src.lines)-1], name: name}
}

// space compiles the parameters, and reports their faults together with those of reading,
// in order of lines.
func (b *builder) space() (*Space, error) {
	c := &checker{faults: b.faults, src: &b.src}
	s := c.compile(b.parameters)
	if !c.any() && len(b.constraints) > 0 {
		s = c.constrain(s, b.constraints)
	}
	if c.any() {
		slices.SortStableFunc(c.list, func(x, y error) int { return lineOf(x) - lineOf(y) })
		return nil, c.err()
	}
	return s, nil
}

func lineOf(err error) int {
	var e *Error
	errors.As(err, &e)
	return e.Line
}

// add records a fault. It also records that the parameter being read has one. Its other
// fields may be missing, so that further checks would only repeat the fault.
func (b *builder) add(e *Error) {
	b.faults.add(e)
	if n := len(b.parameters); n > 0 {
		b.src.broken[n-1] = true
	}
}

// keys checks an object for unknown and repeated keys and for keys that differ only in case. If
// known is nil, any key is allowed. The text where names the parameter, or is empty.
func (b *builder) keys(n *node, where string, known []string, hint string) {
	seen := make(map[string]string, len(n.members))
	for _, m := range n.members {
		other, twice := seen[fold(m.key)]
		seen[fold(m.key)] = m.key
		e := &Error{Line: m.line, Parameter: where, Field: m.key}
		if len(e.Field) > maxShownBytes || strings.ContainsFunc(e.Field, disturbing) {
			e.Field = quote(e.Field)
		}
		switch {
		case twice && other == m.key:
			e.Rule, e.Remedy = "the key is there twice", "remove one"
		case twice:
			e.Rule, e.Remedy = "the key differs from "+quote(other)+" only in case", "remove one"
		case known != nil && !slices.Contains(known, m.key):
			e.Rule = "there is no such key"
			if !b.full() {
				e.Remedy = suggestKey(m.key, known, hint)
			}
		default:
			continue
		}
		b.add(e)
	}
}

func suggestKey(key string, known []string, hint string) string {
	if remedy := foreignKey(key, known); remedy != "" {
		return remedy
	}
	if near := similar(key, known); near != "" {
		return "did you mean " + near + "?"
	}
	if hint != "" {
		return hint
	}
	return "the keys are " + strings.Join(known, ", ")
}

// foreignKey returns the remedy for a key that another program uses for one of known.
func foreignKey(key string, known []string) string {
	for _, word := range [...]struct{ foreign, own, remedy string }{
		{"log", "scale", "write scale: log"},
		{"choices", "values", "write values: [ … ]"},
		{"list", "values", "write values: [ … ]"},
		{"min", "low", "write low: …"},
		{"max", "high", "write high: …"},
		{"q", "step", "write step: …"},
	} {
		if word.foreign == key && slices.Contains(known, word.own) {
			return word.remedy
		}
	}
	return ""
}

// fieldReader reads the fields of one parameter, in any form.
type fieldReader struct {
	b     *builder
	p     *Parameter
	lines map[string]int
	name  string
}

func (r *fieldReader) fault(line int, field, value, rule, remedy string) {
	r.b.add(&Error{Line: line, Parameter: r.name, Field: field, Value: value, Rule: rule, Remedy: remedy})
}

// field returns the field of n and records its line. It returns nil if n does not have it.
func (r *fieldReader) field(n *node, key string) *node {
	f := n.get(key)
	if f != nil {
		r.lines[key] = f.line
	}
	return f
}

// read reads the fields that all forms have, by the form's words, and refuses others.
func (r *fieldReader) read(n *node, typ Type, known []string, hint string) {
	w := r.b.src.words
	r.p.Type = typ
	r.b.keys(n, r.name, known, hint)
	r.number(n, w.low, &r.p.Low)
	r.number(n, w.high, &r.p.High)
	r.number(n, w.step, &r.p.Step)
	r.p.Values = r.values(n, w.values)
}

func (r *fieldReader) number(n *node, key string, v *Value) {
	f, w := r.field(n, key), r.b.src.words
	if f == nil || w.nulls && f.kind == nodeNull || w.quoted && f.kind == nodeText && f.text == "" {
		return
	}
	bare := *f
	if w.quoted && bare.kind == nodeText {
		bare.kind = nodeNumber
	}
	x, rule, remedy := bare.number()
	if rule != "" {
		r.fault(f.line, key, f.shown(), rule, remedy)
		return
	}
	*v = x
}

// text reads a text field. It returns "" if the field is missing or not text.
func (r *fieldReader) text(n *node, key string) string {
	f := r.field(n, key)
	if f == nil {
		return ""
	}
	if f.kind != nodeText {
		r.fault(f.line, key, f.shown(), "must be a text, not "+f.kind.String(), "write a word")
		return ""
	}
	return f.text
}

func (r *fieldReader) values(n *node, key string) []Value {
	f := r.field(n, key)
	if f == nil {
		return nil
	}
	if f.kind != nodeList {
		r.fault(f.line, key, f.shown(), "must be a list, not "+f.kind.String(), "write ["+f.shown()+", …]")
		return nil
	}
	return r.list(f, key)
}

func (r *fieldReader) list(f *node, key string) []Value {
	if len(f.items) > MaxValues {
		r.fault(f.line, key, itoa(len(f.items))+" values", "a list has at most "+itoa(MaxValues), "use a range, or fewer values")
		return nil
	}
	out := make([]Value, 0, len(f.items))
	for i := range f.items {
		item := &f.items[i]
		if item.kind == nodeNull && r.b.nulls {
			if slices.ContainsFunc(f.items, func(n node) bool { return n.kind == nodeText && n.text == NoChoice }) {
				r.b.add(&Error{Line: item.line, Rule: fmt.Sprintf("parameter %s has the choices null and %q, and null is imported as %[2]q", quote(r.name), NoChoice), Remedy: "rename the other choice in the file"})
				return nil
			}
			out = append(out, String(NoChoice))
			continue
		}
		v, rule, remedy := item.scalar()
		if rule != "" {
			r.fault(item.line, key, item.shown(), rule, remedy)
			continue
		}
		out = append(out, v)
	}
	return out
}
