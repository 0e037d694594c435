package space

import (
	"cmp"
	"math"
	"slices"
)

// Tick is a value of a parameter with its coordinate, for the axis of a chart.
type Tick struct {
	At    float64 // in [0, 1]
	Value Value
}

// Ticks returns up to most ticks of a coordinate in ascending order, at least one. Values of
// a list come in their order, each if there is room. Those of a range are round, powers of
// ten where a log scale spans several. It panics if there is no such coordinate or most is
// less than 2.
func (s *Space) Ticks(coordinate, most int) []Tick {
	if most < 2 {
		panic("space: precondition: fewer than 2 ticks")
	}
	m := &s.members[s.axes[coordinate]]
	var out []Tick
	add := func(v Value) {
		if u, ok := m.axis.encode(v); ok {
			out = append(out, Tick{u, v})
		}
	}
	near := func(u float64) { add(m.axis.decode(u)) }
	if list, ok := m.axis.(*listAxis); ok {
		every := (len(list.values) + most - 1) / most
		for i := 0; i < len(list.values); i += every {
			add(list.values[i])
		}
		return out
	}
	low, high := m.span()
	round := roundSteps
	if m.Scale == Log {
		round = roundRatios
	}
	if m.Scale == ReverseLog {
		for i := range most {
			near(float64(i) / float64(most-1))
		}
		round = func(float64, float64, int) []float64 { return nil }
	}
	for _, x := range round(low, high, most) {
		v := Float(x)
		if m.Type == TypeInt {
			v = Int(int64(math.Round(x)))
		}
		if _, ok := m.axis.encode(v); ok {
			add(v)
		} else if m.Scale == Linear {
			near((x - low) / (high - low))
		}
	}
	if len(out) < 2 {
		out = out[:0]
		near(0)
		near(1)
	}
	slices.SortFunc(out, func(a, b Tick) int { return cmp.Compare(a.At, b.At) })
	return slices.CompactFunc(out, func(a, b Tick) bool { return a.At == b.At })
}

// roundSteps returns up to most multiples of 1, 2 or 5 times a power of ten in a range.
func roundSteps(low, high float64, most int) []float64 {
	width := high/float64(most) - low/float64(most)
	if !(width > 0) {
		return nil
	}
	unit := math.Pow(10, math.Floor(math.Log10(width)))
	for _, f := range []float64{1, 2, 5, 10, 20} {
		step := f * unit
		first, last := math.Ceil(low/step-1e-9), math.Floor(high/step+1e-9)
		if n := last - first + 1; n <= float64(most) {
			var out []float64
			for i := range int(n) {
				out = append(out, tidy((first+float64(i))*step, unit))
			}
			return out
		}
	}
	return nil
}

// tidy rounds a multiple of a power of ten to the nearest decimal.
func tidy(x, unit float64) float64 {
	if unit < 1 && unit > 1e-300 {
		inverse := math.Round(1 / unit)
		return math.Round(x*inverse) / inverse
	}
	return x
}

// roundRatios returns up to most powers of ten in a range of positive numbers. Where they
// are few it returns 1, 2 and 5 times a power too.
func roundRatios(low, high float64, most int) []float64 {
	from, to := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	inside := func(factors []float64, every int) (out []float64) {
		for k := from; k <= to; k += every {
			for _, f := range factors {
				if v := f * math.Pow(10, float64(k)); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
					out = append(out, min(max(v, low), high))
				}
			}
		}
		return out
	}
	if all := inside([]float64{1, 2, 5}, 1); len(all) <= most {
		return all
	}
	every := max((to-from+most)/most, 1)
	return inside([]float64{1}, every)
}
