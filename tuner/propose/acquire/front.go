package acquire

import "slices"

// front returns the trials that no other dominates, given the values of each.
func front(trials []int, values [][]float64) []int {
	better := func(p, q []float64) bool {
		strictly := false
		for j, v := range p {
			if v < q[j] {
				return false
			}
			strictly = strictly || v > q[j]
		}
		return strictly
	}
	var out []int
	for i, trial := range trials {
		if !slices.ContainsFunc(values, func(v []float64) bool { return better(v, values[i]) }) {
			out = append(out, trial)
		}
	}
	return out
}
