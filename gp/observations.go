package gp

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Data holds observations, inputs X, n×d, and targets Y, n. Noise, if not nil, has for
// every target a variance of its own, added to the noise variance of the process. It
// may be the square of a standard error. Its length is n and its entries are ≥ 0. A
// [Sparse] posterior also takes entries > −ξ², for targets that are known better than
// one observation. A mean of k has −ξ²(1 − 1/k).
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

// observations are unique points with the statistics of their targets. Repeated targets
// of point i count as one target ȳ_i with noise ξ²/n_i, which changes neither mean nor
// variance of the posterior (Carratino 2020, §7.1.2, uses it for min(A, t)).
// Observations with noise of their own are not merged.
type observations struct {
	x       kernel.Rows // u×d, nil when empty
	count   []float64   // n_i ≥ 0
	mean    []float64   // ȳ_i
	scatter []float64   // Σ_j (y_ij − ȳ_i)²
	extra   []float64   // own noise
	keys    map[string]int
	total   int // Σ n_i
}

// clone returns a copy to which observations can be added.
func (o *observations) clone() *observations {
	c := *o
	c.count, c.mean = slices.Clone(o.count), slices.Clone(o.mean)
	c.scatter, c.extra = slices.Clone(o.scatter), slices.Clone(o.extra)
	if o.keys != nil {
		c.keys = make(map[string]int, len(o.keys))
		for k, v := range o.keys {
			c.keys[k] = v
		}
	}
	return &c
}

// len returns the number of unique points u.
func (o *observations) len() int { return len(o.count) }

// placement says which points rows belong to, and which rows need new points.
type placement struct {
	at    []int // the point of every row
	fresh []int // the rows that become new points, in order
	keys  []string
	own   []float64   // own noise of the new points
	x     kernel.Rows // all points, new ones included
}

// place finds the points of rows without changing anything. If merge is false, or a row
// has noise of its own, the row is a new point.
func (o *observations) place(x kernel.Rows, extra []float64, merge bool) (placement, error) {
	n := x.Len()
	pl := placement{at: make([]int, n), x: o.x}
	added := map[string]int{}
	for i := range n {
		own, key, known := 0.0, "", false
		if extra != nil {
			own = extra[i]
		}
		if merge && own == 0 {
			key, known = kernel.RowKey(x, i)
		}
		if known {
			if p, found := o.find(key, added); found {
				pl.at[i] = p
				continue
			}
			added[key] = o.len() + len(pl.fresh)
		}
		pl.at[i] = o.len() + len(pl.fresh)
		pl.fresh, pl.keys, pl.own = append(pl.fresh, i), append(pl.keys, key), append(pl.own, own)
	}
	if len(pl.fresh) == 0 {
		return pl, nil
	}
	pl.x = x.Select(pl.fresh)
	if o.x != nil {
		var err error
		if pl.x, err = o.x.Concat(pl.x); err != nil {
			return pl, fmt.Errorf("gp: x: %w", err)
		}
	}
	return pl, nil
}

// find looks a key up among the points and those about to be added.
func (o *observations) find(key string, added map[string]int) (int, bool) {
	if p, ok := o.keys[key]; ok {
		return p, true
	}
	p, ok := added[key]
	return p, ok
}

// accept makes the new points of a placement, without targets. Nothing is merged with
// points without a key.
func (o *observations) accept(pl placement) {
	for j, key := range pl.keys {
		if key != "" {
			if o.keys == nil {
				o.keys = map[string]int{}
			}
			o.keys[key] = o.len()
		}
		o.count, o.mean = append(o.count, 0), append(o.mean, 0)
		o.scatter, o.extra = append(o.scatter, 0), append(o.extra, pl.own[j])
	}
	o.x = pl.x
}

// observe adds a target to point i, by Welford's recursion.
func (o *observations) observe(i int, y float64) {
	o.total++
	o.count[i]++
	d := y - o.mean[i]
	o.mean[i] += d / o.count[i]
	o.scatter[i] += d * (y - o.mean[i])
}

// add adds validated data. It returns the number of points before, and whether a point
// of before has changed.
func (o *observations) add(d Data, merge bool) (before int, changed bool, err error) {
	before = o.len()
	if d.len() == 0 {
		return before, false, nil
	}
	pl, err := o.place(d.X, d.Noise, merge)
	if err != nil {
		return before, false, err
	}
	o.accept(pl)
	for i, p := range pl.at {
		o.observe(p, d.Y[i])
		changed = changed || p < before
	}
	return before, changed, nil
}

// noise returns Λ_i = ξ²/n_i + own noise, of points with n_i > 0.
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
