// Package spacetest generates random spaces and configurations for property tests. They have
// every type and scale, ranges at the ends of float64 and int64, steps, and nested conditions.
package spacetest

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Spaces generates valid spaces of up to maxParameters parameters.
func Spaces(maxParameters int) *rapid.Generator[*space.Space] {
	return rapid.Custom(func(t *rapid.T) *space.Space {
		n := rapid.IntRange(0, maxParameters).Draw(t, "parameters")
		var list []space.Parameter
		var parents []int
		depth := make([]int, n)
		for i := range n {
			p := Parameters(fmt.Sprintf("p%d%s", i, rapid.SampledFrom([]string{"", "ß", " x", "\"", ":", "-1", ".lr"}).Draw(t, "suffix"))).Draw(t, "parameter")
			for _, k := range drawParents(t, parents) {
				if depth[k] < space.MaxConditionDepth {
					p = p.Given(list[k].Name, drawValues(t, list[k])...)
					depth[i] = max(depth[i], depth[k]+1)
				}
			}
			if p.Type != space.TypeFloat {
				parents = append(parents, i)
			}
			list = append(list, p)
		}
		s, err := space.New(rapid.Permutation(list).Draw(t, "order")...)
		if err != nil {
			t.Fatalf("generated an unsound space: %v", err)
		}
		return s
	})
}

// drawParents picks up to two different ones, usually none or one.
func drawParents(t *rapid.T, from []int) []int {
	if len(from) == 0 || rapid.Bool().Draw(t, "always active") {
		return nil
	}
	a := rapid.SampledFrom(from).Draw(t, "parent")
	b := rapid.SampledFrom(from).Draw(t, "other parent")
	if a == b || rapid.IntRange(0, 3).Draw(t, "one parent") > 0 {
		return []int{a}
	}
	return []int{a, b}
}

// drawValues picks values of a parent for a condition.
func drawValues(t *rapid.T, p space.Parameter) []space.Value {
	s, err := space.New(parentOnly(p))
	if err != nil {
		t.Fatalf("generated an unsound parent: %v", err)
	}
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) space.Value {
		v, _ := Configs(s).Draw(t, "value").Get(p.Name)
		return v
	}), 1, min(3, valuesOf(s)), rapid.ID[space.Value]).Draw(t, "values")
}

func parentOnly(p space.Parameter) space.Parameter {
	p.When = nil
	return p
}

func valuesOf(s *space.Space) int { return int(min(s.Cardinality(), 3)) }

// Parameters generates one parameter without conditions.
func Parameters(name string) *rapid.Generator[space.Parameter] {
	return rapid.OneOf(floats(name), steppedFloats(name), ints(name), lists(name))
}

func floats(name string) *rapid.Generator[space.Parameter] {
	return rapid.Custom(func(t *rapid.T) space.Parameter {
		r := rapid.OneOf(rapid.SampledFrom(ExtremeRanges()), rapid.Custom(randomRange)).Draw(t, "range")
		p := space.NewFloat(name, r[0], r[1])
		if r[0] > 0 {
			p.Scale = rapid.SampledFrom([]space.Scale{space.Linear, space.Log, space.ReverseLog}).Draw(t, "scale")
		}
		return p
	})
}

// ExtremeRanges lists float ranges that are hard to encode.
func ExtremeRanges() [][2]float64 {
	const most, least = math.MaxFloat64, math.SmallestNonzeroFloat64
	return [][2]float64{
		{0, 1},
		{1e-5, 0.1},
		{0.9, 0.999},
		{1e-300, 1e300},
		{least, 1},
		{least, most},
		{-most, most},
		{0, least},
		{least, 2 * least},
		{1e-310, 1e-308},
		{1e9, 1e9 + 1e-3},
		{1, math.Nextafter(1, 2)},
		{1, 1 + 1e-14},
		{0.1, 0.1},
		{-1e-300, 1e300},
		{-least, 1e300},
		{most / 2, most},
		{-3, -2.9999999},
		{1e-12, 1},
		{1e-16, 1},
		{0.1234567890123456, 0.9876543210987654},
		{1e15, 1e16},
		{0.30000000000000004, 0.30000000000000016},
		{1.0000000000001, 3e100},
		{1, math.Exp(255.9)},
		{1, math.Exp(256.1)},
	}
}

func randomRange(t *rapid.T) [2]float64 {
	a, b := rapid.Float64().Draw(t, "a"), rapid.Float64().Draw(t, "b")
	if rapid.Bool().Draw(t, "positive") {
		a, b = math.Abs(a), math.Abs(b)
	}
	if rapid.Bool().Draw(t, "near") {
		b = a + math.Abs(a)*rapid.Float64Range(0, 2).Draw(t, "width")
	}
	if math.IsInf(b, 0) {
		b = a
	}
	return [2]float64{min(a, b), max(a, b)}
}

