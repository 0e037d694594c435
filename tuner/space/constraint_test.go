package space

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
)

// constrainedParameters has all types, scales and a condition.
const constrainedParameters = `parameters:
  a: {type: float, low: 0, high: 1}
  b: {type: float, low: 0, high: 1}
  c: {type: float, low: 0, high: 1}
  lr: {type: float, low: 1e-5, high: 1, scale: log}
  step: {type: float, low: 0, high: 2, step: 0.25}
  m: {type: int, low: 0, high: 10}
  n: {type: int, low: 0, high: 10}
  k: {type: int, low: 0, high: 10}
  wide: {type: int, low: 1, high: 4096, scale: log}
  size: {type: ordinal, values: [16, 32, 64]}
  kernel: {type: categorical, values: [rbf, "poly 2", lin]}
  other: {type: categorical, values: [rbf, lin]}
  deep: {type: categorical, values: [false, true]}
  depth: {type: int, low: 1, high: 8, when: {deep: true}}
  "learning-rate": {type: float, low: 0, high: 1}
  fixed: {type: constant, value: 5}
`

func constrained(t testing.TB, constraints ...string) *Space {
	t.Helper()
	s, _, err := Parse([]byte(constrainedParameters))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Constrain(constraints...); err != nil {
		t.Fatal(err)
	}
	return s
}

// oracles are constraints with what they mean, written apart from the reader of constraints.
var oracles = []struct {
	text  string
	keeps func(c Config) bool
}{
	{"a <= b", func(c Config) bool { return c.Number("a") <= c.Number("b") }},
	{"a < b < c", func(c Config) bool { return c.Number("a") < c.Number("b") && c.Number("b") < c.Number("c") }},
	{"not a <= b <= c", func(c Config) bool { return c.Number("a") > c.Number("b") || c.Number("b") > c.Number("c") }},
	{"a + 2*b <= 1.5", func(c Config) bool { return c.Number("a")+2*c.Number("b") <= 1.5 }},
	{"-(a - b)*2 >= -.5 + c/2", func(c Config) bool { return -(c.Number("a")-c.Number("b"))*2 >= -0.5+c.Number("c")/2 }},
	{"a - b - c >= -0.5", func(c Config) bool { return c.Number("a")-c.Number("b")-c.Number("c") >= -0.5 }},
	{"m + n != 10", func(c Config) bool { return c.Number("m")+c.Number("n") != 10 }},
	{"m == n", func(c Config) bool { return c.Number("m") == c.Number("n") }},
	{"wide * size <= 4096", func(c Config) bool { return c.Number("wide")*sizeOf(c) <= 4096 }},
	{"lr > 1e-3 or `learning-rate` < 0.5", func(c Config) bool { return c.Number("lr") > 1e-3 || c.Number("learning-rate") < 0.5 }},
	{`not (kernel == "poly 2" and m > 3)`, func(c Config) bool { return !(textOf(c, "kernel") == "poly 2" && c.Number("m") > 3) }},
	{`kernel != 'rbf' && (m < 5 || n < 5)`, func(c Config) bool { return textOf(c, "kernel") != "rbf" && (c.Number("m") < 5 || c.Number("n") < 5) }},
	{`kernel == other or !deep`, func(c Config) bool { return textOf(c, "kernel") == textOf(c, "other") || !boolOf(c) }},
	{"(deep) or a > 0.5", func(c Config) bool { return boolOf(c) || c.Number("a") > 0.5 }},
	{"deep == false or size >= 32", func(c Config) bool { return !boolOf(c) || sizeOf(c) >= 32 }},
	{"depth <= m", func(c Config) bool { return math.IsNaN(c.Number("depth")) || c.Number("depth") <= c.Number("m") }},
	{"m <= fixed", func(c Config) bool { return c.Number("m") <= 5 }},
	{"step ≥ 1 and not (m = 3 or n = 3)", func(c Config) bool { return c.Number("step") >= 1 && c.Number("m") != 3 && c.Number("n") != 3 }},
}

func sizeOf(c Config) float64 { return c.Number("size") }

func textOf(c Config, name string) string {
	v, _ := c.Get(name)
	return v.String()
}

func boolOf(c Config) bool {
	v, _ := c.Get("deep")
	b, _ := v.AsBool()
	return b
}

