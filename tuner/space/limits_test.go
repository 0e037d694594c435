package space_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Every limit allows its value and not one more.
func TestLimits(t *testing.T) {
	parameters := func(n int) (list []space.Parameter) {
		for i := range n {
			list = append(list, space.NewInt(fmt.Sprint("p", i), 0, 1))
		}
		return list
	}
	values := func(n int) (list []space.Value) {
		for i := range n {
			list = append(list, space.Int(int64(i)))
		}
		return list
	}
	chain := func(depth int) []space.Parameter {
		list := parameters(depth + 1)
		for i := range depth {
			list[i+1] = list[i+1].Given(list[i].Name, space.Int(1))
		}
		return list
	}
	one := func(p space.Parameter) []space.Parameter { return []space.Parameter{p} }
	for _, c := range []struct {
		name  string
		limit int
		make  func(n int) []space.Parameter
	}{
		{"parameters", space.MaxParameters, parameters},
		{"name", space.MaxNameBytes, func(n int) []space.Parameter { return one(space.NewBool(strings.Repeat("n", n))) }},
		{"values", space.MaxValues, func(n int) []space.Parameter { return one(space.NewCategorical("c", values(n)...)) }},
		{"text", space.MaxTextBytes, func(n int) []space.Parameter {
			return one(space.NewConstant("c", space.String(strings.Repeat("x", n))))
		}},
		{"condition depth", space.MaxConditionDepth, chain},
		{"condition values", space.MaxValues, func(n int) []space.Parameter {
			return []space.Parameter{space.NewInt("a", 0, 1<<20), space.NewBool("b").Given("a", values(n)...)}
		}},
		{"grid points", 1e15, func(n int) []space.Parameter {
			return one(space.NewFloat("g", 0, float64(n-1)).WithStep(space.Float(1)))
		}},
	} {
		if _, err := space.New(c.make(c.limit)...); err != nil {
			t.Errorf("%s at the limit: %v", c.name, err)
		}
		if _, err := space.New(c.make(c.limit + 1)...); len(space.Faults(err)) == 0 {
			t.Errorf("%s beyond the limit: %v", c.name, err)
		}
	}
}

func TestFileLimits(t *testing.T) {
	padded := func(n int) []byte {
		const file = `{"version":1,"parameters":{}}`
		return []byte(file + strings.Repeat(" ", n-len(file)))
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	items := func(n int) []byte { return []byte("[" + strings.Repeat("1,", n-2) + "1]") }
	for _, c := range []struct {
		name, rule string
		limit      int
		make       func(int) []byte
	}{
		{"bytes", "a space file has at most", space.MaxFileBytes, padded},
		{"depth", "are nested at most", space.MaxFileDepth, deep},
		{"YAML marks", "a YAML file has at most", space.MaxYAMLMarks, func(n int) []byte { return []byte("a" + strings.Repeat("\n", n)) }},
		{"items", "a file has at most", space.MaxFileItems, items},
	} {
		if _, _, err := space.Parse(c.make(c.limit)); err != nil && strings.Contains(err.Error(), c.rule) {
			t.Errorf("%s at the limit: %v", c.name, err)
		}
		if _, _, err := space.Parse(c.make(c.limit + 1)); err == nil || !strings.Contains(err.Error(), c.rule) {
			t.Errorf("%s beyond the limit: %.200v", c.name, err)
		}
	}
}

// Every one of ten thousand categories round-trips.
func TestManyCategories(t *testing.T) {
	var values []space.Value
	for i := range space.MaxValues {
		values = append(values, space.String(fmt.Sprint("c", i)))
	}
	s := mustNew(t, space.NewCategorical("c", values...))
	u := make([]float64, 1)
	for _, v := range values {
		c := space.NewConfig(space.Assignment{Name: "c", Value: v})
		if err := s.Encode(c, u); err != nil {
			t.Fatal(err)
		}
		if d, err := s.Decode(u); err != nil || !d.Equal(c) {
			t.Fatalf("%v became %v, %v", c, d, err)
		}
	}
}
