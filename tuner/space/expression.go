package space

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clause is a constraint as a tree without negations.
type clause struct {
	kind  clauseKind
	parts []*clause // of all and any
	// A comparison of numbers is left <= 0, left < 0, left = 0 or left != 0.
	left  *term
	whole bool // all its parameters are integers, and it is decided exactly
	small bool // of whole: float64 represents every part of it
	// A comparison of values is member = value or member != value, or that of two members.
	member, other int // other is -1 for value
	value         Value
	equal         bool
}

type clauseKind uint8

const (
	all      clauseKind = iota // every part holds
	anyOf                      // a part holds
	atMost                     // left <= 0
	below                      // left < 0
	zero                       // left = 0
	nonzero                    // left != 0
	sameText                   // of values
)

// term is an arithmetic expression. A leaf is a number or a parameter.
type term struct {
	op          byte // + - * /, 'n' for a number, 'p' for a parameter
	left, right *term
	number      float64
	decimal     string // the number as written
	member      int
}

func (t *term) at(x []float64) float64 {
	v, _ := t.sized(x)
	return v
}

// sized returns the value with its size, which is the value if all signs were positive.
// Rounding errors are relative to the size.
func (t *term) sized(x []float64) (v, size float64) {
	switch t.op {
	case 'n':
		return t.number, math.Abs(t.number)
	case 'p':
		return x[t.member], math.Abs(x[t.member])
	}
	l, sizeLeft := t.left.sized(x)
	r, sizeRight := t.right.sized(x)
	switch t.op {
	case '+':
		return l + r, sizeLeft + sizeRight
	case '-':
		return l - r, sizeLeft + sizeRight
	case '*':
		return l * r, sizeLeft * sizeRight
	default:
		return l / r, sizeLeft / math.Abs(r)
	}
}

// reduce computes a result of the term from those of its leaves.
func reduce[T any](t *term, leaf func(*term) T, join func(op byte, left, right T) T) T {
	if t.left == nil {
		return leaf(t)
	}
	return join(t.op, reduce(t.left, leaf, join), reduce(t.right, leaf, join))
}

func (t *term) exact(values []Value) *big.Rat {
	return reduce(t, func(t *term) *big.Rat {
		if t.op == 'n' {
			v, _ := new(big.Rat).SetString(t.decimal) // which the reader has checked
			return v
		}
		n, _ := values[t.member].AsInt()
		return new(big.Rat).SetInt64(n)
	}, func(op byte, l, r *big.Rat) *big.Rat {
		switch op {
		case '+':
			return l.Add(l, r)
		case '-':
			return l.Sub(l, r)
		case '*':
			return l.Mul(l, r)
		default:
			return l.Quo(l, r) // readers refuse divisors that can be 0
		}
	})
}

// derivative returns the derivative by a member, given the numbers of the members.
func (t *term) derivative(k int, x []float64) float64 {
	type dual struct{ v, d float64 }
	return reduce(t, func(t *term) dual {
		if t.op == 'n' {
			return dual{t.number, 0}
		}
		if t.member == k {
			return dual{x[k], 1}
		}
		return dual{x[t.member], 0}
	}, func(op byte, l, r dual) dual {
		switch op {
		case '+':
			return dual{l.v + r.v, l.d + r.d}
		case '-':
			return dual{l.v - r.v, l.d - r.d}
		case '*':
			return dual{l.v * r.v, l.d*r.v + l.v*r.d}
		default:
			return dual{l.v / r.v, (l.d - l.v*r.d/r.v) / r.v}
		}
	}).d
}

func (t *term) members(out []int) []int {
	switch t.op {
	case 'n':
		return out
	case 'p':
		return append(out, t.member)
	default:
		return t.right.members(t.left.members(out))
	}
}

func (t *term) constant() bool { return len(t.members(nil)) == 0 }

// span returns bounds of the value, and one of the size of the term and of every part of it.
func (t *term) span(s *Space) (low, high, size float64) {
	type bounds struct{ low, high, size float64 }
	b := reduce(t, func(t *term) bounds {
		low, high := t.number, t.number
		if t.op == 'p' {
			low, high = s.members[t.member].span()
		}
		return bounds{low, high, max(math.Abs(low), math.Abs(high))}
	}, func(op byte, l, r bounds) bounds {
		switch op {
		case '+':
			return bounds{l.low + r.low, l.high + r.high, l.size + r.size}
		case '-':
			return bounds{l.low - r.high, l.high - r.low, l.size + r.size}
		case '*':
			a, b, c, d := l.low*r.low, l.low*r.high, l.high*r.low, l.high*r.high
			return bounds{min(a, b, c, d), max(a, b, c, d), l.size * r.size}
		default:
			a, b, c, d := l.low/r.low, l.low/r.high, l.high/r.low, l.high/r.high
			return bounds{min(a, b, c, d), max(a, b, c, d), l.size / min(math.Abs(r.low), math.Abs(r.high))}
		}
	})
	return b.low, b.high, b.size
}