func uniform(d int, float func() float64) []float64 {
	u := make([]float64, d)
	for j := range u {
		u[j] = float()
	}
	return u
}

// Validate agrees with the oracle of each constraint. Decode returns what keeps it. That is
// the configuration of the free space where it keeps the constraint. Inside agrees.
func TestConstraintsMeanWhatTheySay(t *testing.T) {
	for _, o := range oracles {
		s := constrained(t, o.text)
		free := s.Free()
		rng := stream.New(1)
		kept := 0
		const n = 2000
		for range n {
			u := uniform(s.Dim(), rng.Float64)
			c, err := free.Decode(u)
			if err != nil {
				t.Fatal(err)
			}
			keeps := o.keeps(c)
			if err := s.Validate(c); (err == nil) != keeps {
				t.Fatalf("%s: %s is %v, and the oracle says %t", o.text, c, err, keeps)
			}
			if err := s.Encode(c, make([]float64, s.Dim())); (err == nil) != keeps {
				t.Fatalf("%s: encoding %s: %v", o.text, c, err)
			}
			d := decodes(t, s, u)
			if keeps && !d.Equal(c) || !o.keeps(d) {
				t.Fatalf("%s: decoded %s, in the free space %s", o.text, d, c)
			}
			if _, ok, err := s.Inside(u); err != nil || ok && !keeps && !strings.Contains(o.text, "==") {
				t.Fatalf("%s: inside %t, %v", o.text, ok, err)
			}
			if keeps {
				kept++
			}
		}
		if kept == 0 || kept == n {
			t.Errorf("%s: %d of %d keep it, so the test says little", o.text, kept, n)
		}
		if share := s.Share(); !strings.Contains(o.text, "m == n") && math.Abs(share-float64(kept)/n) > 0.06 {
			t.Errorf("%s: share %v, counted %v", o.text, share, float64(kept)/n)
		}
	}
}

