package acquire

// usefulWorkers returns how many trials may run at once by the rule of BBKB, which is 1 + Σ
// σ²/ξ² ≤ 2 with the variances without pending trials. It is at least one.
func (a *acquisition) usefulWorkers() int {
	rows := a.running()
	if len(rows) == 0 {
		return 1
	}
	x := pointsOf(rows)
	noise := a.engine.Event.Surfaces[0].Noise
	_, variance := a.engine.Predict(0, x)
	sum := 0.0
	for i, v := range variance {
		if sum += v / noise; sum > 1 {
			return max(i, 1)
		}
	}
	last := variance[len(variance)-1] / noise
	return min(len(rows)+int((1-sum)/max(last, 1e-3)), 1000)
}
