package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// region is the size of the trust region (Eriksson et al., TuRBO, 2019, Algorithm 1), as a
// fold of the results in the order of the log. After trustSuccesses suggestions in a row
// that improved on the best it doubles. After max(4, dim) failures in a row it is halved.
// Below trustLeast it starts again.
type region struct {
	dim                 int       // ordered coordinates
	begun, told         int       // of the results that were followed
	length              float64   // of the sides, before weights, and 0 before the first result
	successes, failures int       // in a row
	stale               int       // guided results since the last improvement
	idle                int       // results since the last improvement
	top                 []float64 // the best values, descending
}

// Sizes of trust regions, in units of the cube.
const (
	trustFirst     = 0.8
	trustMost      = 1.6
	trustLeast     = 1.0 / 128
	trustSuccesses = 3
	trustTop       = 8    // values in top
	trustGain      = 1e-3 // least improvement, relative to the lead over the last of top
	longestTrusted = 4    // upper limit of length scales
)

// follow adds the new results.
func (t *region) follow(r *model.Results) {
	if t.begun != r.Begun {
		*t = region{dim: t.dim, begun: r.Begun}
	}
	for ; t.told < len(r.List); t.told++ {
		t.tell(&r.List[t.told])
	}
}

// tell adds a result.
func (t *region) tell(r *model.Result) {
	if t.length == 0 {
		t.length = trustFirst
	}
	better := false
	if r.Y != nil && r.Feasible {
		y := min(max(r.Y[0].Value, -math.MaxFloat64), math.MaxFloat64)
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
	if t.idle++; better {
		t.idle = 0
	}
	switch {
	case !r.Guided:
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
	case t.failures == max(4, t.dim):
		t.length, t.failures = t.length/2, 0
	}
	if t.length < trustLeast {
		t.length, t.successes, t.failures = trustFirst, 0, 0
	}
}

// box bounds suggestions within low and high in ordered coordinates, unless nil.
type box struct{ center, low, high []float64 }

// trusted returns the trust region around the configuration with the best posterior mean,
// with sides in proportion to the length scales. It returns nil if there is none.
func (a *acquisition) trusted() *box {
	if !a.options.Trusts(a.spec) || len(a.elite.members) == 0 {
		return nil
	}
	axes, lengths, good := a.spec.Space.Axes(), a.outlook.Lengths(), a.elite.now()
	best := 0
	for i, m := range good.mean {
		if m > good.mean[best] {
			best = i
		}
	}
	logs, n := 0.0, 0
	for c, axis := range axes {
		if axis.Ordered {
			logs, n = logs+math.Log(min(lengths[c], longestTrusted)), n+1
		}
	}
	x := &box{center: good.x.Row(best), low: make([]float64, len(axes)), high: make([]float64, len(axes))}
	for c, axis := range axes {
		x.high[c] = 1
		if !axis.Ordered || axis.Conditional {
			continue
		}
		half := a.region.length / 2 * min(lengths[c], longestTrusted) / math.Exp(logs/float64(n))
		if axis.Levels > 0 {
			half = max(half, 1.01/float64(axis.Levels))
		}
		x.low[c], x.high[c] = max(x.center[c]-half, 0), min(x.center[c]+half, 1)
	}
	return x
}
