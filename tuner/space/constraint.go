package space

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
)

// These are limits of constraints.
const (
	MaxConstraints     = 100     // constraints of one space
	MaxConstraintBytes = 4 << 10 // bytes of one constraint
)

// constraint is one constraint of a space. It holds where one of its parameters is
// inactive.
type constraint struct {
	text    string
	clause  *clause
	members []int // its parameters, ascending
	line    int   // in the file, or 0
}

// written is a constraint as it was read.
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
	c := &checker{src: &source{words: ownDialect()}}
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
	out.constraints, out.solutions, out.anchors = nil, nil, nil
	return &out
}

// constrain checks the texts and returns the space with them. It returns nil if there are
// faults.
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

// constraintFaults adds a fault for each constraint that the values break.
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

// Sizes of the search for configurations that keep the constraints.
const (
	anchorDraws  = 8192
	enoughAnchor = 64
	repairs      = 512 // draws that are repaired if none keeps the constraints
)

// populate finds the anchors and solutions. It reports whether there is any configuration.
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

// solution says that an equation determines a parameter from others.
type solution struct {
	constraint int
	member     int
	slope      float64 // of the equation, by the member
}

// solve chooses for each equation the parameter that it determines. It is the one with the
// largest share in the equation that no other equation has.
func (s *Space) solve() {
	s.solutions = nil
	for i := range s.constraints {
		c := &s.constraints[i]
		if c.clause.kind != zero {
			continue
		}
		best := solution{member: -1}
		share := 0.0
		for _, k := range c.members {
			m := &s.members[k]
			slope, linear := c.clause.left.slope(k)
			low, _ := m.Low.Number()
			high, _ := m.High.Number()
			if v := math.Abs(slope) * (high - low); m.isRange() && linear && v > share && !s.shared(k, i) {
				best, share = solution{i, k, slope}, v
			}
		}
		if best.member >= 0 {
			s.solutions = append(s.solutions, best)
		}
	}
}

// shared reports whether an equation other than the i-th has member k.
func (s *Space) shared(k, i int) bool {
	for j := range s.constraints {
		if c := &s.constraints[j]; j != i && c.clause.kind == zero && slices.Contains(c.members, k) {
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
	return len(s.solutions) > 0 && s.determine(w) && s.keeps(w.values, w.x)
}

// determine computes the parameters that equations determine. It reports whether all are
// within their ranges.
func (s *Space) determine(w *workspace) bool {
	numbers(w.values, w.x)
	for _, q := range s.solutions {
		c := &s.constraints[q.constraint]
		if !c.applies(w.values) {
			continue
		}
		v, ok := s.members[q.member].nearest(w.x[q.member] - c.clause.left.at(w.x)/q.slope)
		if !ok {
			return false
		}
		w.values[q.member] = v
		w.x[q.member], _ = v.Number()
	}
	return true
}

// nearest returns the value of a range that is nearest to x. If x is outside by more than
// rounding, ok is false.
func (m *member) nearest(x float64) (v Value, ok bool) {
	low, _ := m.Low.Number()
	high, _ := m.High.Number()
	slack := 1e-10 * (high - low)
	if !(x >= low-slack && x <= high+slack) {
		return v, false
	}
	x = min(max(x, low), high)
	f := Float(x)
	if m.Type == TypeInt {
		f = Int(int64(math.Round(x)))
	}
	u, ok := m.axis.encode(f)
	if !ok {
		if u, ok = m.axis.encode(m.axis.decode(m.coordinateNear(x))); !ok {
			return v, false
		}
	}
	return m.axis.decode(u), true
}

// coordinateNear returns the coordinate of a number within a range, linear ones up to steps.
func (m *member) coordinateNear(x float64) float64 {
	low, _ := m.Low.Number()
	high, _ := m.High.Number()
	if x <= low || high <= low {
		return 0
	}
	if x >= high {
		return 1
	}
	w := newWarp(low, high, m.Scale)
	return w.forward(x)
}

// settle decodes u to values that keep the constraints. Where u does not, it takes the
// nearest point of the broken constraint if that is close. Otherwise it computes what
// equations determine, or moves towards a configuration that keeps the constraints.
func (s *Space) settle(u []float64, w *workspace) {
	if s.raw(u, w) {
		return
	}
	near := slices.Clone(u)
	found := s.approach(near, w)
	if found && distance(near, u) <= closeTo {
		return
	}
	if len(s.solutions) > 0 && s.inside(u, w) {
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

// distance returns the largest difference of coordinates.
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

// adjust solves each broken equation for one of its parameters, whichever it is. Rounding
// to values breaks equations.
func (s *Space) adjust(w *workspace) bool {
	for i := range s.constraints {
		c := &s.constraints[i]
		numbers(w.values, w.x)
		if c.clause.kind != zero || !c.applies(w.values) || c.clause.holds(w.values, w.x) {
			continue
		}
		solved := false
		for _, k := range c.members {
			slope, linear := c.clause.left.slope(k)
			if m := &s.members[k]; !m.isRange() || !linear || slope == 0 {
				continue
			}
			before := w.values[k]
			v, ok := s.members[k].nearest(w.x[k] - c.clause.left.at(w.x)/slope)
			if !ok {
				continue
			}
			w.values[k] = v
			if numbers(w.values, w.x); c.clause.holds(w.values, w.x) {
				solved = true
				break
			}
			w.values[k] = before
			numbers(w.values, w.x)
		}
		if !solved {
			return false
		}
	}
	return s.keeps(w.values, w.x)
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
	low, _ := m.Low.Number()
	high, _ := m.High.Number()
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
		if relative := lack / max(leaf.tolerance, tiny); relative > most {
			most, worst, deficit = relative, leaf, lack
		}
	}
	return worst, deficit
}

// lack returns how far the clause is from holding, with the comparison that decides. It is
// +Inf where only texts decide, and 0 or less where the clause holds. Comparisons aim a
// little further than the limit, so that rounding does not break them.
func (c *clause) lack(values []Value, x []float64) (leaf *clause, amount float64) {
	margin := 0.1 * c.tolerance
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
	case atMost, below:
		return c, c.left.at(x) + margin
	case zero:
		if a := math.Abs(c.left.at(x)); a > margin {
			return c, a
		}
		return c, 0
	case nonzero:
		return c, 2*c.tolerance - math.Abs(c.left.at(x))
	default:
		if c.holds(values, x) {
			return nil, math.Inf(-1)
		}
		return nil, math.Inf(1)
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
