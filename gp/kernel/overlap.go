package kernel

import (
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/simd/panel"
)

var overlapFamily = Family{
	Name: "overlap", Params: []string{"dim"},
	build: func(p *params, _ []float64) (*Base, error) { return NewOverlap(p.integer("dim")) },
}

// NewOverlap returns k(x, y) = (1/d) Σ_c [x_c = y_c], the share of equal coordinates, for d ≥ 1
// categories coded as numbers. κ² = 1. It has no parameters to tune.
func NewOverlap(d int) (*Base, error) {
	if d < 1 {
		return nil, parameterError("overlap", "dim", float64(d), "≥ 1")
	}
	all := float64(d)
	return newUnscaled("overlap", mismatches, d, profile{ // 1 − s/d for s mismatches
		at:     func(s float64) float64 { return 1 - s/all },
		slope:  func(float64) float64 { return -1 / all },
		bound:  1,
		shape:  []shapeParameter{{Parameter{"dim", all}, true}},
		vector: func(f *panel.Function, w float64) { f.Func, f.P0, f.P1 = simd.Affine, -w/all, 1 },
	}), nil
}
