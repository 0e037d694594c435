package space

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func itoa(n int) string { return strconv.Itoa(n) }

// checker finds the faults of parameters and normalises those without faults.
type checker struct {
	faults
	src *source
}

func (c *checker) at(i int, name, field, value, rule, remedy string) {
	c.add(&Error{Line: c.src.line(i, field), Parameter: name, Field: field, Value: value, Rule: rule, Remedy: remedy})
}

// member checks all of p except its conditions.
func (c *checker) member(i int, p Parameter) member {
	if i < len(c.src.broken) && c.src.broken[i] {
		return member{Parameter: p}
	}
	before := len(c.list) + c.more
	c.name(i, p.Name)
	switch p.Type {
	case TypeFloat, TypeInt:
		c.numeric(i, &p)
	case TypeOrdinal, TypeCategorical, TypeConstant:
		c.choices(i, &p)
	default:
		c.at(i, p.Name, "type", "", "a parameter has a type", "use float, int, ordinal, categorical or constant")
	}
	m := member{Parameter: p, line: c.src.line(i, "")}
	if len(c.list)+c.more > before {
		return m
	}
	m.axis = newAxis(&m.Parameter)
	if m.axis == nil && p.Type != TypeConstant {
		c.at(i, p.Name, c.src.words.step, show(p.Step), "the step is too fine for float64 to tell the points apart", "leave "+c.src.words.step+" out, or use a larger one")
	}
	return m
}

func (c *checker) name(i int, name string) {
	switch {
	case name == "":
		c.at(i, "", "", "", "a parameter needs a name", "give it one")
	case len(name) > MaxNameBytes:
		c.at(i, "", "name", quote(name), "a name has at most "+itoa(MaxNameBytes)+" bytes, this one "+itoa(len(name)), "shorten it")
	case !utf8.ValidString(name):
		c.at(i, "", "name", quote(name), "a name is valid UTF-8", "save the file as UTF-8")
	case strings.ContainsFunc(name, disturbing):
		c.at(i, "", "name", quote(name), "a name has no control or text-direction characters", "remove them")
	case strings.TrimSpace(name) != name:
		c.at(i, "", "name", quote(name), "a name neither begins nor ends with a space", "use "+quote(strings.TrimSpace(name)))
	}
}

// disturbing reports whether r would make a name look like another one.
func disturbing(r rune) bool {
	return Hostile(r) || unicode.Is(unicode.C, r)
}

// names checks that no two names are alike and builds the index.
func (c *checker) names(s *Space) {
	folded := make(map[string]int, len(s.members))
	for i := range s.members {
		name := s.members[i].Name
		if j, ok := folded[fold(name)]; ok {
			c.twin(i, name, s.members[j].Name)
			continue
		}
		folded[fold(name)] = i
		s.index[name] = i
	}
}

func (c *checker) twin(i int, name, other string) {
	if name == "" {
		return
	}
	rule := "there are two parameters of this name"
	if name != other {
		rule = "differs from parameter " + quote(other) + " only in case"
	}
	c.at(i, name, "name", quote(name), rule, "rename one of them")
}

// fold maps names that differ only in case to one text.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// numeric checks a float or int and converts its bounds and step.
func (c *checker) numeric(i int, p *Parameter) {
	w := c.src.words
	if len(p.Values) > 0 {
		c.at(i, p.Name, w.values, "", article(p.Type.String())+" is a range, not a list", "use "+w.low+" and "+w.high+", or type: ordinal or categorical")
	}
	ok := c.number(i, p, w.low, &p.Low, true)
	ok = c.number(i, p, w.high, &p.High, true) && ok
	if !c.number(i, p, w.step, &p.Step, false) || !ok {
		return
	}
	if less(p.High, p.Low) {
		c.at(i, p.Name, w.low, show(p.Low), "the range is reversed: "+w.low+" is above "+w.high+" = "+show(p.High), "swap them")
		return
	}
	c.step(i, p)
	c.scale(i, p)
}

// number checks one number of a range and converts it to the parameter's kind.
func (c *checker) number(i int, p *Parameter, field string, v *Value, required bool) bool {
	if v.kind == KindNone {
		if required {
			c.at(i, p.Name, field, "", article(p.Type.String())+" needs "+field, "add "+field)
		}
		return !required
	}
	if x, ok := v.AsFloat(); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
		c.at(i, p.Name, field, v.String(), "a bound is a finite number", "write the largest value you would use")
		return false
	}
	if _, ok := v.Number(); !ok {
		c.at(i, p.Name, field, show(*v), "must be a number, not "+article(v.kind.String()), "write a number without quotes")
		return false
	}
	converted, ok := toFloat(*v)
	rule, remedy := "float64 does not hold this integer exactly", "use an integer of at most 15 digits, or type: int"
	if p.Type == TypeInt {
		converted, ok = toInt(*v)
		rule, remedy = "an int has whole numbers of 64 bits", "round it, or use type: float"
	}
	if !ok {
		c.at(i, p.Name, field, show(*v), rule, remedy)
		return false
	}
	*v = converted
	return true
}