// linear reports whether the term is linear in a member, given the others. It is linear
// with the same slope everywhere if steady is true.
func (t *term) linear(k int) (ok, steady bool) {
	type shape struct{ has, constant, ok, steady bool }
	f := reduce(t, func(t *term) shape {
		return shape{t.op == 'p' && t.member == k, t.op == 'n', true, true}
	}, func(op byte, l, r shape) shape {
		out := shape{l.has || r.has, l.constant && r.constant, true, true}
		switch {
		case !out.has:
		case op == '+' || op == '-':
			out.ok, out.steady = l.ok && r.ok, l.steady && r.steady
		case op == '/':
			out.ok, out.steady = l.ok && !r.has, l.steady && r.constant
		case l.has && r.has:
			out.ok, out.steady = false, false
		case l.has:
			out.ok, out.steady = l.ok, l.steady && r.constant
		default:
			out.ok, out.steady = r.ok, r.steady && l.constant
		}
		return out
	})
	return f.ok, f.steady
}

// whole reports whether all parameters are integers. If numbers is true, the numbers must
// be integers too, and there is no division.
func (t *term) whole(s *Space, numbers bool) bool {
	switch t.op {
	case 'n':
		return !numbers || t.number == math.Trunc(t.number)
	case 'p':
		return s.members[t.member].whole()
	default:
		return t.left.whole(s, numbers) && t.right.whole(s, numbers) && !(numbers && t.op == '/')
	}
}

// whole reports whether all values of the parameter are integers.
func (m *member) whole() bool {
	return m.Type == TypeInt || len(m.Values) > 0 && !slices.ContainsFunc(m.Values, func(v Value) bool { return v.kind != KindInt })
}

// numeric returns the numbers of a parameter, if all its values are numbers.
func (m *member) numeric() bool {
	if m.isRange() {
		return true
	}
	for _, v := range m.Values {
		if _, ok := v.Number(); !ok {
			return false
		}
	}
	return true
}

// span returns the smallest and largest number of a parameter of numbers.
func (m *member) span() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range append([]Value{m.Low, m.High}, m.Values...) {
		if x, ok := v.Number(); ok {
			low, high = min(low, x), max(high, x)
		}
	}
	return low, high
}

type token struct {
	kind  tokenKind
	text  string // as written, of a quoted text or name without the quotes
	value Value  // of a number, text or truth value
	at    int    // in bytes
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenValue
	tokenSign // operators and parentheses
)

// signs are the operators, longer ones first, and how they are understood.
var signs = [...]struct{ text, means string }{
	{"<=", "<="},
	{">=", ">="},
	{"==", "="},
	{"!=", "!="},
	{"≤", "<="},
	{"≥", ">="},
	{"≠", "!="},
	{"&&", "and"},
	{"||", "or"},
	{"<", "<"},
	{">", ">"},
	{"=", "="},
	{"!", "not"},
	{"+", "+"},
	{"-", "-"},
	{"*", "*"},
	{"·", "*"},
	{"/", "/"},
	{"(", "("},
	{")", ")"},
}

// expressionError is a fault at a place of a constraint.
type expressionError struct {
	at           int // in bytes
	rule, remedy string
}

// reader reads a constraint for a space. Its methods panic with an expressionError.
type reader struct {
	s      *Space
	text   string
	tokens []token
	next   int
	depth  int
}

// maxConstraintDepth is how deep parentheses and negations may be nested.
const maxConstraintDepth = 64

func (s *Space) readConstraint(text string) (c *clause, fault *expressionError) {
	r := &reader{s: s, text: text}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case expressionError:
			c, fault = nil, &e
		default:
			panic(e)
		}
	}()
	r.split()
	c = r.or(true)
	if t := r.peek(); t.kind != tokenEnd {
		r.fail(t, "nothing may follow a complete comparison, and "+quote(t.text)+" does", "join comparisons with and, or")
	}
	return c, nil
}

func (r *reader) fail(t token, rule, remedy string) {
	panic(expressionError{t.at, rule, remedy})
}

func (r *reader) peek() token { return r.tokens[r.next] }

