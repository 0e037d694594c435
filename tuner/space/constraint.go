package space

import (
	"fmt"
	"slices"
)

// These are limits of constraints.
const (
	MaxConstraints     = 100     // constraints of one space
	MaxConstraintBytes = 4 << 10 // bytes of one constraint
)

// constraint is one constraint of a space. It holds where one of its parameters is inactive.
type constraint struct {
	text    string
	clause  *clause
	members []int // its parameters, ascending
	line    int   // in the file, or 0
}

type written struct {
	text string
	line int
}

const fieldConstraints = "constraints"

// Constrain returns s with constraints, in place of those that it has. A constraint is a
// text such as "a <= b", see the package documentation. If constraints have faults, or no
// configuration keeps them all, the error joins an [Error] for each.
func (s *Space) Constrain(constraints ...string) (*Space, error) {
	texts := make([]written, len(constraints))
	for i, text := range constraints {
		texts[i].text = text
	}
	c := &checker{src: &source{words: ownDialect}}
	out := c.constrain(s, texts)
	if c.any() {
		return nil, c.err()
	}
	return out, nil
}

// Constraints returns the constraints as they were written.
func (s *Space) Constraints() []string {
	var out []string
	for _, c := range s.constraints {
		out = append(out, c.text)
	}
	return out
}

// Free returns s without its constraints.
func (s *Space) Free() *Space {
	if len(s.constraints) == 0 {
		return s
	}
	out := *s
	out.constraints, out.equations, out.anchors = nil, nil, nil
	return &out
}

// constrain checks the texts and returns the space with them. It returns nil if there are faults.
func (c *checker) constrain(s *Space, texts []written) *Space {
	out := *s.Free()
	if n := len(texts); n > MaxConstraints {
		c.add(&Error{Line: texts[0].line, Field: fieldConstraints, Value: itoa(n) + " constraints", Rule: "a space has at most " + itoa(MaxConstraints), Remedy: "join some with and"})
		return nil
	}
	for i, w := range texts {
		e := &Error{Line: w.line, Field: fmt.Sprintf("%s[%d]", fieldConstraints, i), Value: quote(w.text)}
		if len(w.text) > MaxConstraintBytes {
			e.Rule, e.Remedy = "a constraint has at most "+itoa(MaxConstraintBytes)+" bytes", "divide it into several"
			c.add(e)
			continue
		}
		clause, fault := s.readConstraint(w.text)
		if fault != nil {
			e.Rule, e.Remedy = fmt.Sprintf("%s (column %d)", fault.rule, len([]rune(w.text[:fault.at]))+1), fault.remedy
			c.add(e)
			continue
		}
		k := constraint{text: w.text, clause: clause, members: clause.members(nil), line: w.line}
		slices.Sort(k.members)
		k.members = slices.Compact(k.members)
		out.constraints = append(out.constraints, k)
	}
	if c.any() {
		return nil
	}
	if len(out.constraints) > 0 && !out.populate() {
		c.add(out.emptiness())
		return nil
	}
	return &out
}

// keeps reports whether values keep all constraints. The slice x receives the numbers of
// the values.
func (s *Space) keeps(values []Value, x []float64) bool {
	if len(s.constraints) == 0 {
		return true
	}
	numbers(values, x)
	return s.broken(values, x) < 0
}

// numbers writes the numbers of values, 0 for others.
func numbers(values []Value, x []float64) {
	for k, v := range values {
		x[k], _ = v.Number()
	}
}

// broken returns the first constraint that the values break, -1 for none.
func (s *Space) broken(values []Value, x []float64) int {
	for i := range s.constraints {
		if c := &s.constraints[i]; c.applies(values) && !c.clause.holds(values, x) {
			return i
		}
	}
	return -1
}

// applies reports whether all parameters of the constraint are active.
func (c *constraint) applies(values []Value) bool {
	for _, k := range c.members {
		if values[k].kind == KindNone {
			return false
		}
	}
	return true
}

func (s *Space) constraintFaults(f *faults, values []Value) {
	if len(s.constraints) == 0 {
		return
	}
	x := make([]float64, len(values))
	numbers(values, x)
	for i := range s.constraints {
		c := &s.constraints[i]
		if !c.applies(values) || c.clause.holds(values, x) {
			continue
		}
		text := ""
		for n, k := range c.members {
			if n > 0 {
				text += ", "
			}
			if n == 8 {
				text += "…"
				break
			}
			text += s.members[k].Name + " = " + show(values[k])
		}
		f.add(&Error{Value: text, Rule: "breaks the constraint " + quote(c.text), Remedy: "choose values that keep it"})
	}
}
