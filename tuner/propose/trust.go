package propose

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// trust is the size of the trust region (Eriksson et al., TuRBO, 2019,
// Algorithm 1), as a fold of the results in the order of the log: after
// trustSuccesses suggestions in a row that improved on the best it doubles, after
// failures in a row, max(4, d) of them, it is halved, and below trustLeast it
// begins anew.
type trust struct {
	length              float64   // of the sides, before weights; 0 before the first result
	successes, failures int       // in a row
	stale               int       // guided results since the last improvement
	top                 []float64 // the best values, descending
}

// Sizes of trust regions, in units of the cube.
const (
	trustFirst     = 0.8
	trustMost      = 1.6
	trustLeast     = 1.0 / 128
	trustSuccesses = 3
	trustTop       = 8    // values in top
	trustGain      = 1e-3 // least improvement, of the lead over the last of top
)

// tell takes in a result; d is the number of ordered coordinates.
func (t *trust) tell(r *result, d int) {
	if t.length == 0 {
		t.length = trustFirst
	}
	better := false
	if r.y != nil && r.feasible {
		y := clampFinite(r.y[0].value)
		better = len(t.top) == 0 || y > t.top[0] && y-t.top[0] > trustGain*(t.top[0]-t.top[len(t.top)-1])
		at, _ := slices.BinarySearchFunc(t.top, y, func(have, y float64) int {
			if have >= y {
				return -1
			}
			return 1
		})
		if t.top = slices.Insert(t.top, at, y); len(t.top) > trustTop {
			t.top = t.top[:trustTop]
		}
	}
	switch {
	case !r.guided:
		return
	case better:
		t.stale = 0
		t.successes, t.failures = t.successes+1, 0
	default:
		t.stale++
		t.successes, t.failures = 0, t.failures+1
	}
	switch {
	case t.successes == trustSuccesses:
		t.length, t.successes = min(2*t.length, trustMost), 0
	case t.failures == max(4, d):
		t.length, t.failures = t.length/2, 0
	}
	if t.length < trustLeast {
		t.length, t.successes, t.failures = trustFirst, 0, 0
	}
}

// box is where suggestions may be: within low and high in ordered coordinates,
// unless nil.
type box struct{ center, low, high []float64 }

// trusted returns the trust region around the configuration with the best
// posterior mean, with sides in proportion to the length scales; nil where
// there is none.
func (a *acquisition) trusted() *box {
	axes, k := a.b.spec.Space.Axes(), a.surfaces[0].k
	if !a.b.options.trusts(a.b.spec) || len(a.e.elite.members) == 0 {
		return nil
	}
	good := a.e.bounds(a.b)
	best := 0
	for i, m := range good.mean {
		if m > good.mean[best] {
			best = i
		}
	}
	logs, n := 0.0, 0
	for c, axis := range axes {
		if axis.Ordered {
			logs, n = logs+math.Log(trustScale(k, c)), n+1
		}
	}
	x := &box{center: good.x.Row(best), low: make([]float64, len(axes)), high: make([]float64, len(axes))}
	for c, axis := range axes {
		x.high[c] = 1
		if !axis.Ordered || axis.Conditional {
			continue
		}
		half := a.b.results.trust.length / 2 * trustScale(k, c) / math.Exp(logs/float64(n))
		if axis.Levels > 0 {
			half = max(half, 1.01/float64(axis.Levels))
		}
		x.low[c], x.high[c] = max(x.center[c]-half, 0), min(x.center[c]+half, 1)
	}
	return x
}

// trustScale is the length scale of an ordered coordinate as trust regions see
// it: what is longer than the cube is as long as the next.
func trustScale(k *covariance, c int) float64 { return min(1/math.Sqrt(k.inverse[c]), 4) }

// trusts tells whether a study has a trust region.
func (o *BKBOptions) trusts(spec study.Spec) bool {
	return o.Trust > 0 && len(spec.Objectives) == 1 && orderedAxes(spec.Space) >= o.Trust
}

func orderedAxes(sp *space.Space) int {
	n := 0
	for _, a := range sp.Axes() {
		if a.Ordered {
			n++
		}
	}
	return n
}

// clamp moves the rows of x into the box.
func (x *box) clamp(points *kernel.Points[float64]) {
	if x == nil {
		return
	}
	for i := range points.Len() {
		row := points.Row(i)
		for c := range row {
			row[c] = min(max(row[c], x.low[c]), x.high[c])
		}
	}
}

// wider is how much wider confidence bounds are than usual: where many
// suggestions in a row were no improvement, the model is surer than it should be
// of what it does not know.
func (b *bkb) wider() float64 {
	if b.options.Patience == 0 {
		return 1
	}
	return math.Pow(2, min(float64(b.results.trust.stale/b.options.Patience), 3))
}
