package kernel

var overlapFamily = Family{
	Name: "overlap", Params: []string{"dim"},
	build: func(p *params, _ []float64) (*Base, error) { return NewOverlap(p.integer("dim")) },
}

// NewOverlap returns k(x, y) = (1/d) Σ_c [x_c = y_c], the share of equal
// coordinates, for d ≥ 1 categories coded as numbers. κ² = 1. It has no
// parameters to tune, and its input gradient is 0.
func NewOverlap(d int) (*Base, error) {
	if d < 1 {
		return nil, parameterError("overlap", "dim", float64(d), "≥ 1")
	}
	return newUnscaled("overlap", Mismatches, d, overlap{float64(d)}), nil
}

// overlap is φ(s) = 1 − s/d, where s is the number of mismatches.
type overlap struct{ d float64 }

func (o overlap) at(s, _, _ float64) float64 { return 1 - s/o.d }
func (overlap) bound() float64               { return 1 }

func (o overlap) slope(_, _, _ float64) (ds, dxx, dyy float64) { return -1 / o.d, 0, 0 }

func (o overlap) shape() []shapeParameter {
	return []shapeParameter{{Parameter{"dim", o.d}, true}}
}
