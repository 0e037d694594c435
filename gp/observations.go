package gp

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Data holds observations, inputs X, n×d, and targets Y, n. Noise, if not nil, has for
// every target a variance of its own ≥ 0, added to the noise variance of the process, such as
// the square of a standard error. A [Sparse] posterior also takes entries > −ξ², for targets
// that are known better than one observation. A mean of k has −ξ²(1 − 1/k).
//
// Coarse, if not nil, marks observations of the process at a lower fidelity, for a
// [Sparse] posterior. Their residual always counts as noise, and they take at most
// three quarters of Growth.Room in a posterior that grows.
type Data struct {
	X      kernel.Rows
	Y      []float64
	Noise  []float64
	Coarse []bool
}

// own returns the noise of observation i.
func (d Data) own(i int) float64 {
	if d.Noise == nil {
		return 0
	}
	return d.Noise[i]
}

func (d Data) coarse(i int) bool { return d.Coarse != nil && d.Coarse[i] }

// len returns the number of observations.
func (d Data) len() int { return len(d.Y) }

// check verifies data to add to rows like x, whose noise may be as low as −least.
func (d Data) check(k kernel.Kernel, x kernel.Rows, least float64) error {
	if d.X == nil {
		if len(d.Y) > 0 || len(d.Noise) > 0 {
			return shapeError("y", len(d.Y), 0)
		}
		return nil
	}
	if d.X.Len() != len(d.Y) {
		return shapeError("y", len(d.Y), d.X.Len())
	}
	if d.Coarse != nil && len(d.Coarse) != len(d.Y) {
		return shapeError("coarse", len(d.Coarse), len(d.Y))
	}
	if d.Noise != nil && len(d.Noise) != len(d.Y) {
		return shapeError("noise", len(d.Noise), len(d.Y))
	}
	if err := checkRows("x", k, d.X, x); err != nil {
		return err
	}
	for i, y := range d.Y {
		if err := checkTarget(i, y); err != nil {
			return err
		}
	}
	for i, v := range d.Noise {
		if !(v >= 0 || v > -least) || v > maxTarget {
			return valueError("noise", i, v, "a variance ≥ 0, ≤ 1e150, or above −ξ² in a sparse posterior")
		}
	}
	return nil
}

func checkTarget(i int, y float64) error {
	if !(math.Abs(y) <= maxTarget) {
		return valueError("y", i, y, "finite, |y| ≤ 1e150")
	}
	return nil
}

// observations are the points of an exact posterior. Equal targets count as one target ȳ_i with
// noise ξ²/n_i, which changes neither mean nor variance of the posterior (Carratino 2020, §7.1.2,
// uses it for min(A, t)).
type observations struct {
	x     kernel.Rows // u×d, nil when empty
	stats []stat
}

// len returns the number of points u.
func (o *observations) len() int { return len(o.stats) }

// newObservations copies d. With merge, equal inputs are one point, unless a target has noise of
// its own.
func newObservations(d Data, merge bool) *observations {
	o, known, fresh := new(observations), map[string]int{}, []int(nil)
	for i, y := range d.Y {
		key, merges := "", false
		if merge && d.own(i) == 0 {
			key, merges = kernel.RowKey(d.X, i)
		}
		p, found := known[key]
		if !merges || !found {
			p, fresh, o.stats = o.len(), append(fresh, i), append(o.stats, stat{})
		}
		if merges {
			known[key] = p
		}
		o.stats[p].add(y, d.own(i))
	}
	o.x = d.X.Select(fresh)
	return o
}

// withinEvidence returns the contribution of the repetitions to the log marginal
// likelihood of the means ȳ, and its derivative with respect to log ξ².
//
//	log N(y | 0, K + ξ²I) = log N(ȳ | 0, K + diag(ξ²/n_i))
//	    − ½ Σ_i [(n_i − 1) log 2πξ² + log n_i + Σ_j (y_ij − ȳ_i)²/ξ²].
func (o *observations) withinEvidence(noiseVariance float64) (value, slope float64) {
	for _, p := range o.stats {
		if p.n <= 1 {
			continue
		}
		s := p.scatter / noiseVariance
		value -= 0.5 * ((p.n-1)*(log2Pi+math.Log(noiseVariance)) + math.Log(p.n) + s)
		slope -= 0.5 * (p.n - 1 - s)
	}
	return value, slope
}
