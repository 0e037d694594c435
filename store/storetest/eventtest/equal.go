package eventtest

import (
	"math"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Diff shows how two events differ. It is empty if they are equal. Floats are compared bit by bit
// except that every NaN is equal, times are compared as instants, and empty equals nil.
func Diff(want, got study.Event) string {
	return cmp.Diff(want, got,
		cmpopts.EquateEmpty(),
		cmp.Comparer(sameFloat),
		cmp.Comparer(sameValue),
		cmp.Comparer(func(a, b *space.Space) bool { return a == b || a != nil && b != nil && a.Equal(b) }),
		cmp.Transformer("assignments", func(c space.Config) map[string]space.Value {
			m := make(map[string]space.Value)
			for name, v := range c.All() {
				m[name] = v
			}
			return m
		}),
	)
}

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func sameValue(a, b space.Value) bool {
	x, isFloat := a.AsFloat()
	y, alsoFloat := b.AsFloat()
	return a == b || isFloat && alsoFloat && sameFloat(x, y)
}
