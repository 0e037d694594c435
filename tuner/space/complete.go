package space

import "math"

// Complete turns the input of a person or another program into a valid configuration, where its
// meaning is clear. It fills in active constants. It converts numbers to the parameter's kind if
// no digit is lost. It reads text (from a command line) as the value it spells. A float within
// 1e-8 of a step of a grid point becomes that point. Complete fills in or leaves out nothing
// else. Remaining faults are returned as the error, as by [Space.Validate].
func (s *Space) Complete(c Config) (Config, error) { return s.convert(c, (*member).understand, true) }

// convert applies one conversion to the values of c and validates the result.
func (s *Space) convert(c Config, conversion func(*member, Value) (Value, bool), fill bool) (Config, error) {
	values := make([]Value, len(s.members))
	if !s.gather(c, values) {
		return Config{}, s.Validate(c)
	}
	count := 0
	for _, k := range s.order {
		m := &s.members[k]
		if fill && m.axis == nil && values[k].kind == KindNone && m.active(values) {
			values[k] = m.Values[0]
		}
		if v, ok := conversion(m, values[k]); ok {
			values[k] = v
		} else if v, ok := m.number(values[k]); ok { // so that the error is about the value and not its kind
			values[k] = v
		}
		if values[k].kind != KindNone {
			count++
		}
	}
	out := s.collect(values, count)
	if err := s.Validate(out); err != nil {
		return Config{}, err
	}
	return out, nil
}

// convert converts v to the kind of m's values. If the result is not legal for m, ok is false.
func (m *member) convert(v Value) (Value, bool) {
	if _, ok := m.coordinateOf(v); ok {
		return v, true
	}
	if x, ok := toFloat(v); ok && v.kind == KindInt {
		_, ok = m.coordinateOf(x)
		return x, ok
	}
	if n, ok := toInt(v); ok && v.kind == KindFloat {
		_, ok = m.coordinateOf(n)
		return n, ok
	}
	return Value{}, false
}

// number converts an Int to the Float that a float needs, and a Float to an Int, whether
// legal or not. If v is no such number, ok is false.
func (m *member) number(v Value) (x Value, ok bool) {
	switch {
	case m.Type == TypeFloat && v.kind == KindInt:
		return toFloat(v)
	case m.Type == TypeInt && v.kind == KindFloat:
		return toInt(v)
	}
	return Value{}, false
}

// understand is convert that also reads text and repairs grid points.
func (m *member) understand(v Value) (Value, bool) {
	if w, ok := m.convert(v); ok {
		return w, true
	}
	if text, ok := v.AsString(); ok {
		return m.read(text)
	}
	return m.repair(v)
}

// read returns the value of m that text spells.
func (m *member) read(text string) (Value, bool) {
	n, _, _ := parseNumber(text)
	if _, ok := m.coordinateOf(n); ok {
		return n, true
	}
	for _, w := range m.Values {
		if w.String() == text {
			return w, true
		}
	}
	if n.kind == KindNone {
		return Value{}, false
	}
	if w, ok := m.convert(n); ok {
		return w, true
	}
	return m.repair(n)
}

// repair moves a float onto a grid point if a computation such as 3·0.1 missed it by rounding.
func (m *member) repair(v Value) (Value, bool) {
	g, ok := m.axis.(*gridAxis)
	f, isNumber := toFloat(v)
	if !ok || !isNumber {
		return Value{}, false
	}
	x, _ := f.AsFloat()
	slack := 1e-8 * g.step
	if !(g.low-slack <= x && x <= g.high+slack) {
		return Value{}, false
	}
	point := g.at(g.closest(min(max(x, g.low), g.high)))
	return Float(point), math.Abs(point-x) <= slack
}