func less(a, b Value) bool { return compareNumbers(a, b) < 0 }

func (c *checker) step(i int, p *Parameter) {
	w := c.src.words
	if p.Step.kind == KindNone {
		if p.Type == TypeInt {
			p.Step = Int(1)
		}
		return
	}
	if x, _ := p.Step.Number(); x <= 0 {
		c.at(i, p.Name, w.step, show(p.Step), "a step is above zero", "leave "+w.step+" out, or use a positive one")
	}
	if p.Scale != Linear && p.Step != Int(1) {
		c.at(i, p.Name, w.step, show(p.Step), "steps need the linear scale", "leave "+w.step+" out, or use "+w.linear)
	}
}

func (c *checker) scale(i int, p *Parameter) {
	w := c.src.words
	if p.Scale > ReverseLog {
		c.at(i, p.Name, w.scale, p.Scale.String(), "there is no such scale", "use linear, log or reverse-log")
		return
	}
	low, _ := p.Low.Number()
	if p.Scale == Linear || low > 0 {
		return
	}
	rule := "a log range must not touch zero"
	if low < 0 {
		rule = "a log range must not have negative numbers"
	}
	remedy := "use " + w.linear
	if high, _ := p.High.Number(); high > 0 {
		remedy = "use " + w.low + ": " + positiveLow(p) + ", or " + w.linear
	}
	c.at(i, p.Name, w.low, show(p.Low), rule, remedy)
}

// positiveLow suggests a lower bound for a log range that touches zero.
func positiveLow(p *Parameter) string {
	if p.Type == TypeInt {
		return "1"
	}
	high, _ := p.High.AsFloat()
	return showFloat(significant(math.Pow10(max(decimalExponent(high)-7, -300)), 1))
}

func (c *checker) choices(i int, p *Parameter) {
	w := c.src.words
	kind := p.Type.String()
	if p.Low.kind != KindNone || p.High.kind != KindNone || p.Step.kind != KindNone || p.Scale != Linear {
		c.at(i, p.Name, "type", kind, "only float and int have "+w.low+", "+w.high+", "+w.step+" and "+w.scale, "remove them, or use type: float or int")
	}
	field := w.values
	if p.Type == TypeConstant {
		field = "value"
	}
	switch n := len(p.Values); {
	case n == 0:
		c.at(i, p.Name, field, "", "the "+kind+" has nothing to choose from", "add "+field)
		return
	case n > MaxValues:
		c.at(i, p.Name, field, itoa(n)+" values", "a parameter has at most "+itoa(MaxValues), "use a range, or fewer values")
		return
	case n > 1 && p.Type == TypeConstant:
		c.at(i, p.Name, field, showValues(p.Values), "a constant has one value", "use type: categorical")
		return
	}
	if c.eachValue(i, p.Name, field, p.Values) {
		c.distinct(i, p.Name, field, p.Values)
	}
}

func (c *checker) eachValue(i int, name, field string, values []Value) bool {
	sound := true
	for _, v := range values {
		rule, remedy := valueFault(v)
		if rule != "" {
			sound = false
			c.at(i, name, field, show(v), rule, remedy)
		}
	}
	return sound
}

// valueFault returns the fault of v, independent of its position.
func valueFault(v Value) (rule, remedy string) {
	switch x, _ := v.Number(); {
	case v.kind == KindNone:
		return "a value is a number, a text, true or false", `name the absence, for example "none"`
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "a number must be finite", "write a finite number, or quote it if it is text"
	case len(v.text) > MaxTextBytes:
		return "a text has at most " + itoa(MaxTextBytes) + " bytes, this one " + itoa(len(v.text)), "give it a short name and look it up in the trial"
	case !utf8.ValidString(v.text):
		return "a text is valid UTF-8", "save the file as UTF-8"
	case strings.ContainsFunc(v.text, Hostile):
		return "a text has no control or text-direction characters", "give it a plain name and look it up in the trial"
	default:
		return "", ""
	}
}

// distinct checks that the values differ as text, because a command line takes them as
// text. The float 1.0 and the int 1 differ.
func (c *checker) distinct(i int, name, field string, values []Value) {
	seen := make(map[string]Value, len(values))
	for _, v := range values {
		text := literal(v)
		other, twice := seen[text]
		switch {
		case !twice:
			seen[text] = v
		case other == v:
			c.at(i, name, field, show(v), "the value is there twice", "remove one")
		default:
			c.at(i, name, field, show(v), article(other.kind.String())+" in the same list is written the same", "rename one of them")
		}
	}
}

func article(word string) string {
	if word != "" && strings.Contains("aeio", word[:1]) {
		return "an " + word
	}
	return "a " + word
}