func steppedFloats(name string) *rapid.Generator[space.Parameter] {
	return rapid.Custom(func(t *rapid.T) space.Parameter {
		step := rapid.OneOf(rapid.SampledFrom([]float64{0.1, 0.01, 0.25, 3, 1e-7, 2.5e-300, 1e300, 0.3333333333333333}),
			rapid.Float64Range(1e-3, 1e3)).Draw(t, "step")
		low := step * rapid.Float64Range(-100, 100).Draw(t, "low")
		high := low + step*rapid.Float64Range(0, 1e4).Draw(t, "steps")
		return space.NewFloat(name, low, high).WithStep(space.Float(step))
	})
}

func ints(name string) *rapid.Generator[space.Parameter] {
	return rapid.Custom(func(t *rapid.T) space.Parameter {
		a, b := drawInt(t), drawInt(t)
		if rapid.Bool().Draw(t, "near") && a < math.MaxInt64-100 {
			b = a + rapid.Int64Range(0, 100).Draw(t, "width")
		}
		p := space.NewInt(name, min(a, b), max(a, b))
		switch {
		case p.Low != space.Int(0) && min(a, b) > 0 && rapid.Bool().Draw(t, "log"):
			p.Scale = rapid.SampledFrom([]space.Scale{space.Log, space.ReverseLog}).Draw(t, "scale")
		case rapid.Bool().Draw(t, "stepped"):
			p.Step = space.Int(rapid.OneOf(rapid.Int64Range(1, 9), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "step"))
		}
		return p
	})
}

func drawInt(t *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(1, 1000),
		rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 0, 1, 1 << 62, 1e12, 1e12 + 1, 9e18 - 1})).Draw(t, "bound")
}

func lists(name string) *rapid.Generator[space.Parameter] {
	return rapid.Custom(func(t *rapid.T) space.Parameter {
		values := rapid.SliceOfNDistinct(Values(), 1, 6, func(v space.Value) string { return v.String() }).Draw(t, "values")
		values = oneKindOfNumber(values)
		switch rapid.IntRange(0, 3).Draw(t, "list") {
		case 0:
			return space.NewConstant(name, values[0])
		case 1:
			return space.NewOrdinal(name, values...)
		case 2:
			return space.NewBool(name)
		default:
			return space.NewCategorical(name, values...)
		}
	})
}

// oneKindOfNumber drops the ints of a list that also has floats.
func oneKindOfNumber(values []space.Value) []space.Value {
	var floats, others []space.Value
	mixed := false
	for _, v := range values {
		mixed = mixed || v.Kind() == space.KindFloat
		if v.Kind() != space.KindInt {
			floats = append(floats, v)
		}
		others = append(others, v)
	}
	if mixed {
		return floats
	}
	return others
}

// Values generates values of every kind, including awkward texts.
func Values() *rapid.Generator[space.Value] {
	return rapid.OneOf(
		rapid.Map(rapid.Float64(), space.Float),
		rapid.Map(rapid.Int64(), space.Int),
		rapid.Map(rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return !space.Hostile(r) })), space.String),
		rapid.Map(rapid.SampledFrom([]string{"", "null", "1e5", "~", "yes", "a: b", "#", "\ufeff", "\ufffd", "\U0001f600", "- x", "0x1p-2", "<<", "*a", "&a", "!!str"}), space.String),
		rapid.Map(rapid.Bool(), space.Bool),
	)
}

// Configs generates valid configurations of s. Floats have all their bits, so s need not
// decode to them.
func Configs(s *space.Space) *rapid.Generator[space.Config] {
	return rapid.Custom(func(t *rapid.T) space.Config {
		u := rapid.SliceOfN(rapid.Float64Range(0, 1), s.Dim(), s.Dim()).Draw(t, "u")
		decoded, err := s.Decode(u)
		if err != nil {
			t.Fatalf("decoding: %v", err)
		}
		var entries []space.Assignment
		for name, v := range decoded.All() {
			p, _ := s.Lookup(name)
			_, stepped := p.Step.AsFloat()
			if p.Type == space.TypeFloat && !stepped && rapid.Bool().Draw(t, "all bits") {
				low, _ := p.Low.AsFloat()
				high, _ := p.High.AsFloat()
				v = space.Float(rapid.Float64Range(low, high).Draw(t, "x"))
			}
			entries = append(entries, space.Assignment{Name: name, Value: v})
		}
		return space.NewConfig(entries...)
	})
}
