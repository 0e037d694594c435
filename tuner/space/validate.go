package space

import "math"

// Validate returns nil if c has a legal value for every active parameter, including
// constants, and nothing else, and keeps the constraints. Otherwise the error joins an [Error] for every fault.
func (s *Space) Validate(c Config) error {
	var f faults
	for name, v := range c.All() {
		if _, ok := s.index[name]; !ok && !f.full() {
			f.add(&Error{Parameter: name, Value: show(v), Rule: "there is no such parameter", Remedy: s.didYouMean(name)})
		}
	}
	values := make([]Value, len(s.members))
	s.gather(c, values)
	for _, k := range s.order {
		if e := s.members[k].validate(values[k], s.members[k].active(values)); e != nil {
			if e.Rule == ruleInactive {
				e.Remedy = "leave it out: it is active only when " + s.conditionsOf(k)
			}
			f.add(e)
		}
	}
	if !f.any() {
		s.constraintFaults(&f, values)
	}
	return f.err()
}

const ruleInactive = "the parameter is inactive here"

// validate returns the fault of giving m the value v, the zero Value for none.
func (m *member) validate(v Value, active bool) *Error {
	given := v.kind != KindNone
	switch {
	case !active && given:
		return &Error{Parameter: m.Name, Value: show(v), Rule: ruleInactive}
	case !active:
		return nil
	case !given:
		return &Error{Parameter: m.Name, Rule: "the parameter is active and has no value", Remedy: "add it"}
	}
	if _, ok := m.coordinateOf(v); ok {
		return nil
	}
	return m.explain(v)
}

// explain returns why m cannot take v, which is not legal for it.
func (m *member) explain(v Value) *Error {
	e := &Error{Parameter: m.Name, Value: show(v)}
	switch m.Type {
	case TypeConstant:
		e.Rule, e.Remedy = "the parameter is the constant "+show(m.Values[0]), "use that, or leave it out"
	case TypeOrdinal, TypeCategorical:
		e.Rule, e.Remedy = "not one of the values", m.suggestValue(v)
	default:
		e.Rule, e.Remedy = m.explainNumber(v)
	}
	return e
}

func (m *member) suggestValue(v Value) string {
	texts := make([]string, len(m.Values))
	for i, w := range m.Values {
		texts[i] = w.String()
	}
	for i, text := range texts {
		if text == v.String() {
			return "use the " + m.Values[i].kind.String() + " " + show(m.Values[i])
		}
	}
	if near := similar(v.String(), texts); near != "" && v.kind == KindString {
		return "did you mean " + quote(near) + "?"
	}
	return "use one of " + showValues(m.Values)
}

func (m *member) explainNumber(v Value) (rule, remedy string) {
	want := "a float"
	if m.Type == TypeInt {
		want = "an int"
	}
	x, number := v.Number()
	switch {
	case !number:
		return "must be " + want + ", not " + article(v.kind.String()), "give a number"
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "a number must be finite", "report the trial as failed if it has no value"
	case v.kind != m.Low.kind:
		return "must be " + want + ", not " + article(v.kind.String()), "give " + want
	case less(v, m.Low), less(m.High, v):
		return "outside " + show(m.Low) + " … " + show(m.High), "give a value inside"
	default:
		return m.explainStep(v)
	}
}

func (m *member) explainStep(v Value) (rule, remedy string) {
	rule = "off the grid " + show(m.Low) + " + k·" + show(m.Step)
	switch a := m.axis.(type) {
	case *gridAxis:
		x, _ := v.AsFloat()
		remedy = "use " + showFloat(a.at(a.closest(x)))
	case *intAxis:
		offset := int64(v.bits) - a.low // step > 1, so that the sum cannot overflow
		i := min(uint64(offset)/a.step, a.last)
		remedy = "use " + show(a.at(i))
		if i < a.last {
			remedy += " or " + show(a.at(i+1))
		}
	default:
		remedy = "use " + show(m.Low)
	}
	return rule, remedy
}

func (s *Space) conditionsOf(k int) string {
	text := ""
	for i, c := range s.members[k].conditions {
		if i == 4 {
			return text + " …"
		}
		if i > 0 {
			text += " and "
		}
		text += s.members[c.parent].Name + " is " + showValues(c.values)
	}
	return text
}

// Active reports whether the named parameter is active given the values in c. It returns
// false if there is no such parameter. The configuration may be incomplete, because a
// parent without value satisfies no condition.
func (s *Space) Active(c Config, name string) bool {
	i, ok := s.index[name]
	if !ok {
		return false
	}
	values := make([]Value, len(s.members))
	s.gather(c, values)
	for _, k := range s.order {
		active := s.members[k].active(values)
		if k == i {
			return active
		}
		if !active {
			values[k] = Value{}
		}
	}
	return false
}