// take returns the next token if it is one of the signs or words, else "".
func (r *reader) take(texts ...string) string {
	t := r.peek()
	for _, text := range texts {
		if t.kind == tokenSign && t.text == text {
			r.next++
			return text
		}
	}
	return ""
}

func (r *reader) split() {
	for at := 0; ; {
		rest := strings.TrimLeft(r.text[at:], " \t\r\n")
		at = len(r.text) - len(rest)
		if rest == "" {
			r.tokens = append(r.tokens, token{kind: tokenEnd, at: at, text: "the end"})
			return
		}
		t, n := r.token(rest, at)
		t.at = at
		r.tokens = append(r.tokens, t)
		at += n
	}
}

// token reads the token at the start of rest, and returns its length.
func (r *reader) token(rest string, at int) (token, int) {
	switch c, _ := utf8.DecodeRuneInString(rest); {
	case c == '"' || c == '\'' || c == '`':
		end := strings.IndexRune(rest[1:], c)
		if end < 0 {
			r.fail(token{at: at}, "the quote "+string(c)+" is not closed", "close it")
		}
		text := rest[1 : 1+end]
		if c == '`' {
			return token{kind: tokenName, text: text}, end + 2
		}
		return token{kind: tokenValue, text: rest[:end+2], value: String(text)}, end + 2
	case c == '.' || '0' <= c && c <= '9':
		n := numberLength(rest)
		v, rule, remedy := parseNumber(rest[:n])
		if v.kind == KindNone {
			if rule == "" {
				rule, remedy = quote(rest[:n])+" is not a number", "write a plain decimal, such as 0.5 or 1e-3"
			}
			r.fail(token{at: at}, rule, remedy)
		}
		return token{kind: tokenValue, text: rest[:n], value: v}, n
	case c == '_' || unicode.IsLetter(c):
		n := strings.IndexFunc(rest, func(c rune) bool {
			return c != '_' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		})
		if n < 0 {
			n = len(rest)
		}
		switch word := rest[:n]; word {
		case "and", "or", "not":
			return token{kind: tokenSign, text: word}, n
		case "true", "false":
			return token{kind: tokenValue, text: word, value: Bool(word == "true")}, n
		default:
			return token{kind: tokenName, text: word}, n
		}
	}
	for _, s := range signs {
		if strings.HasPrefix(rest, s.text) {
			return token{kind: tokenSign, text: s.means}, len(s.text)
		}
	}
	c, _ := utf8.DecodeRuneInString(rest)
	r.fail(token{at: at}, quote(string(c))+" has no meaning here", "use parameters, numbers, + - * /, comparisons, and, or, not")
	return token{}, 0
}

// numberLength returns how many bytes of text can belong to a number.
func numberLength(text string) int {
	for i, c := range []byte(text) {
		digit := '0' <= c && c <= '9' || c == '.' || c == '_'
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		sign := (c == '-' || c == '+') && i > 0 && (text[i-1] == 'e' || text[i-1] == 'E')
		if !digit && !letter && !sign {
			return i
		}
	}
	return len(text)
}

// or reads a disjunction. With holds false it returns the negation.
func (r *reader) or(holds bool) *clause { return r.joined("or", holds, r.and) }

func (r *reader) and(holds bool) *clause { return r.joined("and", holds, r.not) }

func (r *reader) joined(word string, holds bool, part func(bool) *clause) *clause {
	parts := []*clause{part(holds)}
	for r.take(word) != "" {
		parts = append(parts, part(holds))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	kind := all
	if (word == "or") == holds {
		kind = anyOf
	}
	return &clause{kind: kind, parts: parts}
}

func (r *reader) not(holds bool) *clause {
	if r.depth++; r.depth > maxConstraintDepth {
		r.fail(r.peek(), fmt.Sprintf("parentheses and negations are nested at most %d deep", maxConstraintDepth), "simplify it")
	}
	defer func() { r.depth-- }()
	if r.take("not") != "" {
		return r.not(!holds)
	}
	if r.opensClause() {
		r.next++
		c := r.or(holds)
		r.close()
		return c
	}
	return r.comparisons(holds)
}

func (r *reader) close() {
	if r.take(")") == "" {
		r.fail(r.peek(), "a parenthesis is not closed before "+quote(r.peek().text), "add )")
	}
}

// opensClause reports whether the next token is a parenthesis around comparisons. Others
// are around sums.
func (r *reader) opensClause() bool {
	if t := r.peek(); t.kind != tokenSign || t.text != "(" {
		return false
	}
	depth := 0
	for i := r.next; i < len(r.tokens); i++ {
		if r.tokens[i].kind != tokenSign {
			continue
		}
		switch r.tokens[i].text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 { // a lone truth value in parentheses
				after := r.tokens[min(i+1, len(r.tokens)-1)]
				return after.kind == tokenEnd || after.kind == tokenSign && (after.text == "and" || after.text == "or" || after.text == ")")
			}
		case "<=", ">=", "<", ">", "=", "!=", "and", "or", "not":
			return true
		}
	}
	return true
}

