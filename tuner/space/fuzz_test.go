package space_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

// seedFiles adds the files of testdata/forms.
func seedFiles(f *testing.F) {
	f.Helper()
	paths, err := filepath.Glob("testdata/forms/*")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seed files: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzParse reads any bytes. Reading does not panic and fails only with typed errors.
// Accepted spaces can be written and read back equal.
func FuzzParse(f *testing.F) {
	seedFiles(f)
	for _, text := range hostileSmall() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := space.Parse(data)
		if err != nil {
			if len(space.Faults(err)) == 0 {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		text, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, own := range [][]byte{text, s.YAML()} {
			if len(own) > space.MaxYAMLMarks {
				continue
			}
			if back, _, err := space.Parse(own); err != nil || !back.Equal(s) {
				t.Fatalf("%q is written as %q: %v", data, own, err)
			}
		}
		if n := s.Cardinality(); !(n >= 1) {
			t.Fatalf("Cardinality() = %v", n)
		}
		roundTrip(t, s)
	})
}

// roundTrip checks the ends and the middle of the cube.
func roundTrip(t *testing.T, s *space.Space) {
	t.Helper()
	u, v := make([]float64, s.Dim()), make([]float64, s.Dim())
	for _, at := range []float64{0, 0.3, 0.5, 1} {
		for i := range u {
			u[i] = at
		}
		c, err := s.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Encode(c, v); err != nil {
			t.Fatal(err)
		}
		if d, err := s.Decode(v); err != nil || !d.Equal(c) {
			t.Fatalf("%v became %v, %v", c, d, err)
		}
	}
}

// FuzzConfig reads any bytes as a configuration. Reading does not panic. Accepted
// configurations are valid and survive JSON.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{`{}`, `{"lr":0.01,"opt":"sgd","m":0.5,"n":3,"seed":17}`, `{"lr":1e-2,"lr":2}`, `{"lr":1e400}`, `{"n":3.0}`, `{"n":null}`, `[1]`, `{"a":{"b":[]}}`, `{"\ud800":1}`, `{"lr":"0.3"}`, `{"LR":1,"lr":1}`} {
		f.Add([]byte(text))
	}
	s := mustNew(f, space.NewFloat("lr", 1e-5, 1).WithScale(space.Log), space.NewCategorical("opt", space.String("sgd"), space.Bool(true), space.Float(0.5)),
		space.NewFloat("m", 0, 1).WithStep(space.Float(0.1)).Given("opt", space.String("sgd")), space.NewInt("n", 1, 1<<62), space.NewConstant("seed", space.Int(17)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c space.Config
		if err := c.UnmarshalJSON(data); err != nil {
			return
		}
		text, err := c.MarshalJSON()
		var back space.Config
		if err != nil || back.UnmarshalJSON(text) != nil || !back.Equal(c) {
			t.Fatalf("%q is written as %s, %v", data, text, err)
		}
		for _, read := range []func() (space.Config, error){func() (space.Config, error) { return s.ParseConfig(data) }, func() (space.Config, error) { return s.Complete(c) }} {
			got, err := read()
			if err == nil {
				err = s.Validate(got)
			} else if len(space.Faults(err)) > 0 {
				continue
			}
			if err != nil {
				t.Fatalf("%q: %v", data, err)
			}
		}
	})
}

// FuzzDecode decodes any coordinate of any range. The result is a valid value that
// round-trips, or a typed error.
func FuzzDecode(f *testing.F) {
	f.Add(0.0, 1.0, 0.1, 0.5, byte(0))
	f.Add(1e-300, 1e300, 0.0, 0.999, byte(1))
	f.Add(-math.MaxFloat64, math.MaxFloat64, 0.0, 1.0, byte(0))
	f.Add(5e-324, 1.0, 0.0, math.NaN(), byte(2))
	f.Add(1.0, 9e18, 7.0, 0.3, byte(4))
	f.Fuzz(func(t *testing.T, low, high, step, u float64, kind byte) {
		p := space.NewFloat("p", low, high)
		if kind >= 3 {
			p = space.NewInt("p", int64(low), int64(high))
		}
		p.Scale = space.Scale(kind % 3)
		if step != 0 && p.Type == space.TypeFloat {
			p.Step = space.Float(step)
		} else if step != 0 {
			p.Step = space.Int(int64(step))
		}
		s, err := space.New(p)
		if err != nil {
			if len(space.Faults(err)) == 0 {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		c, err := s.Decode([]float64{u})
		if err != nil {
			var cube *space.CubeError
			if !errors.As(err, &cube) || !math.IsNaN(u) && !math.IsInf(u, 0) {
				t.Fatalf("Decode(%v): %v", u, err)
			}
			return
		}
		back, err := s.Round(c)
		if err != nil || !back.Equal(c) {
			t.Fatalf("%+v: %v became %v, %v", p, c, back, err)
		}
		space.Lint(s)
	})
}

func mustNew(t testing.TB, list ...space.Parameter) *space.Space {
	t.Helper()
	s, err := space.New(list...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
