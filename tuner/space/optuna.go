package space

import (
	"bytes"
	"strconv"
	"strings"
)

// optuna reads Optuna's object of name → distribution.
func (b *builder) optuna(tree *node) {
	b.src.words = optunaDialect()
	if tree.kind != nodeObject {
		b.add(&Error{Line: tree.line, Rule: "Optuna's form is an object of name and distribution", Remedy: `write {"name": {"type": "float", "low": 0, "high": 1}}`})
		return
	}
	for i := range tree.members {
		m := &tree.members[i]
		r := b.parameter(m.key, m.line)
		switch n := &m.value; {
		case n.kind != nodeObject:
			r.fault(n.line, "", n.shown(), "a parameter is described by an object", `write {"type": "float", "low": 0, "high": 1}; in BKB Tuner's own form parameters go under parameters:`)
		case n.get("attributes") != nil || n.get("name") != nil && n.get("type") == nil:
			r.optunaLong(n)
		default:
			r.optunaShort(n)
		}
	}
}

func (r *fieldReader) optunaShort(n *node) {
	known := []string{"type", "low", "high", "step", "log"}
	switch typ := r.text(n, "type"); typ {
	case "float":
		r.p.Type = TypeFloat
	case "int":
		r.p.Type = TypeInt
	case "categorical":
		r.p.Type = TypeCategorical
		known = []string{"type", "choices"}
	default:
		r.fault(n.line, "type", quote(typ), "Optuna's types are float, int and categorical", "use one of them; in BKB Tuner's own form parameters go under parameters:")
		return
	}
	r.b.keys(n, r.name, known, "this is Optuna's form, with "+strings.Join(known, ", ")+"; in BKB Tuner's own form parameters go under parameters:")
	r.optunaFields(n)
}

// optunaForms are the distributions of Optuna, also those of versions before 3, with the
// keys of their attributes.
var optunaForms = map[string]struct {
	typ  Type
	keys []string
	log  bool
}{
	"FloatDistribution":           {TypeFloat, []string{"low", "high", "log", "step"}, false},
	"UniformDistribution":         {TypeFloat, []string{"low", "high"}, false},
	"LogUniformDistribution":      {TypeFloat, []string{"low", "high"}, true},
	"DiscreteUniformDistribution": {TypeFloat, []string{"low", "high", "q"}, false},
	"IntDistribution":             {TypeInt, []string{"low", "high", "log", "step"}, false},
	"IntUniformDistribution":      {TypeInt, []string{"low", "high", "step"}, false},
	"IntLogUniformDistribution":   {TypeInt, []string{"low", "high", "step"}, true},
	"CategoricalDistribution":     {TypeCategorical, []string{"choices"}, false},
}

// optunaLong reads the form `{"name": "FloatDistribution", "attributes": {…}}`.
func (r *fieldReader) optunaLong(n *node) {
	r.b.keys(n, r.name, []string{"name", "attributes"}, "")
	a := n.get("attributes")
	if a == nil || a.kind != nodeObject {
		r.fault(n.line, "attributes", "", "a distribution has attributes", `add "attributes": {…}`)
		return
	}
	name := r.text(n, "name")
	form, ok := optunaForms[name]
	if !ok {
		r.fault(n.line, "name", quote(name), "there is no such distribution", suggestKey(name, []string{"FloatDistribution", "IntDistribution", "CategoricalDistribution"}, "use FloatDistribution, IntDistribution or CategoricalDistribution"))
		return
	}
	r.p.Type = form.typ
	r.b.keys(a, r.name, form.keys, "")
	r.optunaFields(a)
	r.number(a, "q", &r.p.Step)
	if form.log {
		r.p.Scale = Log
	}
}

// optunaFields reads low, high, step, log and choices. A step of null means no step.
func (r *fieldReader) optunaFields(n *node) {
	r.number(n, "low", &r.p.Low)
	r.number(n, "high", &r.p.High)
	if f := n.get("step"); f != nil && f.kind != nodeNull {
		r.number(n, "step", &r.p.Step)
	}
	if f := r.field(n, "log"); f != nil {
		if f.kind != nodeBool {
			r.fault(f.line, "log", f.shown(), "must be true or false", `write "log": true, or leave it out`)
		} else if strings.EqualFold(f.text, "true") {
			r.p.Scale = Log
		}
	}
	r.p.Values = r.values(n, "choices")
}

// OptunaJSON writes s in Optuna's short form. A constant becomes a categorical of one
// choice, which Optuna gives to every trial unchanged. Ordinals, conditions and reverse-log
// ranges have no counterpart there, and the error names each.
func (s *Space) OptunaJSON() ([]byte, error) {
	var f faults
	if len(s.constraints) > 0 {
		f.add(&Error{Field: fieldConstraints, Value: quote(s.constraints[0].text), Rule: "Optuna's form has no constraints", Remedy: "leave them to the objective, or export BKB Tuner's own form"})
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i := range s.members {
		p := &s.members[i].Parameter
		if e := optunaCannot(p); e != nil {
			f.add(e)
			continue
		}
		if i > 0 {
			out.WriteByte(',')
		}
		writeText(&out, p.Name)
		out.WriteByte(':')
		writeOptuna(&out, p)
	}
	out.WriteByte('}')
	if err := f.err(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// optunaCannot returns why p has no counterpart in Optuna, or nil.
func optunaCannot(p *Parameter) *Error {
	e := &Error{Parameter: p.Name}
	switch {
	case len(p.When) > 0:
		e.Field, e.Rule, e.Remedy = fieldWhen, "Optuna's form has no conditions", "leave the condition to the objective, or export BKB Tuner's own form"
	case p.Type == TypeOrdinal:
		e.Field, e.Value, e.Rule, e.Remedy = "type", "ordinal", "Optuna's form has no ordered choices", "use type: categorical, or an int index into the values"
	case p.Scale == ReverseLog:
		e.Field, e.Value, e.Rule, e.Remedy = "scale", "reverse-log", "Optuna's form has no reverse-log scale", "tune the distance from the upper end on a log scale"
	default:
		return nil
	}
	return e
}

func writeOptuna(out *bytes.Buffer, p *Parameter) {
	if p.Type == TypeCategorical || p.Type == TypeConstant {
		out.WriteString(`{"type":"categorical","choices":`)
		writeList(out, p.Values)
		out.WriteByte('}')
		return
	}
	out.WriteString(`{"type":"` + p.Type.String() + `","low":`)
	writeValue(out, p.Low)
	out.WriteString(`,"high":`)
	writeValue(out, p.High)
	out.WriteString(`,"step":`)
	if p.Step.kind == KindNone {
		out.WriteString("null")
	} else {
		writeValue(out, p.Step)
	}
	out.WriteString(`,"log":` + strconv.FormatBool(p.Scale == Log) + "}")
}
