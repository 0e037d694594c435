package cells

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Most is the maximum number of cells. Numbers up to it are exact in JSON and float64.
const Most = 1 << 53

// MaxPoints is the maximum number of listed values of one parameter.
const MaxPoints = 1000

// maxWork is the maximum number of steps of compiling a grid.
const maxWork = 1 << 22

// Cells numbers the combinations of a grid. Parameters that conditions connect form a
// group, and a group is a decision tree. The values of one parameter are divided into runs.
// For each run the rest of the group divides into smaller groups. A cell's number is
// written in the mixed radix of these trees.
type Cells struct {
	names  []string
	levels []levels
	groups []*group
	total  uint64
}

// Total returns the number of cells.
func (c *Cells) Total() uint64 { return c.total }

// group is a set of connected parameters. Its root depends on none of the others.
type group struct {
	root  int
	runs  []run
	total uint64
}

// run is an interval of the root's values that have the same effect on the others.
type run struct {
	first uint64 // value
	start uint64 // number of the first cell
	rest  []*group
	each  uint64 // cells of rest
}

// At returns cell number i < Total.
func (c *Cells) At(i uint64) space.Config {
	return space.NewConfig(c.collect(nil, c.groups, i)...)
}

func (c *Cells) collect(out []space.Assignment, groups []*group, i uint64) []space.Assignment {
	for _, g := range slices.Backward(groups) { // the last one changes fastest
		k := i % g.total
		i /= g.total
		r := &g.runs[sort.Search(len(g.runs), func(j int) bool { return g.runs[j].start > k })-1]
		k -= r.start
		out = append(out, space.Assignment{Name: c.names[g.root], Value: c.levels[g.root].at(r.first + k/r.each)})
		out = c.collect(out, r.rest, k%r.each)
	}
	return out
}

// Of makes the grid of a space in which a continuous parameter has a number of points, and
// a parameter that perParameter names has the number given there. The error is a
// *[study.InvalidError].
func Of(sp *space.Space, points int, perParameter map[string]int) (*Cells, error) {
	b := compiler{parameters: sp.Parameters(), index: make(map[string]int), known: make(map[string]*group), work: maxWork}
	c := new(Cells)
	for i, p := range b.parameters {
		l, err := newLevels(p, perParameter[p.Name], points)
		if err != nil {
			return nil, fmt.Errorf("the grid of parameter %q: %w", p.Name, err)
		}
		c.names, c.levels = append(c.names, p.Name), append(c.levels, l)
		b.index[p.Name] = i
	}
	b.levels = c.levels
	b.connect()
	all := make([]int, len(b.parameters))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(b.depth(i), b.depth(j)) })
	c.groups, c.total = b.split(all)
	switch {
	case b.work < 0:
		return nil, &study.InvalidError{Field: "proposer.name", Value: "grid", Rule: "the space's conditions on several parents interlock too much for a grid", Remedy: "use sobol"}
	case c.total > Most:
		return nil, &study.InvalidError{
			Field: "proposer.name", Value: "grid", Rule: "the grid would have more than 2⁵³ cells",
			Remedy: "take fewer points, thin single parameters with levels, or use sobol",
		}
	}
	return c, nil
}

// compiler makes groups.
type compiler struct {
	parameters []space.Parameter
	index      map[string]int // by name
	levels     []levels
	conditions [][]condition // of each parameter
	depths     []int         // of conditions above each parameter, plus 1, and 0 if not known yet
	known      map[string]*group
	work       int
}

// condition states that a parameter needs its parent at one of the levels.
type condition struct {
	parent int
	levels []uint64 // ascending
}

// connect resolves names and values of conditions to numbers.
func (b *compiler) connect() {
	b.depths = make([]int, len(b.parameters))
	for _, p := range b.parameters {
		var conditions []condition
		for _, w := range p.When {
			c := condition{parent: b.index[w.Parent]}
			for _, v := range w.Values {
				if i, ok := b.levels[c.parent].find(v); ok {
					c.levels = append(c.levels, i)
				}
			}
			slices.Sort(c.levels)
			conditions = append(conditions, c)
		}
		b.conditions = append(b.conditions, conditions)
	}
}

