package acquire

import (
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
)

// fineLevels is the number of levels from which on an ordered axis is climbed like a
// continuous one.
const fineLevels = 64

// box is a part of the cube.
type box struct{ low, high []float64 }

// domain is a mixed and conditional space as a [bandit.Domain]. It is the unit cube, or a
// part of it, with steps in units of the length scales.
type domain struct {
	space     *space.Space
	axes      []space.Axis
	low, high []float64
	unit      []float64 // length scales, at most 1
	chance    float64   // that a coordinate moves
	coarse    bool      // not every point belongs to a configuration
	// constrained reports whether the space has constraints.
	constrained bool
	climbable   []bool
	some        bool // whether any is climbable
}

func newDomain(sp *space.Space, lengths []float64, part *box) *domain {
	d := sp.Dim()
	out := &domain{space: sp, axes: sp.Axes(), unit: make([]float64, d), climbable: make([]bool, d)}
	out.constrained = len(sp.Constraints()) > 0
	out.coarse = out.constrained
	out.chance = min(1, max(0.3, 4/float64(d)))
	if d > 20 {
		out.chance = max(20/float64(d)*0.5, 2/float64(d))
	}
	if part != nil {
		out.low, out.high = part.low, part.high
	} else {
		out.low, out.high = make([]float64, d), slices.Repeat([]float64{1}, d)
	}
	for c, axis := range out.axes {
		out.unit[c] = min(lengths[c], 1)
		out.coarse = out.coarse || axis.Levels > 0 || axis.Conditional
		out.climbable[c] = axis.Ordered && (axis.Levels == 0 || axis.Levels > fineLevels)
		out.some = out.some || out.climbable[c]
	}
	return out
}

func (d *domain) Box() (low, high []float64) { return d.low, d.high }

func (d *domain) Unit() []float64 { return d.unit }

// Mutate implements [bandit.Domain]. One coordinate moves, and each other one with a given
// probability.
func (d *domain) Mutate(x []float64, size float64, rng *rand.Rand) {
	must := rng.IntN(len(x))
	for c, axis := range d.axes {
		if c != must && rng.Float64() >= d.chance {
			continue
		}
		switch {
		case !axis.Ordered:
			if c == must || rng.Float64() < 0.5 {
				x[c] = rng.Float64()
			}
		case axis.Conditional && x[c] == space.Neutral && rng.IntN(2) == 0:
			x[c] = rng.Float64() // perhaps it was inactive
		default:
			width := size * d.unit[c]
			if axis.Levels > 0 {
				width = max(width, 0.8/float64(axis.Levels))
			}
			x[c] = min(max(x[c]+width*rng.NormFloat64(), 0), 1)
		}
	}
}

func (d *domain) Snap(x *kernel.Points[float64]) {
	if !d.coarse {
		return
	}
	for i := range x.Len() {
		if err := d.space.Snap(x.Row(i)); err != nil {
			panic("acquire: a candidate: " + err.Error())
		}
	}
}

// Keep implements [bandit.Domain]. It moves x onto the constraints of the space.
func (d *domain) Keep(x []float64) {
	if !d.constrained {
		return
	}
	if err := d.space.Snap(x); err != nil {
		panic("acquire: a point uphill: " + err.Error())
	}
}

// Free implements [bandit.Domain]. A score is climbed in the active coordinates that are
// continuous or nearly so.
func (d *domain) Free(x []float64, free []bool) bool {
	if !d.some || d.space.ActiveAt(x, free) != nil {
		return false
	}
	for c := range free {
		free[c] = free[c] && d.climbable[c]
	}
	return true
}
