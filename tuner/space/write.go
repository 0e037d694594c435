package space

import (
	"bytes"
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
	var out bytes.Buffer
	out.WriteString(`{"version":1,"parameters":{`)
	for i := range s.members {
		if i > 0 {
			out.WriteByte(',')
		}
		writeText(&out, s.members[i].Name)
		out.WriteByte(':')
		writeParameter(&out, &s.members[i].Parameter, &writer{text: writeText, colon: ":", comma: ","})
	}
	out.WriteByte('}')
	if len(s.constraints) > 0 {
		out.WriteString(`,"constraints":`)
		writeList(&out, s.constraintValues())
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// YAML writes s in its own form, a line for each parameter. [Parse] reads it back as an
// equal space unless it exceeds [MaxYAMLMarks]. Use JSON for very large spaces.
func (s *Space) YAML() []byte {
	var out bytes.Buffer
	out.WriteString("version: 1\nparameters:")
	if len(s.members) == 0 {
		out.WriteString(" {}")
	}
	out.WriteByte('\n')
	for i := range s.members {
		out.WriteString("  ")
		writeTextYAML(&out, s.members[i].Name)
		out.WriteString(": ")
		writeParameter(&out, &s.members[i].Parameter, &writer{text: writeTextYAML, colon: ": ", comma: ", "})
		out.WriteByte('\n')
	}
	if len(s.constraints) > 0 {
		out.WriteString("constraints:\n")
		for _, c := range s.constraints {
			out.WriteString("  - ")
			writeTextYAML(&out, c.text)
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// constraintValues returns the constraints as texts.
func (s *Space) constraintValues() []Value {
	var out []Value
	for _, c := range s.constraints {
		out = append(out, String(c.text))
	}
	return out
}

// writer has the differences between JSON and YAML's flow form.
type writer struct {
	text         func(*bytes.Buffer, string)
	colon, comma string
}

// writeParameter writes the fields of p except defaults.
func writeParameter(out *bytes.Buffer, p *Parameter, w *writer) {
	out.WriteByte('{')
	w.key(out, "type")
	w.text(out, p.Type.String())
	switch p.Type {
	case TypeFloat, TypeInt:
		w.writeRange(out, p)
	case TypeConstant:
		out.WriteString(w.comma)
		w.key(out, "value")
		w.value(out, p.Values[0])
	default:
		out.WriteString(w.comma)
		w.key(out, "values")
		w.list(out, p.Values)
	}
	if len(p.When) > 0 {
		out.WriteString(w.comma)
		w.key(out, fieldWhen)
		w.writeWhen(out, p.When)
	}
	out.WriteByte('}')
}

func (w *writer) writeRange(out *bytes.Buffer, p *Parameter) {
	fields := []Assignment{{"low", p.Low}, {"high", p.High}}
	if p.Step.kind != KindNone && p.Step != Int(1) {
		fields = append(fields, Assignment{"step", p.Step})
	}
	if p.Scale != Linear {
		fields = append(fields, Assignment{"scale", String(p.Scale.String())})
	}
	for _, f := range fields {
		out.WriteString(w.comma)
		w.key(out, f.Name)
		w.value(out, f.Value)
	}
}

func (w *writer) writeWhen(out *bytes.Buffer, when []Condition) {
	out.WriteByte('{')
	for i, c := range when {
		if i > 0 {
			out.WriteString(w.comma)
		}
		w.key(out, c.Parent)
		if len(c.Values) == 1 {
			w.value(out, c.Values[0])
		} else {
			w.list(out, c.Values)
		}
	}
	out.WriteByte('}')
}

func (w *writer) key(out *bytes.Buffer, key string) {
	w.text(out, key)
	out.WriteString(w.colon)
}

func (w *writer) list(out *bytes.Buffer, values []Value) {
	out.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			out.WriteString(w.comma)
		}
		w.value(out, v)
	}
	out.WriteByte(']')
}

func (w *writer) value(out *bytes.Buffer, v Value) {
	if v.kind == KindString {
		w.text(out, v.text)
		return
	}
	out.WriteString(literal(v))
}

func writeValue(out *bytes.Buffer, v Value) { (&writer{text: writeText}).value(out, v) }

func writeList(out *bytes.Buffer, values []Value) {
	(&writer{text: writeText, comma: ","}).list(out, values)
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

// writeText writes a JSON string, without the escapes meant for HTML.
func writeText(out *bytes.Buffer, s string) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string, to memory
	out.Truncate(out.Len() - 1)
}

// writeTextYAML writes s bare if it is a plain word, which no reader takes for anything
// else, and otherwise in double quotes.
func writeTextYAML(out *bytes.Buffer, s string) {
	if plainWord(s) {
		out.WriteString(s)
		return
	}
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == ' ' || unicode.IsPrint(r) && r != unicode.ReplacementChar:
			out.WriteRune(r)
		case r <= math.MaxUint16:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			fmt.Fprintf(out, `\U%08x`, r)
		}
	}
	out.WriteByte('"')
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
