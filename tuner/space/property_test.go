package space_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
)

// drawPoint draws a point of the cube, with corners and edges more often than by chance.
func drawPoint(t *rapid.T, s *space.Space) []float64 {
	edge := rapid.SampledFrom([]float64{0, 1, 0.5, math.SmallestNonzeroFloat64, 0x1p-53, 1 - 0x1p-53})
	return rapid.SliceOfN(rapid.OneOf(edge, rapid.Float64Range(0, 1)), s.Dim(), s.Dim()).Draw(t, "u")
}

func decode(t *rapid.T, s *space.Space, u []float64) space.Config {
	c, err := s.Decode(u)
	if err != nil {
		t.Fatalf("Decode(%v): %v", u, err)
	}
	return c
}

func encode(t *rapid.T, s *space.Space, c space.Config) []float64 {
	u := make([]float64, s.Dim())
	if err := s.Encode(c, u); err != nil {
		t.Fatalf("Encode(%v): %v", c, err)
	}
	for i, x := range u {
		if !(0 <= x && x <= 1) {
			t.Fatalf("Encode(%v)[%d] = %v, outside the cube", c, i, x)
		}
	}
	return u
}

func sameBits(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// Decode∘Encode is the identity, bit for bit, on every configuration that Decode returns,
// for every kind of parameter and condition.
func TestDecodedConfigurationsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(6).Draw(t, "space")
		u := drawPoint(t, s)
		c := decode(t, s, u)
		if err := s.Validate(c); err != nil {
			t.Fatalf("Decode(%v) = %v, which is not valid: %v", u, c, err)
		}
		v := encode(t, s, c)
		if d := decode(t, s, v); !d.Equal(c) {
			t.Fatalf("%s\nu %v\ndecodes to %v\nencoded as %v\ndecodes to %v", s.YAML(), u, c, v, d)
		}
		if w := encode(t, s, decode(t, s, v)); !sameBits(v, w) {
			t.Fatalf("Encode∘Decode moves its own result from %v to %v", v, w)
		}
		if r, err := s.Round(c); err != nil || !r.Equal(c) {
			t.Fatalf("Round(%v) = %v, %v", c, r, err)
		}
		if err := s.Snap(u); err != nil || !sameBits(u, v) {
			t.Fatalf("Snap gives %v, %v; Encode∘Decode %v", u, err, v)
		}
	})
}

// Every legal configuration encodes, with any bits in its floats. Rounding it twice is the
// same as rounding it once.
func TestLegalConfigurationsEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(6).Draw(t, "space")
		c := spacetest.Configs(s).Draw(t, "config")
		if err := s.Validate(c); err != nil {
			t.Fatalf("Validate(%v): %v", c, err)
		}
		once := decode(t, s, encode(t, s, c))
		if twice := decode(t, s, encode(t, s, once)); !twice.Equal(once) {
			t.Fatalf("%s\n%v rounds to %v, and that to %v", s.YAML(), c, once, twice)
		}
		for name, v := range c.All() {
			p, _ := s.Lookup(name)
			if w, ok := once.Get(name); !ok || p.Type != space.TypeFloat && p.Type != space.TypeInt && v != w {
				t.Fatalf("%s: %v rounds to %v", name, v, w)
			}
		}
	})
}

// An inactive parameter is Neutral when encoded, and its coordinate is ignored
// when decoded.
func TestInactiveCoordinates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(8).Draw(t, "space")
		u := drawPoint(t, s)
		active := make([]bool, s.Dim())
		if err := s.ActiveAt(u, active); err != nil {
			t.Fatal(err)
		}
		c := decode(t, s, u)
		v := encode(t, s, c)
		w := append([]float64(nil), u...)
		for i, a := range s.Axes() {
			_, given := c.Get(a.Parameter)
			if given != active[i] || s.Active(c, a.Parameter) != active[i] {
				t.Fatalf("%s: ActiveAt %v, in the configuration %v, Active %v", a.Parameter, active[i], given, s.Active(c, a.Parameter))
			}
			if !active[i] {
				if v[i] != space.Neutral {
					t.Fatalf("%s is inactive and encoded as %v", a.Parameter, v[i])
				}
				w[i] = rapid.Float64Range(0, 1).Draw(t, "other")
			}
		}
		if d := decode(t, s, w); !d.Equal(c) {
			t.Fatalf("inactive coordinates changed %v to %v", c, d)
		}
	})
}

