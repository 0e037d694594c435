package space

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
)

// Sizes of the search for configurations that keep the constraints.
const (
	anchorDraws  = 8192
	enoughAnchor = 64
	repairs      = 512 // draws that are repaired if none keeps the constraints
)

// populate finds the anchors and equations. It reports whether there is any configuration.
func (s *Space) populate() bool {
	s.solve()
	rng := stream.New(stream.Derive(0, "space constraints", uint64(len(s.axes))))
	var drawn [][]float64
	w := s.workspace()
	for range anchorDraws {
		u := make([]float64, len(s.axes))
		for j := range u {
			u[j] = rng.Float64()
		}
		if s.inside(u, w) {
			s.encodeAll(w.values, u)
			if s.anchors = append(s.anchors, u); len(s.anchors) == enoughAnchor {
				return true
			}
			continue
		}
		if len(drawn) < repairs {
			drawn = append(drawn, u)
		}
	}
	for _, u := range drawn {
		if len(s.anchors) == enoughAnchor {
			break
		}
		if s.approach(u, w) {
			s.encodeAll(w.values, u)
			s.anchors = append(s.anchors, u)
		}
	}
	return len(s.anchors) > 0
}

// emptiness describes that no configuration was found.
func (s *Space) emptiness() *Error {
	e := &Error{
		Line: s.constraints[0].line, Field: fieldConstraints,
		Rule:   fmt.Sprintf("no configuration keeps all constraints, of %d that were tried", anchorDraws),
		Remedy: "loosen a constraint, or widen a parameter",
	}
	for i, c := range s.constraints {
		alone := *s.Free()
		alone.constraints = []constraint{c}
		if !alone.populate() {
			e.Line, e.Field, e.Value = c.line, fmt.Sprintf("%s[%d]", fieldConstraints, i), quote(c.text)
			e.Rule = fmt.Sprintf("no configuration keeps the constraint, of %d that were tried", anchorDraws)
			break
		}
	}
	return e
}

// equation is a constraint of the form left = 0, or a part of one that is joined by and. It
// may determine parameters from others.
type equation struct {
	constraint *constraint
	clause     *clause
	members    []int    // first the one that is determined
	determined bool     // whether one is
	factors    *factors // of a product of integers, which determines all, or nil
}

// broken reports whether the values, with their numbers x, break the equation.
func (e *equation) broken(values []Value, x []float64) bool {
	return e.constraint.applies(values) && !e.clause.holds(values, x)
}

// solve lists the equations, and chooses the parameter that each determines. It is one that
// no other equation has. The one with the largest share in the equation comes first, then
// those in which the equation is linear given the others.
func (s *Space) solve() {
	s.equations = nil
	var list func(c *constraint, part *clause)
	list = func(c *constraint, part *clause) {
		if part.kind == all {
			for _, p := range part.parts {
				list(c, p)
			}
		}
		if part.kind == zero {
			members := part.members(nil)
			slices.Sort(members)
			s.equations = append(s.equations, equation{constraint: c, clause: part, members: slices.Compact(members)})
		}
	}
	for i := range s.constraints {
		list(&s.constraints[i], s.constraints[i].clause)
	}
	for i := range s.equations {
		e := &s.equations[i]
		if e.factors = s.factorsOf(e.clause); e.factors != nil {
			continue
		}
		best, share := -1, math.Inf(-1)
		for at, k := range e.members {
			if v := s.share(e.clause, k); v > share && !s.shared(k, i) {
				best, share = at, v
			}
		}
		if e.determined = best >= 0; e.determined {
			k := e.members[best]
			e.members = slices.Insert(slices.Delete(e.members, best, best+1), 0, k)
		}
	}
}

// share ranks the parameters that an equation can determine. It is -Inf for others.
func (s *Space) share(c *clause, k int) float64 {
	m := &s.members[k]
	if !m.isRange() {
		return math.Inf(-1)
	}
	low, high := m.span()
	switch linear, steady := c.left.linear(k); {
	case steady && high > low:
		return math.Abs(c.left.derivative(k, make([]float64, len(s.members)))) * (high - low)
	case linear && m.Type == TypeFloat:
		return -1
	case linear:
		return -2
	case m.Type == TypeFloat:
		return -3
	default:
		return math.Inf(-1)
	}
}

func (s *Space) shared(k, i int) bool {
	for j := range s.equations {
		if j != i && slices.Contains(s.equations[j].members, k) {
			return true
		}
	}
	return false
}

// workspace has the memory of decoding with constraints.
type workspace struct {
	values []Value
	x      []float64
	active int
	u, g   []float64
}

func (s *Space) workspace() *workspace {
	n := len(s.members)
	return &workspace{values: make([]Value, n), x: make([]float64, n), u: make([]float64, len(s.axes)), g: make([]float64, len(s.axes))}
}

