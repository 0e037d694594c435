package space

import "math"

// Cardinality returns the number of different configurations, exact below 2⁵³. It is +Inf
// if a continuous parameter can be active. It is also +Inf where conditions on several
// parents are so complex that counting would take millions of steps.
func (s *Space) Cardinality() float64 {
	c := counter{s: s, children: make([][]int, len(s.members)), budget: maxCountingSteps, known: make(map[int]float64)}
	for k := range s.members {
		for _, w := range s.members[k].conditions {
			c.children[w.parent] = append(c.children[w.parent], k)
		}
	}
	total := 1.0
	for _, group := range c.groups() {
		total *= c.group(group)
	}
	return total
}

// counter counts configurations in groups of members that conditions connect.
type counter struct {
	s        *Space
	children [][]int
	budget   int
	known    map[int]float64 // results of tree
}

// groups returns the connected components, each in the space's order.
func (c *counter) groups() [][]int {
	of := make([]int, len(c.s.members))
	for k := range of {
		of[k] = k
	}
	root := func(k int) int {
		for of[k] != k {
			of[k] = of[of[k]]
			k = of[k]
		}
		return k
	}
	for parent, children := range c.children {
		for _, k := range children {
			of[root(k)] = root(parent)
		}
	}
	place := make(map[int]int)
	var groups [][]int
	for _, k := range c.s.order {
		r := root(k)
		if _, ok := place[r]; !ok {
			place[r] = len(groups)
			groups = append(groups, nil)
		}
		groups[place[r]] = append(groups[place[r]], k)
	}
	return groups
}

func (c *counter) group(members []int) float64 {
	for _, k := range members {
		if len(c.s.members[k].conditions) > 1 {
			return c.enumerate(members, make([]Value, len(c.s.members)))
		}
	}
	return c.tree(members[0])
}

// levels returns the number of values of member k, +Inf if continuous.
func (c *counter) levels(k int) float64 {
	a := c.s.members[k].axis
	if a == nil {
		return 1
	}
	if n := a.levels(); n > 0 {
		return float64(n)
	}
	return math.Inf(1)
}

// tree counts the choices of the active member k and of all members below it. None of these
// has a second parent.
func (c *counter) tree(k int) float64 {
	if n, ok := c.known[k]; ok {
		return n
	}
	total := 0.0
	for _, class := range c.classes(k) {
		product := class.size
		for _, child := range c.children[k] {
			if c.s.members[child].conditions[0].holds(class.example) {
				product *= c.tree(child)
			}
		}
		total += product
	}
	c.known[k] = total
	return total
}

// class is a set of values of one parent that no condition distinguishes.
type class struct {
	example Value // the zero Value if no condition names any of them
	size    float64
}

// classes partitions the values of member k by the conditions that name them.
func (c *counter) classes(k int) []class {
	rest := c.levels(k)
	var out []class
	bySignature := make(map[string]int)
	seen := make(map[Value]bool)
	for _, child := range c.children[k] {
		for _, w := range c.s.members[child].conditions {
			if w.parent != k {
				continue
			}
			for _, v := range w.values {
				if seen[v] {
					continue
				}
				seen[v] = true
				rest--
				sig := c.signature(k, v)
				if i, ok := bySignature[sig]; ok {
					out[i].size++
					continue
				}
				bySignature[sig] = len(out)
				out = append(out, class{example: v, size: 1})
			}
		}
	}
	if rest > 0 {
		out = append(out, class{size: rest})
	}
	return out
}

// signature returns which conditions on k v meets.
func (c *counter) signature(k int, v Value) string {
	bits := make([]byte, 0, len(c.children[k]))
	for _, child := range c.children[k] {
		for i := range c.s.members[child].conditions {
			if w := &c.s.members[child].conditions[i]; w.parent == k {
				bits = append(bits, map[bool]byte{true: '1', false: '0'}[w.holds(v)])
			}
		}
	}
	return string(bits)
}

// enumerate counts the choices of the members, in order, given the values of
// the parents before them.
func (c *counter) enumerate(members []int, values []Value) float64 {
	product := 1.0
	for i, k := range members {
		m := &c.s.members[k]
		if !m.active(values) {
			continue
		}
		if len(c.children[k]) == 0 {
			product *= c.levels(k)
			continue
		}
		total := 0.0
		for _, class := range c.classes(k) {
			if c.budget--; c.budget < 0 {
				return math.Inf(1)
			}
			values[k] = class.example
			total += class.size * c.enumerate(members[i+1:], values)
		}
		values[k] = Value{}
		return product * total
	}
	return product
}
