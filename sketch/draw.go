package sketch

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// choose returns min(m, n) different numbers below n, increasing. Every set is equally
// likely. It costs O(m), not O(n), when m is far below n.
func choose(n, m int, rng *rand.Rand) []int {
	if m >= n {
		return upTo(n)
	}
	if m > n/3 {
		return prefix(rng.Perm(n), m)
	}
	// This is Floyd's method (Bentley and Floyd, 1987).
	taken := make(map[int]bool, m)
	for top := n - m; top < n; top++ {
		i := rng.IntN(top + 1)
		if taken[i] {
			i = top
		}
		taken[i] = true
	}
	return slices.Sorted(maps.Keys(taken))
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// prefix returns the first m elements of perm, sorted.
func prefix(perm []int, m int) []int {
	return slices.Sorted(slices.Values(perm[:m]))
}

// thin returns every number below n independently with probability p,
// increasing. It draws the gaps between them, so that the cost is O(np + 1).
func thin(n int, p float64, rng *rand.Rand) []int {
	if p >= 1 {
		return upTo(n)
	}
	var out []int
	scale := math.Log1p(-p) // P(gap ≥ g) = (1−p)^g
	for at := 0.0; ; at++ {
		at += math.Floor(math.Log(1-rng.Float64()) / scale)
		if !(at < float64(n)) {
			return out
		}
		out = append(out, int(at))
	}
}

// Include keeps every i independently with probability p_i = min(1,
// oversampling·score_i). It returns the kept indices, increasing, with their weights
// A = p. It always draws one number per score.
//
// It keeps at least one. If none is kept, one is drawn in proportion to its score, with
// the weight of a single draw, score/Σ scores. That makes the estimate Σ A⁻¹kkᵀ too
// large on average, by a factor of at most 1 + exp(−Σp).
//
// It returns a [*ParameterError] unless scores are ≥ 0 and finite and oversampling is
// positive. Without scores it returns an [*EmptyError].
func Include(scores []float64, oversampling float64, rng *rand.Rand) (indices []int, weights []float64, err error) {
	if err := checkPositive("Include", "oversampling", oversampling); err != nil {
		return nil, nil, err
	}
	if len(scores) == 0 {
		return nil, nil, &EmptyError{What: "list of scores"}
	}
	if err := checkScores("Include", scores); err != nil {
		return nil, nil, err
	}
	indices, weights = include(scores, oversampling, rng)
	if len(indices) == 0 {
		indices, weights = drawOne(scores, rng)
	}
	return indices, weights, nil
}

// checkScores refuses scores that are not numbers ≥ 0.
func checkScores(what string, scores []float64) error {
	for _, s := range scores {
		if !(s >= 0) || math.IsInf(s, 0) {
			return parameterError(what, "scores", s, "≥ 0 and finite")
		}
	}
	return nil
}

// include is Include without the fallback to one draw.
func include(scores []float64, q float64, rng *rand.Rand) (indices []int, weights []float64) {
	indices, weights, _ = keep(scores, uniforms(len(scores), rng), q, 0)
	return indices, weights
}

// uniforms draws n numbers from [0, 1).
func uniforms(n int, rng *rand.Rand) []float64 {
	u := make([]float64, n)
	for i := range u {
		u[i] = rng.Float64()
	}
	return u
}

// keep keeps every i with u_i < p_i = min(1, q·score_i), and returns the kept indices,
// increasing, with their weights p.
//
// If these are more than most > 0, it keeps the most smallest keys u_i/score_i and
// lowers q to the smallest key that it leaves out. That is priority sampling (Duffield,
// Lund and Thorup, 2007). Given the keys of the others, i stays with probability min(1,
// q·score_i) for the q returned, so the weights p stay unbiased.
func keep(scores, u []float64, q float64, most int) (indices []int, weights []float64, reached float64) {
	for i, s := range scores {
		if u[i] < min(1, q*s) {
			indices = append(indices, i)
		}
	}
	if most > 0 && len(indices) > most {
		key := func(i int) float64 { return u[i] / scores[i] } // score_i > 0, as q·score_i > u_i
		slices.SortFunc(indices, func(a, b int) int { return cmp.Or(cmp.Compare(key(a), key(b)), a-b) })
		q = key(indices[most])
		indices = indices[:most]
		slices.Sort(indices)
	}
	for _, i := range indices {
		weights = append(weights, min(1, q*scores[i]))
	}
	return indices, weights, q
}

// drawOne draws one index in proportion to its score.
func drawOne(scores []float64, rng *rand.Rand) (indices []int, weights []float64) {
	c := cumulative(scores)
	i := c.draw(rng)
	return []int{i}, []float64{c.probability(i)}
}

// distribution is a cumulative sum of weights ≥ 0 over 0 … n−1, uniform if they are all 0.
type distribution []float64

func cumulative(weights []float64) distribution {
	c := make(distribution, len(weights))
	total := 0.0
	for i, w := range weights {
		total += w
		c[i] = total
	}
	if total == 0 {
		for i := range c {
			c[i] = float64(i + 1)
		}
	}
	return c
}

func (c distribution) total() float64 { return c[len(c)-1] }

// probability returns the exact probability of draw.
func (c distribution) probability(i int) float64 {
	if i == 0 {
		return c[0] / c.total()
	}
	return (c[i] - c[i-1]) / c.total()
}

// draw returns i with probability(i).
func (c distribution) draw(rng *rand.Rand) int {
	u := rng.Float64() * c.total() // may round up to the total
	return min(sort.Search(len(c), func(i int) bool { return c[i] > u }), len(c)-1)
}

// counted returns the different values of a, all below n, increasing, and the count of each.
func counted(a []int, n int) (values, counts []int) {
	if n <= 8*len(a) { // as quick as to sort
		each := make([]int32, n)
		for _, v := range a {
			each[v]++
		}
		values, counts = make([]int, 0, len(a)), make([]int, 0, len(a))
		for v, count := range each {
			if count > 0 {
				values, counts = append(values, v), append(counts, int(count))
			}
		}
		return values, counts
	}
	a = slices.Clone(a)
	slices.Sort(a)
	for i, v := range a {
		if i == 0 || v != a[i-1] {
			values, counts = append(values, v), append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	return values, counts
}
