package space

import (
	"cmp"
	"slices"
)

// katib reads Katib's parameter list, if need be out of an Experiment.
func (b *builder) katib(tree *node) {
	b.src.words = katibDialect()
	list := tree
	if tree.kind == nodeObject {
		list = b.katibList(tree)
	}
	if list == nil || list.kind != nodeList {
		b.add(&Error{Line: tree.line, Field: "parameters", Rule: "Katib's form has a list of parameters", Remedy: "write parameters: [{name: …, parameterType: …, feasibleSpace: …}]"})
		return
	}
	for i := range list.items {
		b.katibParameter(&list.items[i])
	}
}

// katibList finds the list. It is spec.parameters of an Experiment, whose other fields do
// not describe the space, or parameters of a mapping with no other key.
func (b *builder) katibList(tree *node) *node {
	spec := tree.get("spec")
	if spec == nil {
		b.keys(tree, "", []string{"parameters"}, "")
		return tree.get("parameters")
	}
	b.keys(tree, "", nil, "")
	if spec.kind != nodeObject {
		return nil
	}
	b.keys(spec, "", nil, "")
	return spec.get("parameters")
}

func (b *builder) katibParameter(n *node) {
	if n.kind != nodeObject {
		b.add(&Error{Line: n.line, Value: n.shown(), Rule: "a Katib parameter is a mapping", Remedy: "write {name: …, parameterType: …, feasibleSpace: …}"})
		return
	}
	r := b.parameter("", n.line)
	r.name = r.text(n, "name")
	r.p.Name = r.name
	b.keys(n, r.name, []string{"name", "parameterType", "feasibleSpace"}, "")
	f := n.get("feasibleSpace")
	if f == nil || f.kind != nodeObject {
		r.fault(n.line, "feasibleSpace", "", "a Katib parameter has a feasibleSpace", "add feasibleSpace: {…}")
		return
	}
	switch typ := r.text(n, "parameterType"); typ {
	case "double":
		r.p.Type = TypeFloat
		r.katibRange(f)
	case "int":
		r.p.Type = TypeInt
		r.katibRange(f)
	case "discrete":
		r.p.Type = TypeOrdinal
		r.katibDiscrete(f)
	case "categorical":
		r.p.Type = TypeCategorical
		b.keys(f, r.name, []string{"list"}, "")
		r.p.Values = r.values(f, "list")
	default:
		r.fault(n.line, "parameterType", quote(typ), "Katib's types are double, int, discrete and categorical", "use one of them")
	}
}

func (r *fieldReader) katibRange(f *node) {
	r.b.keys(f, r.name, []string{"min", "max", "step", "distribution"}, "")
	r.katibNumber(f, "min", &r.p.Low)
	r.katibNumber(f, "max", &r.p.High)
	r.katibNumber(f, "step", &r.p.Step)
	switch d := r.text(f, "distribution"); d {
	case "", "uniform":
	case "logUniform":
		r.p.Scale = Log
	case "normal", "logNormal":
		r.fault(r.lines["distribution"], "distribution", quote(d), "a prior over a range is not supported: the model learns where to look", "use uniform, or logUniform, between the bounds you would accept")
	default:
		r.fault(r.lines["distribution"], "distribution", quote(d), "there is no such distribution", suggestKey(d, []string{"uniform", "logUniform"}, "use uniform or logUniform"))
	}
}

// katibNumber reads a number written as text, as Katib does, or bare.
func (r *fieldReader) katibNumber(f *node, key string, v *Value) {
	n := r.field(f, key)
	if n == nil || n.kind == nodeText && n.text == "" {
		return
	}
	bare := *n
	if bare.kind == nodeText {
		bare.kind = nodeNumber
	}
	x, rule, remedy := bare.number()
	if rule != "" {
		r.fault(n.line, key, n.shown(), rule, remedy)
		return
	}
	*v = x
}

// katibDiscrete reads a list of numbers, and sorts them, because Katib's discrete parameter
// is a set.
func (r *fieldReader) katibDiscrete(f *node) {
	r.b.keys(f, r.name, []string{"list"}, "")
	values := r.values(f, "list")
	for i, v := range values {
		text, ok := v.AsString()
		if !ok {
			continue
		}
		n, rule, remedy := parseNumber(text)
		if n.kind == KindNone {
			if rule == "" {
				rule, remedy = "a discrete parameter lists numbers", "use parameterType: categorical for text"
			}
			r.fault(r.lines["list"], "list", quote(text), rule, remedy)
			return
		}
		values[i] = n
	}
	slices.SortStableFunc(values, compareNumbers)
	r.p.Values = values
}

// compareNumbers orders numbers.
func compareNumbers(a, b Value) int {
	if a.kind == KindInt && b.kind == KindInt {
		return cmp.Compare(int64(a.bits), int64(b.bits))
	}
	x, _ := a.Number()
	y, _ := b.Number()
	return cmp.Compare(x, y)
}
