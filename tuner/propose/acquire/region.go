package acquire

import (
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// region is the fold of the results, in the order of the log, into a [bandit.TrustRegion].
type region struct {
	bandit.TrustRegion
	begun, told int // of the results that were followed
}

// longestTrusted is the upper limit of length scales, in units of the cube.
const longestTrusted = 4

// follow adds the new results.
func (t *region) follow(r *model.Results) {
	if t.begun != r.Begun {
		*t = region{TrustRegion: bandit.TrustRegion{Dim: t.Dim}, begun: r.Begun}
	}
	for ; t.told < len(r.List); t.told++ {
		one, y := &r.List[t.told], 0.0
		failed := one.Y == nil || !one.Feasible
		if !failed {
			y = min(max(one.Y[0].Value, -math.MaxFloat64), math.MaxFloat64)
		}
		t.Tell(y, failed, one.Guided)
	}
}

// box bounds suggestions within low and high in ordered coordinates, unless nil.
type box struct{ center, low, high []float64 }

// trusted returns the trust region around the configuration with the best posterior mean,
// with sides in proportion to the length scales. It returns nil if there is none.
func (a *acquisition) trusted() *box {
	if !a.options.Trusts(a.spec) || len(a.eliteOf(a.engine)) == 0 {
		return nil
	}
	axes, lengths, good := a.spec.Space.Axes(), a.outlook.Lengths(), a.standing(a.engine)
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
		half := a.region.Length / 2 * min(lengths[c], longestTrusted) / math.Exp(logs/float64(n))
		if axis.Levels > 0 {
			half = max(half, 1.01/float64(axis.Levels))
		}
		x.low[c], x.high[c] = max(x.center[c]-half, 0), min(x.center[c]+half, 1)
	}
	return x
}