var negations = map[string]string{"<=": ">", ">=": "<", "<": ">=", ">": "<=", "=": "!=", "!=": "="}

// comparisons reads a chain such as a <= b <= c, or a parameter that is true or false.
func (r *reader) comparisons(holds bool) *clause {
	start := r.peek()
	left := r.side()
	var parts []*clause
	for {
		at := r.peek()
		sign := r.take("<=", ">=", "<", ">", "=", "!=")
		if sign == "" {
			break
		}
		right := r.side()
		if !holds {
			sign = negations[sign]
		}
		parts = append(parts, r.compare(at, left, sign, right))
		left = right
	}
	switch {
	case len(parts) == 1:
		return parts[0]
	case len(parts) > 1 && holds:
		return &clause{kind: all, parts: parts}
	case len(parts) > 1:
		return &clause{kind: anyOf, parts: parts}
	case left.name >= 0 && r.s.members[left.name].holdsBools():
		return &clause{kind: sameText, member: left.name, other: -1, value: Bool(true), equal: holds}
	default:
		r.fail(start, "a constraint compares, and there is no <=, <, =, !=, > or >= before "+quote(r.peek().text), "write a comparison, such as a <= b")
		return nil
	}
}

func (m *member) holdsBools() bool {
	return len(m.Values) > 0 && m.Values[0].kind == KindBool
}

// side is one side of a comparison. It is a sum of numbers, else a value or a parameter of
// values.
type side struct {
	sum   *term // nil if it is not a number
	name  int   // the parameter, -1 unless the side is just one
	value Value // of a text or truth value
	at    token
}

func (r *reader) side() side {
	t := r.peek()
	if t.kind == tokenValue && (t.value.kind == KindString || t.value.kind == KindBool) {
		r.next++
		return side{name: -1, value: t.value, at: t}
	}
	if t.kind == tokenName {
		if k := r.parameter(t); !r.s.members[k].numeric() {
			r.next++
			if r.take("+", "-", "*", "/") != "" {
				r.noNumber(t, k)
			}
			return side{name: k, at: t}
		}
	}
	out := side{sum: r.sum(), name: -1, at: t}
	if out.sum.op == 'p' {
		out.name = out.sum.member
	}
	return out
}

func (r *reader) parameter(t token) int {
	k, ok := r.s.index[t.text]
	if !ok {
		r.fail(t, "there is no parameter "+quote(t.text), r.s.didYouMean(t.text))
	}
	return k
}

// noNumber fails because a parameter is used as a number and is none.
func (r *reader) noNumber(t token, k int) {
	r.fail(t, "parameter "+quote(t.text)+" has values that are not numbers", "compare it with a value, such as "+t.text+" == "+show(r.s.members[k].Values[0]))
}

func (r *reader) sum() *term {
	out := r.product()
	for {
		op := r.take("+", "-")
		if op == "" {
			return out
		}
		out = &term{op: op[0], left: out, right: r.product()}
	}
}

func (r *reader) product() *term {
	out := r.factor()
	for {
		at := r.peek()
		op := r.take("*", "/")
		if op == "" {
			return out
		}
		right := r.factor()
		if low, high, _ := right.span(r.s); op == "/" && !(low > 0 || high < 0) {
			r.fail(at, "the divisor can be 0", "multiply the other side instead")
		}
		out = &term{op: op[0], left: out, right: right}
	}
}

func (r *reader) factor() *term {
	if r.depth++; r.depth > maxConstraintDepth {
		r.fail(r.peek(), fmt.Sprintf("parentheses and negations are nested at most %d deep", maxConstraintDepth), "simplify it")
	}
	defer func() { r.depth-- }()
	t := r.peek()
	switch {
	case r.take("-") != "":
		if out := r.factor(); out.op != 'n' {
			return &term{op: '-', left: &term{op: 'n', decimal: "0"}, right: out}
		} else {
			return &term{op: 'n', number: -out.number, decimal: negated(out.decimal)}
		}
	case r.take("+") != "":
		return r.factor()
	case r.take("(") != "":
		out := r.sum()
		r.close()
		return out
	case t.kind == tokenName:
		k := r.parameter(t)
		if !r.s.members[k].numeric() {
			r.noNumber(t, k)
		}
		r.next++
		return &term{op: 'p', member: k}
	case t.kind == tokenValue:
		x, ok := t.value.Number()
		if !ok {
			r.fail(t, t.text+" is not a number", "compare it with a parameter by == or !=")
		}
		r.next++
		return &term{op: 'n', number: x, decimal: t.text}
	default:
		r.fail(t, "a parameter or a number is missing before "+quote(t.text), "add it")
		return nil
	}
}