// Both writers write files that are read back as an equal space and written again with the
// same bytes.
func TestOwnFormRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(6).Draw(t, "space")
		asJSON, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{asJSON, s.YAML()} {
			back, _, err := space.Parse(text)
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			if !back.Equal(s) {
				t.Fatalf("%s\nis read as\n%s", text, back.YAML())
			}
			again, _ := back.MarshalJSON()
			if string(again) != string(asJSON) {
				t.Fatalf("%s\nis written as\n%s", asJSON, again)
			}
		}
		if again, err := space.New(s.Parameters()...); err != nil || !again.Equal(s) {
			t.Fatalf("New(Parameters()...): %v", err)
		}
	})
}

// Configurations survive JSON bit for bit, and also text as on a command line.
func TestConfigurationsRoundTripAsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(6).Draw(t, "space")
		c := spacetest.Configs(s).Draw(t, "config")
		text, err := c.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.ParseConfig(text); err != nil || !back.Equal(c) {
			t.Fatalf("%s is read as %v, %v", text, back, err)
		}
		var free space.Config
		if err := free.UnmarshalJSON(text); err != nil || !free.Equal(c) {
			t.Fatalf("without the space %s is read as %v, %v", text, free, err)
		}
		var typed []space.Assignment
		for name, v := range c.All() {
			if p, _ := s.Lookup(name); p.Type != space.TypeConstant {
				typed = append(typed, space.Assignment{Name: name, Value: space.String(v.String())})
			}
		}
		if back, err := s.Complete(space.NewConfig(typed...)); err != nil || !back.Equal(c) {
			t.Fatalf("typed as text, %v is read as %v, %v", c, back, err)
		}
	})
}

// Optuna's short form preserves all that it can express. Constants come back as
// categoricals of one choice.
func TestOptunaRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spacetest.Spaces(4).Draw(t, "space")
		text, err := s.OptunaJSON()
		if err != nil {
			if len(space.Faults(err)) == 0 {
				t.Fatalf("untyped error: %v", err)
			}
			t.Skip("not expressible")
		}
		back, _, err := space.ParseOptuna(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := s.Parameters()
		for i := range want {
			if want[i].Type == space.TypeConstant {
				want[i].Type = space.TypeCategorical
			}
			if got := back.Parameters()[i]; !got.Equal(want[i]) {
				t.Fatalf("%s: %+v came back as %+v", text, want[i], got)
			}
		}
	})
}

// Cardinality agrees with counting one by one.
func TestCardinalityCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []space.Parameter
		for i, n := range rapid.SliceOfN(rapid.IntRange(1, 3), 1, 6).Draw(t, "levels") {
			p := space.NewInt(string(rune('a'+i)), 1, int64(n))
			for k := range i {
				if rapid.IntRange(0, 2).Draw(t, "linked") == 0 {
					p = p.Given(list[k].Name, space.Int(rapid.Int64Range(1, mustInt(list[k].High)).Draw(t, "value")))
				}
			}
			list = append(list, p)
		}
		s, err := space.New(list...)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		u := make([]float64, s.Dim())
		var visit func(i int)
		visit = func(i int) {
			if i == len(u) {
				seen[decode(t, s, u).String()] = true
				return
			}
			n := s.Axes()[i].Levels
			for k := range n {
				u[i] = (float64(k) + 0.5) / float64(n)
				visit(i + 1)
			}
		}
		visit(0)
		if got := s.Cardinality(); got != float64(len(seen)) {
			t.Fatalf("Cardinality() = %v, counted %d in\n%s", got, len(seen), s.YAML())
		}
	})
}

func mustInt(v space.Value) int64 {
	n, _ := v.AsInt()
	return n
}