func (b *compiler) depth(i int) int {
	if b.depths[i] == 0 {
		deepest := 0
		for _, c := range b.conditions[i] {
			deepest = max(deepest, b.depth(c.parent))
		}
		b.depths[i] = deepest + 1
	}
	return b.depths[i]
}

// split divides parameters, parents before children, into groups and multiplies their cells.
// Conditions on parameters outside the set count as met.
func (b *compiler) split(set []int) (groups []*group, total uint64) {
	root := make(map[int]int, len(set))
	for _, i := range set {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, i := range set {
		for _, c := range b.conditions[i] {
			if _, ok := root[c.parent]; ok {
				root[find(i)] = find(c.parent)
			}
		}
	}
	members := make(map[int][]int)
	var heads []int
	for _, i := range set {
		r := find(i)
		if members[r] == nil {
			heads = append(heads, r)
		}
		members[r] = append(members[r], i)
	}
	slices.SortFunc(heads, func(x, y int) int { return cmp.Compare(members[x][0], members[y][0]) })
	total = 1
	for _, r := range heads {
		g := b.group(members[r])
		groups, total = append(groups, g), times(total, g.total)
	}
	return groups, total
}

// group compiles connected parameters, parents before children.
func (b *compiler) group(members []int) *group {
	key := keyOf(members)
	if g, ok := b.known[key]; ok {
		return g
	}
	g := &group{root: members[0]}
	last := ""
	for _, first := range b.cuts(members) {
		if b.work -= len(members); b.work < 0 {
			break
		}
		rest := b.without(members, first)
		if k := keyOf(rest); len(g.runs) == 0 || k != last {
			last = k
			groups, each := b.split(rest)
			g.runs = append(g.runs, run{first: first, rest: groups, each: each})
		}
	}
	for k := range g.runs {
		r := &g.runs[k]
		end := b.levels[g.root].n
		if k+1 < len(g.runs) {
			end = g.runs[k+1].first
		}
		r.start = g.total
		g.total = plus(g.total, times(end-r.first, r.each))
	}
	b.known[key] = g
	return g
}

// cuts returns the levels of the first member where a run may begin.
func (b *compiler) cuts(members []int) []uint64 {
	cuts := []uint64{0}
	for _, i := range members[1:] {
		for _, c := range b.conditions[i] {
			if c.parent != members[0] {
				continue
			}
			for _, level := range c.levels {
				cuts = append(cuts, level)
				if level+1 < b.levels[c.parent].n {
					cuts = append(cuts, level+1)
				}
			}
			b.work -= len(c.levels)
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// without returns the members that can be active when the first of them, which is left out,
// is at the given level.
func (b *compiler) without(members []int, level uint64) []int {
	dead := make(map[int]bool)
	var rest []int
	for _, i := range members[1:] {
		for k := range b.conditions[i] {
			c := &b.conditions[i][k]
			_, holds := slices.BinarySearch(c.levels, level)
			if dead[c.parent] || c.parent == members[0] && !holds {
				dead[i] = true
			}
		}
		if !dead[i] {
			rest = append(rest, i)
		}
	}
	return rest
}

func keyOf(members []int) string {
	key := make([]byte, 0, 2*len(members))
	for _, i := range members {
		key = binary.LittleEndian.AppendUint16(key, uint16(i)) // at most space.MaxParameters
	}
	return string(key)
}

// times and plus stop at 2⁶⁴−1.
func times(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	if high > 0 {
		return 1<<64 - 1
	}
	return low
}

func plus(x, y uint64) uint64 {
	sum, carry := bits.Add64(x, y, 0)
	if carry > 0 {
		return 1<<64 - 1
	}
	return sum
}
