package acquire

import (
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// volume returns the hypervolume of several objectives, in targets. Its points are the means of
// the best results and of pending trials. Its reference is beyond the worst of the best results
// in each objective, by a share u^(n/k) of the way to the worst result, with n best results of k
// objectives, and by a tenth of the range.
func (a *acquisition) volume(u float64) *bandit.Hypervolume {
	list, k := a.engine.Results.List, len(a.spec.Objectives)
	best := a.eliteOf(a.engine)
	var points [][]float64
	for _, i := range best {
		points = append(points, list[i].X)
	}
	points = meansOf(a.outlook, k, append(points, a.running()...))
	share := math.Pow(u, max(1, float64(len(best))/float64(k)))
	reference := make([]float64, k)
	for j := range reference {
		worst, top, nadir := math.Inf(1), math.Inf(-1), math.Inf(1)
		for i := range list {
			if r := &list[i]; r.Y != nil && (r.Feasible || len(best) == 0) {
				y := a.engine.Event.Surfaces[j].Target.Of(r.Y[j].Value)
				worst, top = min(worst, y), max(top, y)
			}
		}
		for _, p := range points[:len(best)] {
			nadir = min(nadir, p[j])
		}
		if len(best) < 2 {
			nadir = worst
		}
		nadir += share * (worst - nadir)
		reference[j] = nadir - 0.1*max(top-nadir, 1e-3)
	}
	return bandit.NewHypervolume(points, reference)
}

// meansOf returns the means of objectives at some points.
func meansOf(o *model.Outlook, objectives int, points [][]float64) [][]float64 {
	out := make([][]float64, len(points))
	if len(points) == 0 {
		return out
	}
	x := pointsOf(points)
	for j := range objectives {
		for i, m := range o.Means(j, x) {
			out[i] = append(out[i], m)
		}
	}
	return out
}