// decodes returns the configuration at u, and checks that it is valid, that its encoding
// decodes to it, and that Snap agrees.
func decodes(t *testing.T, s *Space, u []float64) Config {
	t.Helper()
	c, err := s.Decode(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(c); err != nil {
		t.Fatalf("decoded %v: %v", u, err)
	}
	v := make([]float64, s.Dim())
	if err := s.Encode(c, v); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Decode(v); err != nil || !again.Equal(c) {
		t.Fatalf("%s came back as %s, %v", c, again, err)
	}
	w := slices.Clone(u)
	if err := s.Snap(w); err != nil || !slices.Equal(w, v) {
		t.Fatalf("snapped to %v, %v, and the encoding is %v", w, err, v)
	}
	return c
}

// Several constraints together are kept everywhere, however odd their region.
func TestConstraintsTogether(t *testing.T) {
	for _, constraints := range [][]string{
		{"a <= b", "b <= c"},
		{"a + b + c == 1"},
		{"a + b + c = 1", "a <= b", "c >= 0.2"},
		{"m + n + k = 12"},
		{"m + n + k = 12", "m <= n", "n <= k"},
		{"a + b = 1", "b + c = 1"},
		{"a + b + step == 2.5"},
		{"2*m + 3*n = 17"},
		{"wide * size <= 64", "lr <= 1e-4"},
		{`not (kernel == "rbf" or kernel == "lin")`, "a*b <= 0.01"},
		{"depth = 3", "m != n"},
		{"a - b = 0", "lr + a <= 0.3"},
		{"a <= 0.001"},
		{"a + b >= 1.99", "c > 0.99 or m == 7"},
	} {
		s := constrained(t, constraints...)
		rng, points := stream.New(2), racetest.Size(150, 450)
		different := make(map[string]bool)
		for i := range points {
			u := uniform(s.Dim(), rng.Float64)
			if i%3 == 0 { // corners, where searches often are
				for j := range u {
					u[j] = math.Round(u[j])
				}
			}
			different[decodes(t, s, u).String()] = true
		}
		if len(different) < points*2/3 {
			t.Errorf("%q: only %d different configurations of %d points", constraints, len(different), points)
		}
	}
}

// Equations hold exactly between integers and to rounding of the values between floats, on
// wide ranges too. Each is checked by math/big, from the texts of the values.
func TestEquationsOnWideRanges(t *testing.T) {
	const (
		logs     = "a: {type: float, low: 1e-6, high: 1e6, scale: log}\n  b: {type: float, low: 1e-6, high: 1e6, scale: log}"
		lines    = "a: {type: float, low: 0, high: 1e6}\n  b: {type: float, low: 0, high: 1e6}"
		signed   = "a: {type: float, low: -1, high: 1}\n  b: {type: float, low: -1, high: 1}"
		powers   = "a: {type: int, low: 1, high: 4096, scale: log}\n  b: {type: int, low: 1, high: 4096, scale: log}\n  c: {type: int, low: 1, high: 4096, scale: log}"
		counts   = "a: {type: int, low: 0, high: 100000}\n  b: {type: int, low: 0, high: 100000}"
		negative = "a: {type: int, low: -50, high: 50}\n  b: {type: int, low: -50, high: 50}\n  c: {type: ordinal, values: [2, 3, 5]}"
		huge     = "a: {type: int, low: 9007199254740992, high: 9007199254740999}\n  b: {type: int, low: 9007199254740992, high: 9007199254740999}"
		vast     = "a: {type: int, low: 0, high: 9000000000000000000}\n  b: {type: int, low: 0, high: 9000000000000000000}"
		mixed    = "a: {type: int, low: 1, high: 1000}\n  b: {type: float, low: 1e-4, high: 100, scale: log}"
	)
	type oracle func(a, b, c *big.Rat) (left, right *big.Rat)
	product := func(a, b, c *big.Rat) *big.Rat { return new(big.Rat).Mul(a, new(big.Rat).Mul(b, c)) }
	number := func(text string) *big.Rat { r, _ := new(big.Rat).SetString(text); return r }
	one := number("1")
	for _, e := range []struct {
		parameters, text string
		sides            oracle
		exact            bool
		least            int // different configurations of 300
	}{
		{logs, "a * b == 1", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, b, one), one }, false, 250},
		{logs, "a == b", func(a, b, _ *big.Rat) (l, r *big.Rat) { return a, b }, false, 250},
		{logs, "a == 1e-3", func(a, _, _ *big.Rat) (l, r *big.Rat) { return a, number("1e-3") }, false, 250},
		{logs, "a / b == 3", func(a, b, _ *big.Rat) (l, r *big.Rat) { return new(big.Rat).Quo(a, b), number("3") }, false, 250},
		{logs, "a * a == b", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, a, one), b }, false, 200},
		{logs, "a * a * a == 8 and b <= 5", func(a, _, _ *big.Rat) (l, r *big.Rat) { return product(a, a, a), number("8") }, false, 100},
		{lines, "a * b == 1000", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, b, one), number("1000") }, false, 250},
		{signed, "a + 3*b == 0", func(a, b, _ *big.Rat) (l, r *big.Rat) { return a, product(number("-3"), b, one) }, false, 250},
		{powers, "a * b * c == 4096", func(a, b, c *big.Rat) (l, r *big.Rat) { return product(a, b, c), number("4096") }, true, 60},
		{powers, "a * b == 2 * c", func(a, b, c *big.Rat) (l, r *big.Rat) { return product(a, b, one), product(c, number("2"), one) }, true, 100},
		{powers, "a / b == 4", func(a, b, _ *big.Rat) (l, r *big.Rat) { return a, product(b, number("4"), one) }, true, 200},
		{counts, "a * b == 99991", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, b, one), number("99991") }, true, 2},
		{counts, "a * b == 65536", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, b, one), number("65536") }, true, 10},
		{counts, "a * b / 2 == 30000 and a != 60000", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, b, one), number("60000") }, true, 5},
		{counts, "a * (1/3) == b", func(a, b, _ *big.Rat) (l, r *big.Rat) { return a, product(b, number("3"), one) }, true, 200},
		{negative, "a * b * c == -60", func(a, b, c *big.Rat) (l, r *big.Rat) { return product(a, b, c), number("-60") }, true, 15},
		{huge, "a == b", func(a, b, _ *big.Rat) (l, r *big.Rat) { return a, b }, true, 8},
		{vast, "a + b == 9000000000000000001", func(a, b, _ *big.Rat) (l, r *big.Rat) { return new(big.Rat).Add(a, b), number("9000000000000000001") }, true, 250},
		{vast, "a == b", func(a, b, _ *big.Rat) (l, r *big.Rat) { return a, b }, true, 250},
		{mixed, "a * b == 7", func(a, b, _ *big.Rat) (l, r *big.Rat) { return product(a, b, one), number("7") }, false, 200},
	} {
		s, _, err := Parse([]byte("parameters:\n  " + e.parameters + "\nconstraints: ['" + e.text + "']\n"))
		if err != nil {
			t.Errorf("%s: %v", e.text, err)
			continue
		}
		rng := stream.New(7)
		different := make(map[string]bool)
		for range 300 {
			c := decodes(t, s, uniform(s.Dim(), rng.Float64))
			different[c.String()] = true
			read := func(name string) *big.Rat {
				v, _ := c.Get(name)
				return number(v.String())
			}
			left, right := e.sides(read("a"), read("b"), read("c"))
			gap, _ := new(big.Rat).Sub(left, right).Float64()
			size, _ := new(big.Rat).Add(left, right).Float64()
			if e.exact && gap != 0 || math.Abs(gap) > 4e-9*math.Abs(size) {
				t.Fatalf("%s: %s differs by %v", e.text, c, gap)
			}
		}
		if len(different) < e.least {
			t.Errorf("%s: %d different configurations of 300, want %d", e.text, len(different), e.least)
		}
	}
}

