package space

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// MarshalJSON writes s in its own form, on one line. Equal spaces give the same bytes, and
// [Parse] reads them back as an equal space. Floats have a dot or an exponent, and ints
// have neither.
func (s *Space) MarshalJSON() ([]byte, error) {
	var w writer
	w.WriteString(`{"version":1,"parameters":`)
	w.join("{}", len(s.members), func(i int) { w.parameter(&s.members[i].Parameter) })
	if len(s.constraints) > 0 {
		w.WriteString(`,"constraints":`)
		w.join("[]", len(s.constraints), func(i int) { w.text(s.constraints[i].text) })
	}
	w.WriteByte('}')
	return []byte(w.String()), nil
}

// YAML writes s in its own form, a line for each parameter. [Parse] reads it back as an
// equal space unless it exceeds [MaxYAMLMarks]. Use JSON for very large spaces.
func (s *Space) YAML() []byte {
	w := writer{yaml: true}
	w.WriteString("version: 1\nparameters:")
	if len(s.members) == 0 {
		w.WriteString(" {}")
	}
	for i := range s.members {
		w.WriteString("\n  ")
		w.parameter(&s.members[i].Parameter)
	}
	w.WriteByte('\n')
	if len(s.constraints) > 0 {
		w.WriteString("constraints:\n")
	}
	for _, c := range s.constraints {
		w.WriteString("  - ")
		w.text(c.text)
		w.WriteByte('\n')
	}
	return []byte(w.String())
}

// writer writes JSON, or YAML's flow form.
type writer struct {
	strings.Builder
	yaml bool
}

// join writes n parts between a pair of brackets.
func (w *writer) join(brackets string, n int, part func(i int)) {
	w.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			w.WriteByte(',')
			w.space()
		}
		part(i)
	}
	w.WriteByte(brackets[1])
}

func (w *writer) space() {
	if w.yaml {
		w.WriteByte(' ')
	}
}

func (w *writer) key(key string) {
	w.text(key)
	w.WriteByte(':')
	w.space()
}

// parameter writes the name and the fields of p except defaults.
func (w *writer) parameter(p *Parameter) {
	w.key(p.Name)
	fields := []Assignment{{"type", String(p.Type.String())}}
	switch p.Type {
	case TypeFloat, TypeInt:
		fields = append(fields, Assignment{"low", p.Low}, Assignment{"high", p.High})
		if p.Step.kind != KindNone && p.Step != Int(1) {
			fields = append(fields, Assignment{"step", p.Step})
		}
		if p.Scale != Linear {
			fields = append(fields, Assignment{"scale", String(p.Scale.String())})
		}
	case TypeConstant:
		fields = append(fields, Assignment{"value", p.Values[0]})
	default:
		fields = append(fields, Assignment{"values", Value{}})
	}
	if len(p.When) > 0 {
		fields = append(fields, Assignment{fieldWhen, Value{}})
	}
	w.join("{}", len(fields), func(i int) {
		f := fields[i]
		w.key(f.Name)
		switch f.Name {
		case "values":
			w.list(p.Values)
		case fieldWhen:
			w.join("{}", len(p.When), func(i int) {
				c := p.When[i]
				w.key(c.Parent)
				if len(c.Values) == 1 {
					w.value(c.Values[0])
				} else {
					w.list(c.Values)
				}
			})
		default:
			w.value(f.Value)
		}
	})
}

func (w *writer) list(values []Value) {
	w.join("[]", len(values), func(i int) { w.value(values[i]) })
}

func (w *writer) value(v Value) {
	if v.kind == KindString {
		w.text(v.text)
		return
	}
	w.WriteString(literal(v))
}

// literal formats a number or bool so that its kind can be recognised. A float has a dot or
// an exponent.
func literal(v Value) string {
	text := v.String()
	if v.kind == KindFloat && !strings.ContainsAny(text, ".e") {
		return text + ".0"
	}
	return text
}

// text writes a string, in JSON without the escapes meant for HTML. In YAML it is bare if it
// is a plain word, which no reader takes for anything else, and otherwise in double quotes.
func (w *writer) text(s string) {
	if !w.yaml {
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s) // a string, to memory
		w.WriteString(strings.TrimSuffix(out.String(), "\n"))
		return
	}
	if plainWord(s) {
		w.WriteString(s)
		return
	}
	w.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == ' ' || unicode.IsPrint(r) && r != unicode.ReplacementChar:
			w.WriteRune(r)
		case r <= math.MaxUint16:
			fmt.Fprintf(w, `\u%04x`, r)
		default:
			fmt.Fprintf(w, `\U%08x`, r)
		}
	}
	w.WriteByte('"')
}

// plainWord reports whether s is a word of letters, digits, _ and - that begins with a
// letter and has no special meaning in YAML.
func plainWord(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "", "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity":
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}
