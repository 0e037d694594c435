package space

import (
	"cmp"
	"slices"
)

// katib reads Katib's parameter list, if need be out of an Experiment.
func (b *builder) katib(tree *node) {
	b.src.words = katibDialect
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
	var typ Type
	known := []string{"list"}
	switch text := r.text(n, "parameterType"); text {
	case "double":
		typ, known = TypeFloat, []string{"min", "max", "step", "distribution"}
	case "int":
		typ, known = TypeInt, []string{"min", "max", "step", "distribution"}
	case "discrete":
		typ = TypeOrdinal
	case "categorical":
		typ = TypeCategorical
	default:
		r.fault(n.line, "parameterType", quote(text), "Katib's types are double, int, discrete and categorical", "use one of them")
		return
	}
	r.read(f, typ, known, "")
	if typ == TypeOrdinal {
		r.katibDiscrete()
	}
	if typ == TypeFloat || typ == TypeInt {
		r.katibScale(f)
	}
}

func (r *fieldReader) katibScale(f *node) {
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

// katibDiscrete reads the texts of a list as numbers, and sorts them, because Katib's
// discrete parameter is a set.
func (r *fieldReader) katibDiscrete() {
	for i, v := range r.p.Values {
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
		r.p.Values[i] = n
	}
	slices.SortStableFunc(r.p.Values, compareNumbers)
}

func compareNumbers(a, b Value) int {
	if a.kind == KindInt && b.kind == KindInt {
		return cmp.Compare(int64(a.bits), int64(b.bits))
	}
	x, _ := a.Number()
	y, _ := b.Number()
	return cmp.Compare(x, y)
}