// raw decodes u without regard to constraints, and reports whether the values keep them.
func (s *Space) raw(u []float64, w *workspace) bool {
	clear(w.values)
	w.active = s.decode(u, w.values)
	return s.keeps(w.values, w.x)
}

// inside decodes u, with the parameters that equations determine computed from the others,
// and reports whether the values keep the constraints.
func (s *Space) inside(u []float64, w *workspace) bool {
	if s.raw(u, w) {
		return true
	}
	if len(s.equations) == 0 {
		return false
	}
	for i := range s.equations {
		e := &s.equations[i]
		if !e.broken(w.values, w.x) {
			continue
		}
		if e.factors != nil && !e.factors.nearest(s, u, w) || e.factors == nil && !(e.determined && s.solveFor(e.members[0], e.clause, w)) {
			return false
		}
	}
	return s.finish(w)
}

// solveFor gives member k the value that solves an equation, given the others. If there is
// none in its range, it reports false and changes nothing.
func (s *Space) solveFor(k int, c *clause, w *workspace) bool {
	m := &s.members[k]
	if !m.isRange() {
		return false
	}
	before, x := w.values[k], w.x[k]
	for _, v := range m.around(s.root(k, c, w)) {
		w.values[k] = v
		w.x[k], _ = v.Number()
		if c.holds(w.values, w.x) {
			return true
		}
	}
	w.values[k], w.x[k] = before, x
	return false
}

// root returns the value of member k that solves an equation, given the others: an Int of an
// equation of integers, else a Float that may be outside of the range, or NaN.
func (s *Space) root(k int, c *clause, w *workspace) Value {
	x := w.x[k]
	defer func() { w.x[k] = x }()
	linear, _ := c.left.linear(k)
	if c.whole && !c.small && linear {
		return wholeRoot(k, c, w.values)
	}
	if !linear {
		m := &s.members[k]
		low, high := 0.0, 1.0
		sign := func(u float64) float64 { w.x[k] = m.numberAt(u); return c.left.at(w.x) }
		atLow := sign(low)
		if atLow*sign(high) > 0 {
			return Float(math.NaN())
		}
		for range 60 {
			if middle := (low + high) / 2; sign(middle)*atLow > 0 {
				low = middle
			} else {
				high = middle
			}
		}
		w.x[k] = m.numberAt(high)
	}
	for range 3 { // one step is exact up to rounding
		v := c.left.at(w.x)
		if v == 0 {
			break
		}
		w.x[k] -= v / c.left.derivative(k, w.x)
	}
	return Float(w.x[k])
}

// wholeRoot is root for a linear equation of integers that float64 cannot represent. It is
// NaN if the solution is not an int64.
func wholeRoot(k int, c *clause, values []Value) Value {
	before := values[k]
	defer func() { values[k] = before }()
	values[k] = Int(0)
	at := c.left.exact(values)
	values[k] = Int(1)
	slope := c.left.exact(values)
	if slope.Sub(slope, at); slope.Sign() == 0 {
		return Float(math.NaN())
	}
	at.Quo(at.Neg(at), slope)
	if !at.IsInt() || !at.Num().IsInt64() {
		return Float(math.NaN())
	}
	return Int(at.Num().Int64())
}

// around returns the legal values next to a number, that on the lattice of decoded values
// first. There are none if the number is outside of the range by more than rounding.
func (m *member) around(v Value) []Value {
	x, _ := v.Number()
	low, high := m.span()
	slack := 1e-10 * (high - low)
	if !(x >= low-slack && x <= high+slack) {
		return nil
	}
	x = min(max(x, low), high)
	switch {
	case m.Type == TypeFloat:
		v = Float(x)
	case v.kind != KindInt:
		v = Int(int64(math.Round(x)))
	}
	u, ok := m.axis.encode(v)
	if !ok { // between steps
		u = m.coordinateNear(x)
	}
	if decoded := m.axis.decode(u); !ok || decoded == v {
		return []Value{decoded}
	} else {
		return []Value{decoded, v}
	}
}

// coordinateNear returns the coordinate of a number within a range, linear ones up to steps.
func (m *member) coordinateNear(x float64) float64 {
	low, high := m.span()
	if x <= low || high <= low {
		return 0
	}
	if x >= high {
		return 1
	}
	w := newWarp(low, high, m.Scale)
	return w.forward(x)
}

// finish makes the values in w such that their encoding decodes to them, and reports whether
// they keep the constraints. It rounds them to decoded values and solves equations again.
func (s *Space) finish(w *workspace) bool {
	for _, k := range s.axes {
		if w.values[k].kind != KindNone {
			u, _ := s.members[k].axis.encode(w.values[k])
			w.values[k] = s.members[k].axis.decode(u)
		}
	}
	return s.keeps(w.values, w.x) || s.polish(w)
}

