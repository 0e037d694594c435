package space_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
)

// These configurations are at an end or not, determined by hand.
func TestEdges(t *testing.T) {
	ints := func(values ...int64) []space.Value {
		var out []space.Value
		for _, v := range values {
			out = append(out, space.Int(v))
		}
		return out
	}
	float, whole := space.Float, space.Int
	for _, c := range []struct {
		p    space.Parameter
		at   space.Value
		want string // of the edge, empty for none
	}{
		// On a log scale a hundredth of nine decades is a factor 1.23.
		{space.NewFloat("x", 1e-9, 1).WithScale(space.Log), float(1.2e-9), "x is at the lower end of its range (1e-09…1)"},
		{space.NewFloat("x", 1e-9, 1).WithScale(space.Log), float(1.3e-9), ""},
		{space.NewFloat("x", 1e-9, 1).WithScale(space.Log), float(1), "x is at the upper end of its range (1e-09…1)"},
		{space.NewFloat("x", -10, 10), float(-9.81), "x is at the lower end of its range (-10…10)"},
		{space.NewFloat("x", -10, 10), float(-9.79), ""},
		{space.NewFloat("x", -10, 10), float(9.81), "x is at the upper end of its range (-10…10)"},
		// Values are dense near 0.999, so 0.998 is far from it. The other end is near.
		{space.NewFloat("x", 1e-3, 0.999).WithScale(space.ReverseLog), float(0.99), ""},
		{space.NewFloat("x", 1e-3, 0.999).WithScale(space.ReverseLog), float(0.05), "x is at the lower end of its range (0.001…0.999)"},
		// No value can lie beyond these ends.
		{space.NewFloat("x", 0, 1), float(0), ""},
		{space.NewFloat("x", 0, 1), float(1), ""},
		{space.NewFloat("x", 0.5, 1), float(0.5), "x is at the lower end of its range (0.5…1)"},
		{space.NewFloat("x", -1, 1), float(1), "x is at the upper end of its range (-1…1)"},
		{space.NewFloat("x", -5, 0), float(0), ""},
		{space.NewFloat("x", 0, 5), float(5), "x is at the upper end of its range (0…5)"},
		{space.NewInt("x", 1, 64).WithScale(space.Log), whole(1), ""},
		{space.NewInt("x", 0, 9), whole(0), ""},
		// The first and last steps count, or a hundredth of the range if there are many.
		{space.NewInt("x", 2, 6), whole(2), "x is at the lower end of its range (2…6)"},
		{space.NewInt("x", 2, 6), whole(3), ""},
		{space.NewInt("x", 2, 6), whole(6), "x is at the upper end of its range (2…6)"},
		{space.NewInt("x", 2, 5), whole(2), ""}, // four values
		{space.NewInt("x", 100, 1100), whole(110), "x is at the lower end of its range (100…1100)"},
		{space.NewInt("x", 100, 1100), whole(111), ""},
		{space.NewInt("x", 8, 512).WithScale(space.Log), whole(512), "x is at the upper end of its range (8…512)"},
		{space.NewFloat("x", 0.1, 0.55).WithStep(float(0.1)), float(0.5), "x is at the upper end of its range (0.1…0.5)"},
		{space.NewFloat("x", 0.1, 0.55).WithStep(float(0.1)), float(0.4), ""},
		// Lists of numbers in order have ends.
		{space.NewOrdinal("x", ints(16, 32, 64, 128, 256)...), whole(16), "x is at the lower end of its range (16…256)"},
		{space.NewOrdinal("x", ints(256, 128, 64, 32, 16)...), whole(16), "x is at the lower end of its range (16…256)"},
		{space.NewOrdinal("x", ints(256, 128, 64, 32, 16)...), whole(256), "x is at the upper end of its range (16…256)"},
		{space.NewOrdinal("x", ints(16, 32, 64, 128)...), whole(16), ""},
		{space.NewOrdinal("x", ints(16, 64, 32, 128, 256)...), whole(16), ""},
		{space.NewCategorical("x", ints(16, 32, 64, 128, 256)...), whole(16), ""},
		{space.NewFloat("x", 3, 3), float(3), ""},
		{space.NewConstant("x", float(3)), float(3), ""},
		{space.NewFloat("x", 1, 3), float(7), ""}, // not in the space
	} {
		s, err := space.New(c.p)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range s.Edges(space.NewConfig(space.Assignment{Name: "x", Value: c.at})) {
			got += e.String()
		}
		if got != c.want {
			t.Errorf("%v at %v: %q, want %q", c.p, c.at, got, c.want)
		}
	}
}

// share is the position of x in the range of a continuous parameter, by the definition of
// its scale.
func share(p space.Parameter, x float64) float64 {
	low, _ := p.Low.AsFloat()
	high, _ := p.High.AsFloat()
	switch p.Scale {
	case space.Log:
		return (logarithm(x) - logarithm(low)) / (logarithm(high) - logarithm(low))
	case space.ReverseLog:
		return 1 - (logarithm(high+(low-x))-logarithm(low))/(logarithm(high)-logarithm(low))
	}
	return (x/4 - low/4) / (high/4 - low/4)
}

// logarithm is math.Log that is also right for subnormal numbers, where its assembly for
// amd64 is wrong.
func logarithm(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Log(fraction) + float64(exponent)*math.Ln2
}

// The two ends of a range that begins with a subnormal number.
func TestEdgesOfSubnormal(t *testing.T) {
	p := space.NewFloat("x", 5e-324, 1)
	p.Scale = space.Log
	for x, want := range map[float64]float64{5e-324: 0, 1e-310: 0.0412, 1e-160: 0.5051, 1: 1} {
		if got := share(p, x); math.Abs(got-want) > 0.001 {
			t.Errorf("%g lies at %g of the range, want %g", x, got, want)
		}
	}
}

// In any space, continuous ranges have ends by the definition of scales. Others have the
// first and the last value and never the one in the middle. Inactive parameters have none.
func TestEdgesOfAnySpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(6).Draw(t, "space")
		c := spacetest.Configs(s).Draw(t, "config")
		at := map[string]space.Edge{}
		for _, e := range s.Edges(c) {
			at[e.Parameter] = e
		}
		for _, p := range s.Parameters() {
			v, active := c.Get(p.Name)
			e, is := at[p.Name]
			delete(at, p.Name)
			if is && !active {
				t.Fatalf("%v of a configuration without it", e)
			}
			if p.Type == space.TypeFloat && p.Step.Kind() == space.KindNone && active {
				x, _ := v.AsFloat()
				u := share(p, x)
				low, _ := p.Low.AsFloat()
				high, _ := p.High.AsFloat()
				near := math.Min(math.Abs(u-0.01), math.Abs(u-0.99)) < 1e-6 || math.IsNaN(u) || high/2-low/2 < 1e-9*high
				closed := u < 0.5 && low == 0 || u > 0.5 && (high == 0 || high == 1 && low >= 0 && p.Scale != space.Log)
				if want := !closed && (u <= 0.01 || u >= 0.99); !near && (want != is || is && e.Upper != (u > 0.5)) {
					t.Fatalf("%v at %v, share %g: %v %v", p, v, u, is, e)
				}
			}
		}
		if len(at) > 0 {
			t.Fatalf("edges of what is not there: %v", at)
		}
	})
}
