package propose

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/space"
)

// Numbers of candidates for one suggestion.
const (
	wideCandidates = 512  // Sobol' points
	nearCandidates = 192  // mutations of the best results
	manyInducing   = 200  // inducing points from which on there are fewer
	enumeratedUpTo = 2048 // configurations of a space that are all looked at
	parents        = 5    // results that are mutated
	fineLevels     = 64   // from so many levels on an ordered axis is climbed like a continuous one
)

// enumeration is all configurations of a small space, encoded.
type enumeration struct{ points *kernel.Points[float64] }

// enumerated returns all configurations where they are few, else nil.
func (b *bkb) enumerated() *enumeration {
	if b.finite != nil {
		if b.finite.points == nil {
			return nil
		}
		return b.finite
	}
	b.finite = new(enumeration)
	n := b.spec.Space.Cardinality()
	if n > enumeratedUpTo {
		return nil
	}
	c, err := cells.Of(b.spec.Space, cells.MaxPoints, nil)
	if err != nil || c.Total() > enumeratedUpTo {
		return nil
	}
	x := kernel.NewPoints[float64](int(c.Total()), b.spec.Space.Dim(), nil)
	for i := range c.Total() {
		if b.spec.Space.Encode(c.At(i), x.Row(int(i))) != nil {
			return nil
		}
	}
	b.finite.points = x
	return b.finite
}

// candidates are all configurations of a small space; else Sobol' points and
// mutations of the best results.
func (a *acquisition) candidates(w wish, seed uint64, rng *rand.Rand) *kernel.Points[float64] {
	if all := a.b.enumerated(); all != nil {
		return all.points
	}
	d := a.b.spec.Space.Dim()
	wide, nearby := wideCandidates, nearCandidates
	if a.surfaces[0].rank() > manyInducing {
		wide, nearby = wide/2, nearby*2/3
	}
	x := kernel.NewPoints[float64](wide, d, nil)
	sequence := sobol.New(d, seed)
	for i := range wide {
		row := x.Row(i)
		sequence.At(uint32(i), row)
		if t := w.trusted; t != nil {
			for c := range row {
				row[c] = t.low[c] + row[c]*(t.high[c]-t.low[c])
			}
		}
	}
	near := a.around(w, a.parents(rng), nearby, 0, rng)
	out := kernel.NewPoints(x.Len()+near.Len(), d, append(x.Data(), near.Data()...))
	a.snap(out)
	return out
}

// parents are the results with the best posterior means among the elite; of
// several objectives any of the front.
func (a *acquisition) parents(rng *rand.Rand) [][]float64 {
	good := a.e.bounds(a.b)
	x := good.x
	var out [][]float64
	if len(a.b.spec.Objectives) > 1 {
		for range min(2*parents, x.Len()) {
			out = append(out, x.Row(rng.IntN(x.Len())))
		}
		return out
	}
	if x.Len() == 0 {
		return nil
	}
	p := pool{scores: good.mean}
	for _, i := range p.order(parents) {
		out = append(out, x.Row(i))
	}
	return out
}

// mutationScales are the sizes of steps away from a good point, in units of the
// length scales, at most 1.
var mutationScales = [...]float64{0.02, 0.1, 0.5}

// around returns n mutations of the given points, in turn, with steps of the
// given size, or of several sizes if it is 0.
func (a *acquisition) around(w wish, from [][]float64, n int, scale float64, rng *rand.Rand) *kernel.Points[float64] {
	d := a.b.spec.Space.Dim()
	if len(from) == 0 {
		return kernel.NewPoints[float64](0, d, nil)
	}
	m := mutation{axes: a.b.spec.Space.Axes(), k: a.surfaces[0].k, rng: rng}
	m.chance = min(1, max(0.3, 4/float64(d)))
	if d > 20 {
		m.chance = max(20/float64(d)*0.5, 2/float64(d))
	}
	x := kernel.NewPoints[float64](n, d, nil)
	for i := range n {
		size := scale
		if size == 0 {
			size = mutationScales[i/len(from)%len(mutationScales)]
		}
		row := x.Row(i)
		copy(row, from[i%len(from)])
		if scale == 0 && i%6 == 5 {
			m.cross(row, from[rng.IntN(len(from))])
		}
		m.step(row, size)
	}
	w.trusted.clamp(x)
	a.snap(x)
	return x
}

// mutation changes some coordinates of a point.
type mutation struct {
	axes   []space.Axis
	k      *covariance
	rng    *rand.Rand
	chance float64
}

