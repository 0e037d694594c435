package space

import (
	"slices"
	"strings"
)

// Form is a file format of spaces.
type Form uint8

// The forms that [Parse] distinguishes. The zero Form is none of them.
const (
	FormOwn         Form = iota + 1 // `parameters: {name: {type: …}}`
	FormOptunaShort                 // `{"name": {"type": "float", …}}`
	FormOptunaLong                  // `{"name": {"name": "FloatDistribution", "attributes": {…}}}`
	FormKatib                       // a list of {name, parameterType, feasibleSpace}, alone or in an Experiment
)

// String names the form.
func (f Form) String() string {
	return named("Form", uint8(f), []string{FormOwn: "BKB Tuner's own form", FormOptunaShort: "Optuna's short form", FormOptunaLong: "Optuna's long form", FormKatib: "Katib's parameter list"})
}

// Parse reads a space from YAML or JSON in any of the forms and lints it. If the space has
// faults, the error joins an [Error] for each. [Detect] returns the form of the file.
func Parse(data []byte) (*Space, []Warning, error) { return parseAs(data, 0, builder{}) }

// UnmarshalJSON reads a space as [Parse] does.
func (s *Space) UnmarshalJSON(data []byte) error {
	read, _, err := Parse(data)
	if err == nil {
		*s = *read
	}
	return err
}

// NoChoice is the choice null of Optuna, which is None in Python, as [ParseOptuna] reads it.
const NoChoice = "none"

// ParseOptuna reads a space in Optuna's JSON, in its short and long form and with the
// legacy names of distributions. The choice null becomes [NoChoice].
func ParseOptuna(data []byte) (*Space, []Warning, error) {
	return parseAs(data, FormOptunaShort, builder{nulls: true})
}

// ParseKatib reads a space from Katib's parameter list. This is the bare list, a mapping
// with parameters, or a whole Experiment.
func ParseKatib(data []byte) (*Space, []Warning, error) { return parseAs(data, FormKatib, builder{}) }

// Detect returns the form as which [Parse] reads a file. It fails if the file is not
// readable or has none of the forms. It does not check the space.
func Detect(data []byte) (Form, error) {
	tree, err := readTree(data)
	if err != nil {
		return 0, err
	}
	return detect(tree)
}

// parseAs reads a form with a builder. The zero form is detected.
func parseAs(data []byte, form Form, b builder) (*Space, []Warning, error) {
	tree, err := readTree(data)
	if err == nil && form == 0 {
		form, err = detect(tree)
	}
	if err != nil {
		return nil, nil, err
	}
	switch form {
	case FormOwn:
		b.own(tree)
	case FormKatib:
		b.katib(tree)
	default:
		b.optuna(tree)
	}
	s, err := b.space()
	if err != nil {
		return nil, nil, err
	}
	return s, Lint(s), nil
}

// detect returns the form, which it recognises by the outline of the file.
func detect(tree *node) (Form, error) {
	switch {
	case tree.kind == nodeList:
		return FormKatib, nil
	case tree.kind != nodeObject:
		return 0, &Error{Line: tree.line, Value: tree.shown(), Rule: "a space file is a mapping", Remedy: "list the parameters under parameters:"}
	}
	if inner := tree.get("parameters"); inner != nil && !looksLikeDistribution(inner) {
		if inner.kind == nodeList {
			return FormKatib, nil
		}
		return FormOwn, nil
	}
	if tree.get("version") != nil && !looksLikeDistribution(tree.get("version")) {
		return FormOwn, nil
	}
	if spec := tree.get("spec"); spec != nil && !looksLikeDistribution(spec) && (tree.get("apiVersion") != nil || tree.get("kind") != nil) {
		return FormKatib, nil
	}
	for _, m := range tree.members {
		if m.value.get("attributes") != nil {
			return FormOptunaLong, nil
		}
	}
	return FormOptunaShort, nil
}

// looksLikeDistribution distinguishes a parameter that is called "parameters" from the list
// of parameters.
func looksLikeDistribution(n *node) bool {
	if n.kind != nodeObject {
		return false
	}
	for _, key := range []string{"type", "name"} {
		if f := n.get(key); f != nil && f.kind == nodeText {
			return true
		}
	}
	return false
}

func (b *builder) own(tree *node) {
	b.src.words = ownDialect
	if tree.kind != nodeObject {
		b.add(&Error{Line: tree.line, Rule: "a space file is a mapping", Remedy: "list the parameters under parameters:"})
		return
	}
	b.keys(tree, "", []string{"version", "parameters", fieldConstraints}, "parameters go under parameters:")
	if v := tree.get("version"); v != nil && (v.kind != nodeNumber || v.text != "1") {
		b.add(&Error{Line: v.line, Field: "version", Value: v.shown(), Rule: "this program reads version 1", Remedy: "use version: 1, or a newer program"})
	}
	list := tree.get("parameters")
	if list == nil || list.kind != nodeObject {
		b.add(&Error{Line: tree.line, Field: "parameters", Rule: "a space file has a mapping of parameters", Remedy: "write parameters: {name: {type: …}}"})
		return
	}
	for i := range list.members {
		m := &list.members[i]
		b.ownParameter(b.parameter(m.key, m.line), &m.value)
	}
	b.ownConstraints(tree.get(fieldConstraints))
}

