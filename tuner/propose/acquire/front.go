package acquire

// front returns the trials that no other dominates, given the values of each.
func front(trials []int, values [][]float64) []int {
	better := func(i, k int) bool {
		strictly := false
		for j, v := range values[i] {
			if v < values[k][j] {
				return false
			}
			strictly = strictly || v > values[k][j]
		}
		return strictly
	}
	var members []int
	for i := range trials {
		dominated, keep := false, 0
		for _, m := range members {
			if better(m, i) {
				dominated = true
			}
			if dominated || !better(i, m) {
				members[keep] = m
				keep++
			}
		}
		if members = members[:keep]; !dominated {
			members = append(members, i)
		}
	}
	out := make([]int, 0, len(members))
	for _, m := range members {
		out = append(out, trials[m])
	}
	return out
}
