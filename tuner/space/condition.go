package space

import (
	"slices"
	"strings"
)

type condition struct {
	parent int
	values []Value
}

// holds reports whether the parent's value v satisfies the condition. The zero Value stands
// for an inactive parent and satisfies no condition.
func (c *condition) holds(v Value) bool { return slices.Contains(c.values, v) }

// active reports whether m is active, given its parents' values by index.
func (m *member) active(values []Value) bool {
	for i := range m.conditions {
		if c := &m.conditions[i]; !c.holds(values[c.parent]) {
			return false
		}
	}
	return true
}

// conditions checks the conditions of all members and orders the members.
func (c *checker) conditions(s *Space) {
	for i := range s.members {
		m := &s.members[i]
		m.conditions = make([]condition, 0, len(m.When))
		for k := range m.When {
			c.condition(s, i, &m.When[k])
		}
	}
	if !c.any() {
		c.sortByDepth(s)
	}
}

const fieldWhen = "when"

// condition checks one condition of member i, converts its values to the parent's kind and
// adds it in compiled form.
func (c *checker) condition(s *Space, i int, w *Condition) {
	m := &s.members[i]
	j, ok := s.index[w.Parent]
	if !ok {
		c.at(i, m.Name, fieldWhen, quote(w.Parent), "there is no such parameter", s.didYouMean(w.Parent))
		return
	}
	parent := &s.members[j]
	for _, other := range m.conditions {
		if other.parent == j {
			c.at(i, m.Name, fieldWhen, quote(w.Parent), "the parent is named twice", "put the values that both allow into one list")
			return
		}
	}
	if parent.Type == TypeFloat {
		c.at(i, m.Name, fieldWhen, quote(w.Parent), "a parent has values to choose from, and this one is a float", "use an int, ordinal or categorical parent")
		return
	}
	if n := len(w.Values); n == 0 || n > MaxValues {
		c.at(i, m.Name, fieldWhen, quote(w.Parent), "a condition names between 1 and "+itoa(MaxValues)+" values of the parent", "list the values that make the parameter active")
		return
	}
	if c.conditionValues(i, m.Name, parent, w) {
		m.conditions = append(m.conditions, condition{j, w.Values})
	}
}

func (c *checker) conditionValues(i int, name string, parent *member, w *Condition) bool {
	seen := make(map[Value]bool, len(w.Values))
	sound := true
	for k, v := range w.Values {
		legal, ok := parent.convert(v)
		switch {
		case !ok:
			sound = false
			e := parent.explain(v)
			c.at(i, name, fieldWhen, quote(w.Parent)+": "+show(v), "the parent cannot take this value: "+e.Rule, e.Remedy)
		case seen[legal]:
			sound = false
			c.at(i, name, fieldWhen, quote(w.Parent)+": "+show(v), "the value is there twice", "remove one")
		default:
			seen[legal] = true
			w.Values[k] = legal
		}
	}
	return sound
}

// didYouMean returns a remedy for a parameter that does not exist.
func (s *Space) didYouMean(name string) string {
	names := make([]string, len(s.members))
	for i := range s.members {
		names[i] = s.members[i].Name
	}
	if near := similar(name, names); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	if len(names) == 0 {
		return "the space has no parameters"
	}
	return "the parameters are " + showNames(names)
}

func showNames(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", … (" + itoa(len(names)) + " in all)"
	}
	return strings.Join(names, ", ")
}

// sortByDepth orders the members with parents first, keeps the declared order among those
// of equal depth, and finds cycles.
func (c *checker) sortByDepth(s *Space) {
	left := make([]int, len(s.members))
	children := make([][]int, len(s.members))
	for i := range s.members {
		left[i] = len(s.members[i].conditions)
		for _, w := range s.members[i].conditions {
			children[w.parent] = append(children[w.parent], i)
		}
		if left[i] == 0 {
			s.order = append(s.order, i)
		}
	}
	for next := 0; next < len(s.order); next++ {
		i := s.order[next]
		for _, child := range children[i] {
			s.members[child].depth = max(s.members[child].depth, s.members[i].depth+1)
			if left[child]--; left[child] == 0 {
				s.order = append(s.order, child)
			}
		}
	}
	if len(s.order) < len(s.members) {
		c.cycle(s, left)
		return
	}
	c.depths(s)
	slices.SortStableFunc(s.order, func(a, b int) int { return s.members[a].depth - s.members[b].depth })
}

func (c *checker) depths(s *Space) {
	for i := range s.members {
		if d := s.members[i].depth; d > MaxConditionDepth {
			c.at(i, s.members[i].Name, fieldWhen, "", "conditions go at most "+itoa(MaxConditionDepth)+" parents deep, this one "+itoa(d), "condition directly on the parents that matter")
		}
	}
}

// cycle reports one cycle among the members that have unordered parents left.
func (c *checker) cycle(s *Space, left []int) {
	at := slices.IndexFunc(left, func(n int) bool { return n > 0 })
	var path []int
	for !slices.Contains(path, at) {
		path = append(path, at)
		for _, w := range s.members[at].conditions {
			if left[w.parent] > 0 {
				at = w.parent
				break
			}
		}
	}
	path = append(path[slices.Index(path, at):], at)
	names := make([]string, len(path))
	for i, k := range path {
		names[i] = s.members[k].Name
	}
	shown := strings.Join(names, " ← ")
	if len(names) > 10 {
		shown = strings.Join(names[:10], " ← ") + " ← …"
	}
	c.at(at, names[0], fieldWhen, "", "the conditions form a cycle: "+shown, "let one of them be always active")
}
