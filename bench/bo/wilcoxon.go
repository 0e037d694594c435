package bo

import (
	"cmp"
	"math"
	"slices"
)

// signedRank returns the two-sided p-value of Wilcoxon's signed-rank test (Wilcoxon,
// Biometrics Bulletin 1945) that paired differences are symmetric around 0. Differences of
// 0 are left out, equal sizes share their mean rank, and the distribution is exact given
// the ranks. It is that of Σ rank·[sign > 0] over all 2ⁿ signs. Without differences p is 1.
// NaN is not allowed. ±Inf has the largest size.
//
// It takes O(n³) time and is meant for up to a few hundred pairs.
func signedRank(differences []float64) float64 {
	d := slices.DeleteFunc(slices.Clone(differences), func(v float64) bool { return v == 0 })
	if len(d) == 0 {
		return 1
	}
	size := make([]float64, len(d))
	for i, v := range d {
		size[i] = math.Abs(v)
	}
	// Twice the ranks are whole numbers, even with ties.
	positive, total := 0, 0
	twice := make([]int, len(d))
	for i, r := range ranks(size) {
		twice[i] = int(math.Round(2 * r))
		total += twice[i]
		if d[i] > 0 {
			positive += twice[i]
		}
	}
	probability := make([]float64, total+1) // of each sum
	probability[0] = 1
	reach := 0
	for _, r := range twice {
		reach += r
		for s := reach; s >= 0; s-- {
			p := probability[s] / 2
			if s >= r {
				p += probability[s-r] / 2
			}
			probability[s] = p
		}
	}
	tail := 0.0 // of the smaller side, because the distribution is symmetric
	for s := range min(positive, total-positive) + 1 {
		tail += probability[s]
	}
	return min(1, 2*tail)
}

// ranks returns the rank of each of v, 1 for the least. Equal ones share the mean of their
// ranks.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	out := make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			out[at] = float64(i+1+j) / 2
		}
		i = j
	}
	return out
}
