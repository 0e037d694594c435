package space

import (
	"fmt"
	"strings"
)

// optuna reads Optuna's object of name → distribution.
func (b *builder) optuna(tree *node) {
	b.src.words = optunaDialect
	if tree.kind != nodeObject {
		b.add(&Error{Line: tree.line, Rule: "Optuna's form is an object of name and distribution", Remedy: `write {"name": {"type": "float", "low": 0, "high": 1}}`})
		return
	}
	for i := range tree.members {
		m := &tree.members[i]
		r := b.parameter(m.key, m.line)
		if n := &m.value; n.kind != nodeObject {
			r.fault(n.line, "", n.shown(), "a parameter is described by an object", `write {"type": "float", "low": 0, "high": 1}; in BKB Tuner's own form parameters go under parameters:`)
		} else if n.get("attributes") != nil || n.get("name") != nil && n.get("type") == nil {
			r.optunaLong(n)
		} else {
			r.optunaShort(n)
		}
	}
}

// optunaForms are the distributions of Optuna with the keys of their attributes. They have
// short names, and names of versions before 3.
var optunaForms = map[string]struct {
	typ  Type
	keys []string
	log  bool
}{
	"float":                       {TypeFloat, []string{"type", "low", "high", "step", "log"}, false},
	"int":                         {TypeInt, []string{"type", "low", "high", "step", "log"}, false},
	"categorical":                 {TypeCategorical, []string{"type", "choices"}, false},
	"FloatDistribution":           {TypeFloat, []string{"low", "high", "log", "step"}, false},
	"UniformDistribution":         {TypeFloat, []string{"low", "high"}, false},
	"LogUniformDistribution":      {TypeFloat, []string{"low", "high"}, true},
	"DiscreteUniformDistribution": {TypeFloat, []string{"low", "high", "q"}, false},
	"IntDistribution":             {TypeInt, []string{"low", "high", "log", "step"}, false},
	"IntUniformDistribution":      {TypeInt, []string{"low", "high", "step"}, false},
	"IntLogUniformDistribution":   {TypeInt, []string{"low", "high", "step"}, true},
	"CategoricalDistribution":     {TypeCategorical, []string{"choices"}, false},
}

// optunaShort reads the form `{"type": "float", "low": 0, "high": 1}`.
func (r *fieldReader) optunaShort(n *node) {
	name := r.text(n, "type")
	form, ok := optunaForms[name]
	if !ok || form.keys[0] != "type" {
		r.fault(n.line, "type", quote(name), "Optuna's types are float, int and categorical", "use one of them; in BKB Tuner's own form parameters go under parameters:")
		return
	}
	r.read(n, form.typ, form.keys, "this is Optuna's form, with "+strings.Join(form.keys, ", ")+"; in BKB Tuner's own form parameters go under parameters:")
	r.optunaLog(n)
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
	if !ok || form.keys[0] == "type" {
		r.fault(n.line, "name", quote(name), "there is no such distribution", suggestKey(name, []string{"FloatDistribution", "IntDistribution", "CategoricalDistribution"}, "use FloatDistribution, IntDistribution or CategoricalDistribution"))
		return
	}
	r.read(a, form.typ, form.keys, "")
	r.number(a, "q", &r.p.Step)
	if r.optunaLog(a); form.log {
		r.p.Scale = Log
	}
}

func (r *fieldReader) optunaLog(n *node) {
	f := r.field(n, "log")
	switch {
	case f == nil:
	case f.kind != nodeBool:
		r.fault(f.line, "log", f.shown(), "must be true or false", `write "log": true, or leave it out`)
	case strings.EqualFold(f.text, "true"):
		r.p.Scale = Log
	}
}

// OptunaJSON writes s in Optuna's short form. A constant becomes a categorical of one
// choice, which Optuna gives to every trial unchanged. Ordinals, conditions and reverse-log
// ranges have no counterpart there, and the error names each.
func (s *Space) OptunaJSON() ([]byte, error) {
	var f faults
	if len(s.constraints) > 0 {
		f.add(&Error{Field: fieldConstraints, Value: quote(s.constraints[0].text), Rule: "Optuna's form has no constraints", Remedy: "leave them to the objective, or export BKB Tuner's own form"})
	}
	for i := range s.members {
		if e := optunaCannot(&s.members[i].Parameter); e != nil {
			f.add(e)
		}
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	var w writer
	w.join("{}", len(s.members), func(i int) { w.optuna(&s.members[i].Parameter) })
	return []byte(w.String()), nil
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

func (w *writer) optuna(p *Parameter) {
	w.key(p.Name)
	if p.Type == TypeCategorical || p.Type == TypeConstant {
		w.WriteString(`{"type":"categorical","choices":`)
		w.list(p.Values)
		w.WriteByte('}')
		return
	}
	step := "null"
	if p.Step.kind != KindNone {
		step = literal(p.Step)
	}
	fmt.Fprintf(w, `{"type":"%s","low":%s,"high":%s,"step":%s,"log":%t}`, p.Type, literal(p.Low), literal(p.High), step, p.Scale == Log)
}
