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

// observations are points with the statistics of their targets. The targets of point i
// count as one target ȳ_i with noise ξ²/n_i, which changes neither mean nor variance of
// the posterior (Carratino 2020, §7.1.2, uses it for min(A, t)).
type observations struct {
	x       kernel.Rows // u×d, nil when empty
	count   []float64   // n_i ≥ 1
	mean    []float64   // ȳ_i
	scatter []float64   // Σ_j (y_ij − ȳ_i)²
	extra   []float64   // own noise
}

// len returns the number of points u.
func (o *observations) len() int { return len(o.count) }

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
			p, fresh = o.add(d.own(i)), append(fresh, i)
		}
		if merges {
			known[key] = p
		}
		o.observe(p, y)
	}
	o.x = d.X.Select(fresh)
	return o
}

// add makes a point without targets, except for its input.
func (o *observations) add(own float64) (point int) {
	o.count, o.mean = append(o.count, 0), append(o.mean, 0)
	o.scatter, o.extra = append(o.scatter, 0), append(o.extra, own)
	return o.len() - 1
}

// observe adds a target to point i, by Welford's recursion.
func (o *observations) observe(i int, y float64) {
	o.count[i]++
	d := y - o.mean[i]
	o.mean[i] += d / o.count[i]
	o.scatter[i] += d * (y - o.mean[i])
}

// noise returns Λ_i = ξ²/n_i + own noise.
func (o *observations) noise(i int, noiseVariance float64) float64 {
	return noiseVariance/o.count[i] + o.extra[i]
}

// withinEvidence returns the contribution of the repetitions to the log marginal
// likelihood of the means ȳ, and its derivative with respect to log ξ².
//
//	log N(y | 0, K + ξ²I) = log N(ȳ | 0, K + diag(ξ²/n_i))
//	    − ½ Σ_i [(n_i − 1) log 2πξ² + log n_i + Σ_j (y_ij − ȳ_i)²/ξ²].
func (o *observations) withinEvidence(noiseVariance float64) (value, slope float64) {
	for i, n := range o.count {
		if n <= 1 {
			continue
		}
		s := o.scatter[i] / noiseVariance
		value -= 0.5 * ((n-1)*(log2Pi+math.Log(noiseVariance)) + math.Log(n) + s)
		slope -= 0.5 * (n - 1 - s)
	}
	return value, slope
}