func (b *builder) ownConstraints(n *node) {
	if n == nil {
		return
	}
	if n.kind != nodeList {
		b.faults.add(&Error{Line: n.line, Field: fieldConstraints, Value: n.shown(), Rule: "must be a list, not " + n.kind.String(), Remedy: "write - a <= b below it"})
		return
	}
	for i := range n.items {
		item := &n.items[i]
		if item.kind != nodeText {
			b.faults.add(&Error{Line: item.line, Field: fieldConstraints, Value: item.shown(), Rule: "a constraint is a text, not " + item.kind.String(), Remedy: `write "a <= b"`})
			continue
		}
		b.constraints = append(b.constraints, written{item.text, item.line})
	}
}

func (b *builder) ownParameter(r *fieldReader, n *node) {
	switch {
	case n.kind == nodeList && slices.ContainsFunc(n.items, func(v node) bool { return v.kind == nodeNumber }):
		r.fault(n.line, "", n.shown(), "numbers may have an order or none", "write {type: ordinal, values: […]}, or type: categorical")
		return
	case n.kind == nodeList: // a categorical in short
		r.lines["values"] = n.line
		r.p.Type, r.p.Values = TypeCategorical, r.list(n, "values")
		return
	case n.kind != nodeObject:
		r.fault(n.line, "", n.shown(), "a parameter is described by a mapping", "write {type: constant, value: …}, or another type")
		return
	}
	r.field(n, "type")
	typ, ok := ownType(n.get("type"))
	if !ok {
		r.unknownType(n)
		return
	}
	r.read(n, typ, ownKeys[typ], "")
	r.ownScale(n)
	if f := r.field(n, "value"); f != nil && typ == TypeConstant {
		r.p.Values = r.list(&node{kind: nodeList, line: f.line, items: []node{*f}}, "value")
	}
	r.when(n)
}

var ownKeys = [...][]string{
	TypeFloat:       {"type", "low", "high", "step", "scale", "when"},
	TypeInt:         {"type", "low", "high", "step", "scale", "when"},
	TypeOrdinal:     {"type", "values", "when"},
	TypeCategorical: {"type", "values", "when"},
	TypeConstant:    {"type", "value", "when"},
}

func ownType(n *node) (Type, bool) {
	if n == nil || n.kind != nodeText {
		return 0, false
	}
	i := slices.Index(typeNames, n.text)
	return Type(i), i > 0
}

// foreignTypes are the names of types of other programs, with what they are here.
var foreignTypes = map[string]string{
	"double": "float", "real": "float", "number": "float", "uniform": "float",
	"loguniform": "float and scale: log", "log_uniform": "float and scale: log", "log": "float and scale: log",
	"integer": "int", "randint": "int",
	"bool": "categorical, values: [false, true]", "boolean": "categorical, values: [false, true]",
	"choice": "categorical", "enum": "categorical", "string": "categorical",
	"discrete": "ordinal", "fixed": "constant", "const": "constant",
}

func (r *fieldReader) unknownType(n *node) {
	hint := "use " + strings.Join(typeNames[1:], ", ")
	f := n.get("type")
	if f == nil {
		r.fault(n.line, "type", "", "a parameter has a type", hint)
		return
	}
	remedy := suggestKey(f.text, typeNames[1:], hint)
	if own := foreignTypes[strings.ToLower(f.text)]; own != "" {
		remedy = "use type: " + own
	}
	r.fault(f.line, "type", f.shown(), "there is no such type", remedy)
}

func (r *fieldReader) ownScale(n *node) {
	text := r.text(n, "scale")
	if text == "" {
		return
	}
	i := slices.Index(scaleNames, text)
	if r.p.Scale = Scale(max(i, 0)); i < 0 {
		r.fault(r.lines["scale"], "scale", quote(text), "there is no such scale", suggestKey(text, scaleNames, "use linear, log or reverse-log"))
	}
}

// when reads the conditions, `parent: value` or `parent: [value, …]`.
func (r *fieldReader) when(n *node) {
	f := r.field(n, fieldWhen)
	if f == nil {
		return
	}
	if f.kind != nodeObject {
		r.fault(f.line, fieldWhen, f.shown(), "conditions are a mapping", "write when: {parent: value}")
		return
	}
	r.b.keys(f, r.name, nil, "")
	for i := range f.members {
		m := &f.members[i]
		list := &m.value
		if list.kind != nodeList {
			list = &node{kind: nodeList, line: m.line, items: []node{m.value}}
		}
		r.p.When = append(r.p.When, Condition{Parent: m.key, Values: r.list(list, fieldWhen)})
	}
}