// Comparisons of integers are exact where float64 is not.
func TestComparisonsOfLargeIntegers(t *testing.T) {
	s, _, err := Parse([]byte("parameters:\n  a: {type: int, low: 0, high: 9007199254740999}\n  b: {type: int, low: 0, high: 9007199254740999}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 9007199254740993 // 2⁵³ + 1
	for _, e := range []struct {
		text  string
		a, b  int64
		keeps bool
	}{
		{"a == b", n, n - 1, false},
		{"a == b", 5, 6, false},
		{"a == b", n, n, true},
		{"a != b", n, n - 1, true},
		{"a != b", 5, 6, true},
		{"a <= b", n, n - 1, false},
		{"a < b", n - 1, n, true},
		{"a > b", n, n - 1, true},
		{"a - b == 1", n, n - 1, true},
		{"a == 0.1 * b", 3, 30, true},
		{"a == 0.1 * b", 3, 31, false},
		{"2 * a == 2 * b + 1", n, n, false},
		{"a == 9007199254740993", n, 0, true},
		{"a == 9007199254740993", n - 1, 0, false},
		{"a != 9007199254740993", n, 0, false},
		{"a < 9007199254740993", n - 1, 0, true},
		{"a < 9007199254740993", n, 0, false},
		{"-a == -9007199254740993", n, 0, true},
		{"-a == -9007199254740993", n - 1, 0, false},
		{"a == 9.007199254740993e15", n, 0, true},
		{"a - b == 9007199254740993 - 9007199254740992", n, n - 1, true},
	} {
		c := NewConfig(Assignment{"a", Int(e.a)}, Assignment{"b", Int(e.b)})
		constrained, err := s.Constrain(e.text)
		if err != nil {
			if e.text == "2 * a == 2 * b + 1" {
				continue // has no solution, and says so
			}
			t.Errorf("%s: %v", e.text, err)
			continue
		}
		if err := constrained.Validate(c); (err == nil) != e.keeps {
			t.Errorf("%s with %v: %v, want %t", e.text, c, err, e.keeps)
		}
	}
}

// Points that are just outside move to the nearest point of the constraint.
func TestNearestOfConstraint(t *testing.T) {
	s := constrained(t, "a + 2*b <= 1.5")
	i, _ := s.Coordinate("a")
	j, _ := s.Coordinate("b")
	u := slices.Repeat([]float64{0.5}, s.Dim())
	u[i], u[j] = 0.5, 0.52
	c, err := s.Decode(u)
	if err != nil {
		t.Fatal(err)
	}
	// (0.04/5)·(1, 2) away along the normal
	if a, b := c.Number("a"), c.Number("b"); math.Abs(a-0.492) > 1e-8 || math.Abs(b-0.504) > 1e-8 {
		t.Errorf("a = %v, b = %v, want 0.492 and 0.504", a, b)
	}
	s = constrained(t, "a + b + c = 1")
	k, _ := s.Coordinate("c")
	u[i], u[j], u[k] = 0.33, 0.33, 0.31
	if c, err = s.Decode(u); err != nil || math.Abs(c.Number("a")-0.34) > 1e-8 || math.Abs(c.Number("c")-0.32) > 1e-8 {
		t.Errorf("%s, %v", c, err)
	}
}

// Inside draws uniformly. Sorted parameters have the means of order statistics, and parts of
// 1 have those of a flat Dirichlet distribution.
func TestInsideIsUniform(t *testing.T) {
	const samples = 8_000
	sample := func(constraint string) (out []Config) {
		t.Helper()
		s, rng := constrained(t, constraint), stream.New(5)
		for len(out) < samples {
			c, ok, err := s.Inside(uniform(s.Dim(), rng.Float64))
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				out = append(out, c)
			}
		}
		return out
	}
	ordered, parts := sample("a <= b <= c"), sample("a + b + c = 1")
	for _, e := range []struct {
		what  string
		of    []Config
		value func(c Config) float64
		want  float64
	}{
		{"least", ordered, func(c Config) float64 { return c.Number("a") }, 0.25},
		{"largest", ordered, func(c Config) float64 { return c.Number("c") }, 0.75},
		{"part", parts, func(c Config) float64 { return c.Number("a") }, 1.0 / 3},
		{"determined part", parts, func(c Config) float64 { return c.Number("c") }, 1.0 / 3},
		{"square of a part", parts, func(c Config) float64 { return c.Number("b") * c.Number("b") }, 1.0 / 6},
	} {
		got := 0.0
		for _, c := range e.of {
			got += e.value(c) / samples
		}
		if math.Abs(got-e.want) > 0.01 {
			t.Errorf("%s: mean %v, want %v", e.what, got, e.want)
		}
	}
}

func TestFaultyConstraints(t *testing.T) {
	s := constrained(t)
	for text, want := range map[string]string{
		"a <= d":            `constraints[0] = "a <= d": there is no parameter "d" (column 6); the parameters are a, b,`,
		"kernle == 'rbf'":   `did you mean "kernel"?`,
		"a":                 "a constraint compares",
		"":                  `a parameter or a number is missing before "the end" (column 1)`,
		"a <=":              `a parameter or a number is missing before "the end" (column 5)`,
		"a <= b c":          "nothing may follow a complete comparison",
		"(a <= b":           "a parenthesis is not closed",
		"a <= (b + c":       "a parenthesis is not closed",
		"a <= b)":           "nothing may follow",
		"1 <= 2":            "a comparison needs a parameter",
		"a / b <= 1":        "the divisor can be 0 (column 3)",
		"a / 0 <= 1":        "the divisor can be 0",
		"kernel < 'rbf'":    "only numbers have an order",
		"kernel == 'rbv'":   `parameter "kernel" cannot be 'rbv'`,
		"kernel + 1 <= 2":   `parameter "kernel" has values that are not numbers (column 1)`,
		"1 + kernel <= 2":   `parameter "kernel" has values that are not numbers (column 5)`,
		"a + 'x' <= 1":      "'x' is not a number",
		"'x' == 'y'":        "a comparison needs a parameter",
		"kernel == \"rbf":   `the quote " is not closed`,
		"a ? b":             `"?" has no meaning here (column 3)`,
		"a <= 1e999":        "too large",
		"a <= 0x10":         "column 6",
		"a * 1e308*1e10>=b": "can be too large",
		"m * n == 13 * 17":  "no configuration keeps the constraint",
		"a >= 2":            `constraints[0] = "a >= 2": no configuration keeps the constraint, of 8192`,
		strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100) + " <= 1": "nested at most 64 deep",
		strings.Repeat("not ", 100) + "a <= 1":                              "nested at most 64 deep",
		"a <= " + strings.Repeat("1+", 4096) + "1":                          "at most 4096 bytes",
	} {
		_, err := s.Constrain(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
	if _, err := s.Constrain("a < b", "b < a"); err == nil || !strings.Contains(err.Error(), "constraints: no configuration keeps all constraints") {
		t.Errorf("contradiction: %v", err)
	}
	if _, err := s.Constrain(slices.Repeat([]string{"a <= b"}, 101)...); err == nil || !strings.Contains(err.Error(), "101 constraints: a space has at most 100") {
		t.Errorf("many: %v", err)
	}
	for text, want := range map[string]string{
		"constraints: a <= b\n":      "line 18: constraints = \"a <= b\": must be a list",
		"constraints: [1]\n":         "a constraint is a text",
		"constraints:\n  - a <= q\n": "line 19: constraints[0]",
		"constraint: [a <= b]\n":     "did you mean constraints?",
	} {
		if _, _, err := Parse([]byte(constrainedParameters + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A broken constraint is named with the values that break it.
func TestValidateNamesTheConstraint(t *testing.T) {
	s := constrained(t, "a <= b", "depth <= m")
	c, err := s.Decode(slices.Repeat([]float64{0.5}, s.Dim()))
	if err != nil {
		t.Fatal(err)
	}
	bad := NewConfig(append(c.entries, Assignment{"a", Float(0.75)})...)
	want := `a = 0.75, b = 0.5: breaks the constraint "a <= b"; choose values that keep it`
	for what, err := range map[string]error{
		"validate": s.Validate(bad),
		"encode":   s.Encode(bad, make([]float64, s.Dim())),
		"complete": func() error { _, err := s.Complete(bad); return err }(),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
}

// Constraints are written and read again, in YAML and in JSON. Spaces with other ones differ.
func TestConstraintsAreWritten(t *testing.T) {
	s := constrained(t, `not (kernel == "poly 2" and m > 3)`, "a <= b", `kernel != 'rbf'`)
	text, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{text, s.YAML()} {
		back, _, err := Parse(data)
		if err != nil || !back.Equal(s) || !slices.Equal(back.Constraints(), s.Constraints()) {
			t.Errorf("%s\n%v", data, err)
		}
	}
	if s.Equal(s.Free()) || s.Equal(constrained(t, "a <= b")) || len(s.Free().Constraints()) > 0 {
		t.Error("spaces with other constraints are equal")
	}
	if _, err := s.OptunaJSON(); err == nil || !strings.Contains(err.Error(), "Optuna's form has no constraints") {
		t.Errorf("to Optuna: %v", err)
	}
}

func TestLintOfConstraints(t *testing.T) {
	for _, e := range []struct {
		constraints []string
		want        []string
	}{
		{[]string{"a <= b"}, nil},
		{[]string{"a <= 2"}, []string{`the constraint "a <= 2" is kept by all of 4096 sampled configurations; remove it`}},
		{[]string{"a <= b", "b <= c", "a <= c"}, []string{`the constraint "a <= c" is kept by all of`}},
		{[]string{"a <= 0.003"}, []string{"the constraints keep about 0.2"}},
		{[]string{"a + b + c = 1"}, nil},
	} {
		var got []string
		for _, w := range Lint(constrained(t, e.constraints...)) {
			got = append(got, w.String())
		}
		if len(got) != len(e.want) {
			t.Errorf("%q: %q", e.constraints, got)
			continue
		}
		for i, want := range e.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%q: %s, want %s", e.constraints, got[i], want)
			}
		}
	}
}

// No text of a constraint makes the reader panic, and what it reads can be kept or not.
func FuzzConstraint(f *testing.F) {
	for _, o := range oracles {
		f.Add(o.text)
	}
	f.Add(`a <= ((b)) and not "x" == kernel`)
	f.Fuzz(func(t *testing.T, text string) {
		s := constrained(t)
		c, fault := s.readConstraint(text)
		if (c == nil) == (fault == nil) {
			t.Fatalf("%v, %v", c, fault)
		}
		if fault != nil {
			if fault.rule == "" || fault.at < 0 || fault.at > len(text) {
				t.Fatalf("%+v", fault)
			}
			return
		}
		values, x := make([]Value, s.Len()), make([]float64, s.Len())
		s.decode(slices.Repeat([]float64{0.3}, s.Dim()), values)
		numbers(values, x)
		_ = fmt.Sprint(c.holds(values, x), c.members(nil))
	})
}