func negated(x string) string {
	if positive, ok := strings.CutPrefix(x, "-"); ok {
		return positive
	}
	return "-" + x
}

func (r *reader) compare(at token, left side, sign string, right side) *clause {
	if left.sum != nil && right.sum != nil {
		return r.compareNumbers(at, left.sum, sign, right.sum)
	}
	if sign != "=" && sign != "!=" {
		r.fail(at, "only numbers have an order, and "+quote(left.text(right))+" is none", "use == or !=")
	}
	if left.name < 0 {
		left, right = right, left
	}
	if left.name < 0 {
		r.fail(at, "a comparison needs a parameter", "name one")
	}
	m := &r.s.members[left.name]
	c := &clause{kind: sameText, member: left.name, other: right.name, value: right.value, equal: sign == "="}
	if right.name >= 0 {
		return c
	}
	v := right.value
	if right.sum != nil {
		v = right.at.value
	}
	legal, ok := m.understand(v)
	if right.sum != nil && right.sum.op != 'n' || !ok {
		e := m.explain(v)
		r.fail(right.at, "parameter "+quote(m.Name)+" cannot be "+right.at.text+": "+e.Rule, e.Remedy)
	}
	c.value = legal
	return c
}

// text returns the text of the side that is not a number.
func (s side) text(other side) string {
	if s.sum != nil {
		return other.at.text
	}
	return s.at.text
}

func (r *reader) compareNumbers(at token, left *term, sign string, right *term) *clause {
	c := &clause{left: &term{op: '-', left: left, right: right}, kind: atMost}
	if c.left.constant() {
		r.fail(at, "a comparison needs a parameter", "name one")
	}
	if sign == ">" || sign == ">=" {
		c.left = &term{op: '-', left: right, right: left}
	}
	switch sign {
	case "<", ">":
		c.kind = below
	case "=":
		c.kind = zero
	case "!=":
		c.kind = nonzero
	}
	_, _, bound := c.left.span(r.s)
	if math.IsInf(bound, 0) || math.IsNaN(bound) {
		r.fail(at, "the two sides can be too large for a float64", "use smaller numbers")
	}
	c.whole = c.left.whole(r.s, false)
	c.small = c.whole && bound <= 1<<53 && c.left.whole(r.s, true)
	return c
}

func (c *clause) members(out []int) []int {
	switch c.kind {
	case all, anyOf:
		for _, p := range c.parts {
			out = p.members(out)
		}
		return out
	case sameText:
		if out = append(out, c.member); c.other >= 0 {
			out = append(out, c.other)
		}
		return out
	default:
		return c.left.members(out)
	}
}

// holds reports whether values, and their numbers x, keep the clause.
func (c *clause) holds(values []Value, x []float64) bool {
	switch c.kind {
	case all:
		for _, p := range c.parts {
			if !p.holds(values, x) {
				return false
			}
		}
		return true
	case anyOf:
		for _, p := range c.parts {
			if p.holds(values, x) {
				return true
			}
		}
		return false
	case atMost:
		return c.sign(values, x) <= 0
	case below:
		return c.sign(values, x) < 0
	case zero:
		return c.sign(values, x) == 0
	case nonzero:
		return c.sign(values, x) != 0
	default:
		v := c.value
		if c.other >= 0 {
			v = values[c.other]
		}
		return (values[c.member] == v) == c.equal
	}
}

// tolerance is the relative rounding error that equations of floats may have.
const tolerance = 1e-9

// sign returns the sign of a comparison's left side. It is exact for integers. Of = and !=
// between floats it is 0 up to the tolerance.
func (c *clause) sign(values []Value, x []float64) int {
	v, size := c.left.sized(x)
	switch {
	case c.whole && !c.small && math.Abs(v) <= 1e-12*size: // 4096 bytes have fewer than 4096 roundings
		return c.left.exact(values).Sign()
	case !c.whole && (c.kind == zero || c.kind == nonzero) && math.Abs(v) <= tolerance*size:
		return 0
	case v > 0:
		return 1
	case v < 0:
		return -1
	default:
		return 0
	}
}