// polish solves the equations that decoded values break by their rounding. Values move by
// less than the rounding of decoding, so that their encoding decodes to the same again. If
// that cannot be, it reports false and changes nothing.
func (s *Space) polish(w *workspace) bool {
	numbers(w.values, w.x)
	if len(s.equations) == 0 {
		return false
	}
	decoded := slices.Clone(w.values)
	if s.solveBroken(w, func(k int) bool {
		u, _ := s.members[k].axis.encode(w.values[k])
		return s.members[k].axis.decode(u) == decoded[k]
	}) && s.keeps(w.values, w.x) {
		return true
	}
	copy(w.values, decoded)
	return false
}

// solveBroken solves each broken equation for the first of its parameters whose solution is
// allowed.
func (s *Space) solveBroken(w *workspace, allowed func(k int) bool) bool {
	for i := range s.equations {
		e := &s.equations[i]
		if e.broken(w.values, w.x) && !slices.ContainsFunc(e.members, func(k int) bool {
			before, x := w.values[k], w.x[k]
			if s.solveFor(k, e.clause, w) && allowed(k) {
				return true
			}
			w.values[k], w.x[k] = before, x
			return false
		}) {
			return false
		}
	}
	return true
}

// settle decodes u to values that keep the constraints. Where u does not, it takes the
// nearest point of the broken constraint if that is close. Otherwise it computes what
// equations determine, or moves towards a configuration that keeps the constraints.
func (s *Space) settle(u []float64, w *workspace) {
	if s.raw(u, w) || s.polish(w) {
		return
	}
	near := slices.Clone(u)
	found := s.approach(near, w)
	if found && distance(near, u) <= closeTo {
		return
	}
	if s.inside(u, w) {
		return
	}
	if found {
		s.approach(near, w) // the same again, for its values
		return
	}
	s.retreat(near, w)
}

// closeTo is the largest move of a coordinate for which the nearest point is taken.
const closeTo = 0.05

func distance(u, v []float64) float64 {
	out := 0.0
	for j := range u {
		out = max(out, math.Abs(u[j]-v[j]))
	}
	return out
}

// approachSteps is how often the most broken constraint is projected on.
const approachSteps = 60

// approach moves u onto the constraints, by Newton steps to the one that is broken most
// in units of the cube. It moves coordinates of ranges only. It reports whether the values
// at u keep the constraints.
func (s *Space) approach(u []float64, w *workspace) bool {
	for j := range u {
		u[j] = min(max(u[j], 0), 1)
	}
	for range approachSteps {
		if s.raw(u, w) {
			return true
		}
		s.smooth(u, w)
		c, deficit := s.worst(w)
		if c == nil {
			break // only rounding breaks them, or texts do
		}
		s.gradient(c, u, w)
		norm := 0.0
		sign := 1.0
		if c.kind == zero && c.left.at(w.x) < 0 {
			sign = -1
		}
		for j, g := range w.g {
			if down := sign * g; down > 0 && u[j] <= 0 || down < 0 && u[j] >= 1 {
				w.g[j] = 0
				continue
			}
			norm += g * g
		}
		if norm == 0 {
			return false
		}
		moved := false
		for j, g := range w.g {
			next := min(max(u[j]-sign*g*deficit/norm, 0), 1)
			moved = moved || next != u[j]
			u[j] = next
		}
		if !moved {
			break
		}
	}
	if s.raw(u, w) {
		return true
	}
	return s.adjust(w)
}

// adjust solves the equations that rounding to values breaks.
func (s *Space) adjust(w *workspace) bool {
	numbers(w.values, w.x)
	return s.solveBroken(w, func(int) bool { return true }) && s.finish(w)
}

// smooth writes the numbers at u to w.x as if ranges had no steps. Others keep the numbers
// of their values.
func (s *Space) smooth(u []float64, w *workspace) {
	numbers(w.values, w.x)
	for j, k := range s.axes {
		if m := &s.members[k]; m.isRange() && w.values[k].kind != KindNone {
			w.x[k] = m.numberAt(u[j])
		}
	}
}

// numberAt returns the number of a range at a coordinate, without steps.
func (m *member) numberAt(u float64) float64 {
	low, high := m.span()
	if high <= low || u <= 0 {
		return low
	}
	if u >= 1 {
		return high
	}
	w := newWarp(low, high, m.Scale)
	return w.inverse(u)
}

