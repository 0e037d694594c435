package bandit

import "slices"

// TrustRegion is the size of the trust region of TuRBO (Eriksson, Pearce, Gardner, Turner and
// Poloczek, Scalable global optimization via local Bayesian optimization, 2019, Algorithm 1). After
// three suggestions in a row that improved on the best it doubles. After max(4, Dim) failures in a
// row it is halved. When it is too small it starts again.
type TrustRegion struct {
	Dim    int
	Length float64 // of the sides, before weights, and 0 before the first result
	Stale  int     // suggestions since the last improvement
	Idle   int     // results since the last improvement

	successes, failures int       // in a row
	top                 []float64 // the best values, descending
}

// Sizes of trust regions, in units of the cube. The first four are those of TuRBO.
const (
	trustFirst     = 0.8
	trustMost      = 1.6
	trustLeast     = 1.0 / 128
	trustSuccesses = 3
	trustTop       = 8    // values in top
	trustGain      = 1e-3 // least improvement, relative to the lead over the last of top
)

// Tell adds the value of a result, unless it failed. The size follows suggested ones only.
func (t *TrustRegion) Tell(y float64, failed, suggested bool) {
	if t.Length == 0 {
		t.Length = trustFirst
	}
	better := false
	if !failed {
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
	if t.Idle++; better {
		t.Idle = 0
	}
	switch {
	case !suggested:
		return
	case better:
		t.Stale = 0
		t.successes, t.failures = t.successes+1, 0
	default:
		t.Stale++
		t.successes, t.failures = 0, t.failures+1
	}
	switch {
	case t.successes == trustSuccesses:
		t.Length, t.successes = min(2*t.Length, trustMost), 0
	case t.failures == max(4, t.Dim):
		t.Length, t.failures = t.Length/2, 0
	}
	if t.Length < trustLeast {
		t.Length, t.successes, t.failures = trustFirst, 0, 0
	}
}