// cross takes about half of the coordinates from another point.
func (m *mutation) cross(x, other []float64) {
	for c := range x {
		if m.rng.IntN(2) == 0 {
			x[c] = other[c]
		}
	}
}

func (m *mutation) step(x []float64, size float64) {
	must := m.rng.IntN(len(x))
	for c, axis := range m.axes {
		if c != must && m.rng.Float64() >= m.chance {
			continue
		}
		switch {
		case !axis.Ordered:
			if c == must || m.rng.Float64() < 0.5 {
				x[c] = m.rng.Float64()
			}
		case axis.Conditional && x[c] == space.Neutral && m.rng.IntN(2) == 0:
			x[c] = m.rng.Float64() // was inactive, perhaps
		default:
			width := size * min(1/math.Sqrt(m.k.inverse[c]), 1)
			if axis.Levels > 0 {
				width = max(width, 0.8/float64(axis.Levels))
			}
			x[c] = min(max(x[c]+width*m.rng.NormFloat64(), 0), 1)
		}
	}
}

// snap moves points onto configurations, where the space has others than
// continuous parameters.
func (a *acquisition) snap(x *kernel.Points[float64]) {
	for _, axis := range a.b.spec.Space.Axes() {
		if axis.Levels > 0 || axis.Conditional {
			for i := range x.Len() {
				if err := a.b.spec.Space.Snap(x.Row(i)); err != nil {
					panic("propose: a candidate: " + err.Error())
				}
			}
			return
		}
	}
}

// climb follows the gradient of the score from the best candidates, in the
// coordinates that are as good as continuous.
func (p *pool) climb() {
	a := p.a
	model := a.surfaces[0]
	free := make([]bool, len(model.k.inverse))
	some := false
	for c, axis := range a.b.spec.Space.Axes() {
		free[c] = axis.Ordered && (axis.Levels == 0 || axis.Levels > fineLevels)
		some = some || free[c]
	}
	if !some {
		return
	}
	m := model.rank()
	budget := min(max(4_000_000/max(m*m, 1), 16), 120) // evaluations of O(m²)
	starts := 3
	t := newProbe(model)
	var found [][]float64
	for _, x := range p.top(starts) {
		y := slices.Clone(x)
		active := make([]bool, len(y))
		if a.b.spec.Space.ActiveAt(y, active) != nil {
			continue
		}
		for c := range active {
			active[c] = active[c] && free[c]
		}
		p.ascend(t, y, active, budget/starts)
		found = append(found, y)
	}
	x := kernel.NewPoints[float64](len(found), a.b.spec.Space.Dim(), nil)
	for i, y := range found {
		copy(x.Row(i), y)
	}
	a.snap(x)
	p.add(x)
}

// ascend moves x uphill within the cube, by projected gradient steps in units of
// the length scales that grow while they help and shrink while they do not.
func (p *pool) ascend(t *probe, x []float64, free []bool, budget int) {
	b := p.w.width * p.a.beta[0]
	inverse := t.p.k.inverse
	low, high := p.limits(len(x))
	mean, sd := t.value(x)
	value := mean + b*sd
	next, g := make([]float64, len(x)), make([]float64, len(x))
	size, stale := 0.1, true
	norm := 0.0
	for budget--; budget > 0 && size > 1e-7; budget-- {
		if stale {
			t.gradient()
			norm, stale = 0, false
			for c, ok := range free {
				g[c] = 0
				if !ok {
					continue
				}
				l := min(1/math.Sqrt(inverse[c]), 1)
				v := (t.dMean[c] + b*t.dSD[c]) * l
				if x[c] <= low[c] && v < 0 || x[c] >= high[c] && v > 0 {
					continue
				}
				norm += v * v
				g[c] = v * l
			}
			norm = math.Sqrt(norm)
		}
		if norm == 0 {
			return
		}
		moved := false
		for c := range x {
			next[c] = min(max(x[c]+size*g[c]/norm, low[c]), high[c])
			moved = moved || next[c] != x[c]
		}
		if !moved {
			return
		}
		mean, sd = t.value(next)
		if v := mean + b*sd; v > value {
			copy(x, next)
			value, stale = v, true
			size = min(2*size, 1)
		} else {
			size /= 4
		}
	}
}

// limits are those of the trust region, or of the cube.
func (p *pool) limits(d int) (low, high []float64) {
	if t := p.w.trusted; t != nil {
		return t.low, t.high
	}
	return make([]float64, d), slices.Repeat([]float64{1}, d)
}
