package space

import (
	"math"
	"slices"
)

// Cardinality returns the number of different configurations, exact below 2⁵³. It is +Inf
// if a continuous parameter can be active. It is also +Inf where conditions on several
// parents are so complex that counting would take millions of steps.
func (s *Space) Cardinality() float64 {
	c := counter{s: s, budget: maxCountingSteps}
	return c.count(s.order, make([]Value, len(s.members)))
}

type counter struct {
	s      *Space
	budget int
}

// count counts the choices of members, given the values of those before them. Groups that no
// condition connects are independent.
func (c *counter) count(members []int, values []Value) float64 {
	total := 1.0
	for _, group := range c.groups(members) {
		total *= c.group(group, values)
	}
	return total
}

// group counts the choices of connected members. The first has no parent among them.
func (c *counter) group(members []int, values []Value) float64 {
	k, rest := members[0], members[1:]
	m := &c.s.members[k]
	if !m.active(values) {
		return c.count(rest, values)
	}
	levels := 1.0
	if m.axis != nil {
		if levels = float64(m.axis.levels()); levels == 0 {
			levels = math.Inf(1)
		}
	}
	if len(rest) == 0 {
		return levels
	}
	total := 0.0
	for _, class := range c.classes(k, rest, levels) {
		if c.budget -= len(members); c.budget < 0 {
			return math.Inf(1)
		}
		values[k] = class.example
		total += class.size * c.count(rest, values)
	}
	values[k] = Value{}
	return total
}

// groups returns the connected components, each in the order of the members.
func (c *counter) groups(members []int) (groups [][]int) {
	if len(members) < 2 {
		return [][]int{members}[:len(members)]
	}
	of := make(map[int]int, len(members)) // the group of each member
	for _, k := range members {
		at := len(groups)
		groups = append(groups, nil)
		joined := []int{k}
		for _, w := range c.s.members[k].conditions {
			if g, ok := of[w.parent]; ok && g != at {
				joined = append(groups[g], joined...)
				groups[g] = nil
				for _, j := range joined {
					of[j] = at
				}
			}
		}
		of[k], groups[at] = at, joined
	}
	groups = slices.DeleteFunc(groups, func(g []int) bool { return g == nil })
	place := make(map[int]int, len(members))
	for i, k := range members {
		place[k] = i
	}
	for _, g := range groups {
		slices.SortFunc(g, func(a, b int) int { return place[a] - place[b] })
	}
	return groups
}

// class is a set of values of one parent that no condition distinguishes.
type class struct {
	example Value // the zero Value if no condition names any of them
	size    float64
}

// classes partitions the values of member k by the conditions of others that name them.
func (c *counter) classes(k int, others []int, levels float64) (out []class) {
	var conditions []*condition
	for _, j := range others {
		for i := range c.s.members[j].conditions {
			if w := &c.s.members[j].conditions[i]; w.parent == k {
				conditions = append(conditions, w)
			}
		}
	}
	same := make(map[string]int)
	seen := make(map[Value]bool)
	for _, w := range conditions {
		for _, v := range w.values {
			if seen[v] {
				continue
			}
			seen[v] = true
			signature := make([]byte, len(conditions))
			for i, other := range conditions {
				if other.holds(v) {
					signature[i] = 1
				}
			}
			i, ok := same[string(signature)]
			if !ok {
				i = len(out)
				same[string(signature)] = i
				out = append(out, class{example: v})
			}
			out[i].size++
		}
	}
	if rest := levels - float64(len(seen)); rest > 0 {
		out = append(out, class{size: rest})
	}
	return out
}
