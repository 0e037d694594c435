package space

import (
	"cmp"
	"math"
	"math/big"
	"slices"
)

// factors are the ways to write an integer as a product of parameters.
type factors struct {
	target  int64 // not 0
	members []int // one appears as often as it is multiplied
	values  [][]int64
}

// Limits of the search for factors.
const (
	maxFactored = 1e14 // its divisors are found in 10 million divisions
	maxTries    = 100_000
)

// factorsOf returns the factors of an equation that says that a product of integers is a
// number. It returns nil for other equations.
func (s *Space) factorsOf(c *clause) *factors {
	left := c.left
	product, number := left.left, left.right
	if product.constant() {
		product, number = number, product
	}
	if !c.whole || !number.constant() {
		return nil
	}
	f := &factors{}
	scale := big.NewRat(1, 1)
	if !f.flatten(product, scale) || len(f.members) < 2 {
		return nil
	}
	q := new(big.Rat).Quo(number.exact(nil), scale)
	if !q.IsInt() || !q.Num().IsInt64() || q.Sign() == 0 || math.Abs(float64(q.Num().Int64())) > maxFactored {
		return nil
	}
	f.target = q.Num().Int64()
	slices.Sort(f.members)
	divisors := divisorsOf(f.target)
	for _, k := range f.members {
		m := &s.members[k]
		var legal []int64
		for _, d := range divisors {
			u, ok := m.coordinateOf(Int(d))
			if ok && (m.axis == nil || m.axis.decode(u) == Int(d)) {
				legal = append(legal, d)
			}
		}
		f.values = append(f.values, legal)
	}
	return f
}

// flatten collects the members of a product, and its numbers in scale. It reports false for
// other terms.
func (f *factors) flatten(t *term, scale *big.Rat) bool {
	switch {
	case t.constant():
		v := t.exact(nil)
		scale.Mul(scale, v)
		return v.Sign() != 0
	case t.op == 'p':
		f.members = append(f.members, t.member)
		return true
	case t.op == '*':
		return f.flatten(t.left, scale) && f.flatten(t.right, scale)
	case t.op == '/' && t.right.constant():
		scale.Quo(scale, t.right.exact(nil))
		return f.flatten(t.left, scale)
	default:
		return false
	}
}

// divisorsOf returns the positive and negative divisors.
func divisorsOf(n int64) []int64 {
	if n < 0 {
		n = -n
	}
	var out []int64
	for d := int64(1); d*d <= n; d++ {
		if n%d == 0 {
			out = append(out, d, -d, n/d, -n/d)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nearest gives the members values with the right product, each near its coordinate of u. If
// none are found, it reports false and changes nothing.
func (f *factors) nearest(s *Space, u []float64, w *workspace) bool {
	// near orders the values of each member by their distance from u.
	near := make([][]int64, len(f.members))
	largest := make([]float64, len(f.members)+1) // product of the largest values from the i-th on
	largest[len(f.members)] = 1
	for i := len(f.members) - 1; i >= 0; i-- {
		m := &s.members[f.members[i]]
		near[i] = slices.Clone(f.values[i])
		most := 0.0
		for _, v := range near[i] {
			most = max(most, math.Abs(float64(v)))
		}
		largest[i] = most * largest[i+1]
		if m.axis == nil {
			continue
		}
		distance := func(v int64) float64 {
			at, _ := m.axis.encode(Int(v))
			return math.Abs(at - u[m.coordinate])
		}
		slices.SortStableFunc(near[i], func(a, b int64) int { return cmp.Compare(distance(a), distance(b)) })
	}
	chosen := make([]int64, len(f.members))
	tries := 0
	var choose func(i int, rest int64) bool
	choose = func(i int, rest int64) bool {
		if i == len(f.members) {
			return rest == 1
		}
		candidates := near[i]
		if i > 0 && f.members[i] == f.members[i-1] {
			candidates = chosen[i-1 : i]
		}
		for _, v := range candidates {
			if tries++; tries > maxTries {
				return false
			}
			if rest%v != 0 || math.Abs(float64(rest/v)) > largest[i+1] {
				continue
			}
			chosen[i] = v
			if choose(i+1, rest/v) {
				return true
			}
		}
		return false
	}
	if !choose(0, f.target) {
		return false
	}
	for i, k := range f.members {
		w.values[k] = Int(chosen[i])
		w.x[k] = float64(chosen[i])
	}
	return true
}