// worst returns the comparison that is broken most at the numbers in w, and by how much it
// must fall. It is nil if no comparison of numbers is broken.
func (s *Space) worst(w *workspace) (worst *clause, deficit float64) {
	most := 0.0
	for i := range s.constraints {
		c := &s.constraints[i]
		if !c.applies(w.values) {
			continue
		}
		leaf, lack := c.clause.lack(w.values, w.x)
		if leaf == nil || lack <= 0 || math.IsInf(lack, 1) {
			continue
		}
		_, size := leaf.left.sized(w.x)
		if relative := lack / max(size, tiny); relative > most {
			most, worst, deficit = relative, leaf, lack
		}
	}
	return worst, deficit
}

// lack returns how far the clause is from holding, with the comparison that decides. It is
// +Inf where only texts decide, and 0 or less where the clause holds. Comparisons aim a
// little further than the limit, so that rounding does not break them.
func (c *clause) lack(values []Value, x []float64) (leaf *clause, amount float64) {
	switch c.kind {
	case all:
		most := math.Inf(-1)
		for _, p := range c.parts {
			if l, a := p.lack(values, x); a > most {
				leaf, most = l, a
			}
		}
		return leaf, most
	case anyOf:
		least := math.Inf(1)
		for _, p := range c.parts {
			if l, a := p.lack(values, x); a < least {
				leaf, least = l, a
			}
		}
		return leaf, least
	case sameText:
		if c.holds(values, x) {
			return nil, math.Inf(-1)
		}
		return nil, math.Inf(1)
	}
	v, size := c.left.sized(x)
	margin := 0.1 * tolerance * size
	switch {
	case c.kind != zero && c.kind != nonzero:
		return c, v + margin
	case c.kind == nonzero && c.whole:
		return c, 1 - math.Abs(v)
	case c.kind == nonzero:
		return c, 2*tolerance*size - math.Abs(v)
	case math.Abs(v) > margin:
		return c, math.Abs(v)
	default:
		return c, 0
	}
}

// gradient writes the derivatives of a comparison by the coordinates of ranges to w.g.
func (s *Space) gradient(c *clause, u []float64, w *workspace) {
	const h = 1e-6
	clear(w.g)
	members := c.left.members(nil)
	for j, k := range s.axes {
		m := &s.members[k]
		if !m.isRange() || w.values[k].kind == KindNone || !slices.Contains(members, k) {
			continue
		}
		at := w.x[k]
		low, high := max(u[j]-h, 0), min(u[j]+h, 1)
		w.x[k] = m.numberAt(high)
		rise := c.left.at(w.x)
		w.x[k] = m.numberAt(low)
		w.g[j] = (rise - c.left.at(w.x)) / (high - low)
		w.x[k] = at
	}
	if c.kind == nonzero { // it must rise in absolute value
		for j := range w.g {
			w.g[j] = -math.Copysign(w.g[j], w.g[j]*c.left.at(w.x))
		}
	}
}

// retreatSteps is how often a segment is divided, to a length of 2⁻⁴⁰.
const retreatSteps = 40

// retreat moves from u towards the nearest anchor, as little as needed to keep the
// constraints, and leaves the values in w.
func (s *Space) retreat(u []float64, w *workspace) {
	best, least := 0, math.Inf(1)
	for i, a := range s.anchors {
		sum := 0.0
		for j := range u {
			sum += (a[j] - u[j]) * (a[j] - u[j])
		}
		if sum < least {
			best, least = i, sum
		}
	}
	a := s.anchors[best]
	low, high := 0.0, 1.0
	at := func(t float64) bool {
		for j := range u {
			w.u[j] = u[j] + t*(a[j]-u[j])
		}
		if t == 1 {
			copy(w.u, a)
		}
		return s.inside(w.u, w)
	}
	for range retreatSteps {
		if t := (low + high) / 2; at(t) {
			high = t
		} else {
			low = t
		}
	}
	at(high)
}

// encodeAll writes the coordinates of values, which decode returned.
func (s *Space) encodeAll(values []Value, u []float64) {
	for j, k := range s.axes {
		u[j] = Neutral
		if values[k].kind != KindNone {
			u[j], _ = s.members[k].axis.encode(values[k])
		}
	}
}

// Inside decodes u like [Space.Decode]. If the configuration does not keep the constraints,
// ok is false, where Decode would move it. Parameters that equations determine are computed
// from the others. So the configurations of uniform points with ok are uniform among those
// that keep the constraints.
func (s *Space) Inside(u []float64) (c Config, ok bool, err error) {
	if len(s.constraints) == 0 {
		c, err = s.Decode(u)
		return c, err == nil, err
	}
	if err := s.checkPoint(u); err != nil {
		return Config{}, false, err
	}
	w := s.workspace()
	if !s.inside(u, w) {
		return Config{}, false, nil
	}
	return s.collect(w.values, w.active), true, nil
}
