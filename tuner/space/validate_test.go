package space_test

import (
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

func exampleSpace(t testing.TB) *space.Space {
	return mustNew(t, space.NewFloat("lr", 1e-5, 1).WithScale(space.Log), space.NewCategorical("opt", space.String("sgd"), space.String("adam"), space.Bool(true)),
		space.NewFloat("m", 0, 1).WithStep(space.Float(0.1)).Given("opt", space.String("sgd")), space.NewInt("n", 1, 64).WithStep(space.Int(3)), space.NewConstant("seed", space.Int(17)))
}

func assign(pairs ...any) space.Config {
	var list []space.Assignment
	for i := 0; i < len(pairs); i += 2 {
		var v space.Value
		switch x := pairs[i+1].(type) {
		case float64:
			v = space.Float(x)
		case int:
			v = space.Int(int64(x))
		case string:
			v = space.String(x)
		case bool:
			v = space.Bool(x)
		}
		list = append(list, space.Assignment{Name: pairs[i].(string), Value: v})
	}
	return space.NewConfig(list...)
}

func TestValidateMessages(t *testing.T) {
	s := exampleSpace(t)
	for _, c := range []struct {
		config space.Config
		want   string
	}{
		{assign("lr", 0.1, "opt", "sgd", "m", 0.3, "n", 4, "seed", 17), ""},
		{assign("lr", 0.1, "opt", true, "n", 4, "seed", 17), ""},
		{assign("lr", 0.1, "opt", "adam", "m", 0.3, "n", 4, "seed", 17), `parameter "m" = 0.3: the parameter is inactive here; leave it out: it is active only when opt is "sgd"`},
		{assign("opt", "adam", "n", 4, "seed", 17), `parameter "lr": the parameter is active and has no value; add it`},
		{assign("lr", 0.1, "opt", "adam", "n", 4), `parameter "seed": the parameter is active and has no value`},
		{assign("lr", 0.1, "opt", "adam", "n", 4, "seed", 18), `parameter "seed" = 18: the parameter is the constant 17`},
		{assign("lr", 2.0, "opt", "adam", "n", 4, "seed", 17), `parameter "lr" = 2: outside 1e-5 … 1`},
		{assign("lr", 1, "opt", "adam", "n", 4, "seed", 17), `parameter "lr" = 1: must be a float, not an int`},
		{assign("lr", "x", "opt", "adam", "n", 4, "seed", 17), `must be a float, not a string`},
		{assign("lr", math.NaN(), "opt", "adam", "n", 4, "seed", 17), `parameter "lr" = NaN: a number must be finite`},
		{assign("lr", 0.1, "opt", "Adam", "n", 4, "seed", 17), `not one of the values; did you mean "adam"?`},
		{assign("lr", 0.1, "opt", "true", "n", 4, "seed", 17), `use the bool true`},
		{assign("lr", 0.1, "opt", "zzzzzz", "n", 4, "seed", 17), `use one of "sgd", "adam", true`},
		{assign("lr", 0.1, "opt", "sgd", "m", 0.35, "n", 5, "seed", 17), `parameter "m" = 0.35: off the grid 0 + k·0.1; use 0.`},
		{assign("lr", 0.1, "opt", "adam", "n", 5, "seed", 17), `parameter "n" = 5: off the grid 1 + k·3; use 4 or 7`},
		{assign("lr", 0.1, "opt", "adam", "n", 4, "seed", 17, "sed", 1), `parameter "sed" = 1: there is no such parameter; did you mean "seed"?`},
	} {
		err := s.Validate(c.config)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %s", c.config, err, c.want)
		}
		if encoded := s.Encode(c.config, make([]float64, s.Dim())); (encoded == nil) != (err == nil) {
			t.Errorf("%v: Validate %v, Encode %v", c.config, err, encoded)
		}
	}
}

func TestComplete(t *testing.T) {
	s := exampleSpace(t)
	for _, c := range []struct{ given, want space.Config }{
		{assign("lr", 1, "opt", "adam", "n", 4.0), assign("lr", 1.0, "opt", "adam", "n", 4, "seed", 17)},
		{assign("lr", "1e-3", "opt", "true", "n", "7"), assign("lr", 1e-3, "opt", true, "n", 7, "seed", 17)},
		{assign("lr", 0.5, "opt", "sgd", "m", 0.1+0.2, "n", 1), assign("lr", 0.5, "opt", "sgd", "m", 0.3, "n", 1, "seed", 17)},
		{assign("lr", 0.5, "opt", "sgd", "m", "0.30000000000000004", "n", 1), assign("lr", 0.5, "opt", "sgd", "m", 0.3, "n", 1, "seed", 17)},
	} {
		if got, err := s.Complete(c.given); err != nil || !got.Equal(c.want) {
			t.Errorf("%v: %v, %v", c.given, got, err)
		}
	}
	for _, c := range []struct {
		given space.Config
		want  string
	}{
		{assign("lr", 10, "opt", "adam", "n", 4), `parameter "lr" = 10: outside 1e-5 … 1`},
		{assign("lr", 0.5, "opt", "adam", "n", 100.0), `parameter "n" = 100: outside 1 … `},
		{assign("lr", 0.5, "opt", "adam", "n", 4.5), `parameter "n" = 4.5: must be an int, not a float`},
	} {
		if _, err := s.Complete(c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.given, err, c.want)
		}
	}
	for _, bad := range []space.Config{
		assign("lr", "1_0", "opt", "adam", "n", 4), assign("lr", 0.5, "opt", "adam", "n", 4.5), assign("lr", 0.5, "opt", "adam", "m", 0.5, "n", 4),
		assign("lr", 0.5, "opt", "sgd", "m", 0.34, "n", 4), assign("opt", "adam", "n", 4), assign("lr", 0.5, "opt", "adam", "n", 4, "x", 1), assign("lr", true, "opt", "adam", "n", 4),
	} {
		if got, err := s.Complete(bad); err == nil || len(space.Faults(err)) == 0 {
			t.Errorf("%v became %v, %v", bad, got, err)
		}
	}
}

func TestConfigJSON(t *testing.T) {
	s := exampleSpace(t)
	if text, err := assign("lr", 1.0, "n", 4, "opt", "a<b", "x", true).MarshalJSON(); err != nil || string(text) != `{"lr":1.0,"n":4,"opt":"a<b","x":true}` {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := assign("lr", math.Inf(1)).MarshalJSON(); err == nil {
		t.Error("wrote an infinity")
	}
	if c, err := s.ParseConfig([]byte(`{"lr":1,"opt":"adam","n":64.0,"seed":17}`)); err != nil || !c.Equal(assign("lr", 1.0, "opt", "adam", "n", 64, "seed", 17)) {
		t.Errorf("%v, %v", c, err)
	}
	for text, want := range map[string]string{
		`{"lr":1,"lr":1}`: "there twice", `{"lr":1,"LR":1}`: "only in case", `{"lr":null}`: "null is not a value", `{"lr":{}}`: "must be a single value, not a mapping", `[]`: "not a list", `{"lr":1`: "not valid JSON",
		`{"lr":1,"opt":"adam","n":64}`: `"seed"`, `{"lr":"1","opt":"adam","n":64,"seed":17}`: "not a string", `{"lr":1e999}`: "too large", "{\"\xff\":1}": "UTF-8", ``: "not valid JSON", `{}{}`: "not valid JSON",
	} {
		if c, err := s.ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", text, c, err, want)
		}
	}
}

func TestCubeErrors(t *testing.T) {
	s := exampleSpace(t)
	for _, u := range [][]float64{nil, {0, 0, 0}, {0, 0, 0, math.NaN()}, {math.Inf(1), 0, 0, 0}} {
		if _, err := s.Decode(u); err == nil {
			t.Errorf("decoded %v", u)
		}
	}
	inside, _ := s.Decode([]float64{1, 0, 1, 0})
	outside, err := s.Decode([]float64{1.5, -7, 2, -1e-300})
	if err != nil || !inside.Equal(outside) {
		t.Errorf("clamped to %v, %v", outside, err)
	}
}

func TestEmptySpace(t *testing.T) {
	var zero space.Space
	for _, s := range []*space.Space{&zero, mustNew(t)} {
		c, err := s.Decode(nil)
		if err != nil || c.Len() != 0 || s.Encode(c, nil) != nil || s.Cardinality() != 1 || s.Dim() != 0 || s.Validate(c) != nil {
			t.Errorf("%v, %v, %v", c, err, s.Cardinality())
		}
		back, _, err := space.Parse(s.YAML())
		if err != nil || !back.Equal(s) {
			t.Errorf("%s: %v", s.YAML(), err)
		}
	}
}

func TestCardinality(t *testing.T) {
	a := space.NewInt("a", 1, 3)
	for _, c := range []struct {
		want float64
		list []space.Parameter
	}{
		{3, []space.Parameter{a}},
		{math.Inf(1), []space.Parameter{a, space.NewFloat("x", 0, 1)}},
		{33, []space.Parameter{a, space.NewFloat("x", 0, 1).WithStep(space.Float(0.1))}},
		{2 + 2, []space.Parameter{a, space.NewBool("b").Given("a", space.Int(2))}},
		{1, []space.Parameter{space.NewConstant("c", space.Int(1)), space.NewFloat("x", 2, 2)}},
		{1 << 62, []space.Parameter{space.NewInt("a", 1, 1<<62)}},
		{0x1p64, []space.Parameter{space.NewInt("a", math.MinInt64, math.MaxInt64)}},
	} {
		if got := mustNew(t, c.list...).Cardinality(); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

func TestConfigNumber(t *testing.T) {
	c := space.NewConfig(
		space.Assignment{Name: "lr", Value: space.Float(0.5)}, space.Assignment{Name: "n", Value: space.Int(3)},
		space.Assignment{Name: "kind", Value: space.String("a")},
	)
	if c.Number("lr") != 0.5 || c.Number("n") != 3 {
		t.Errorf("lr = %v, n = %v", c.Number("lr"), c.Number("n"))
	}
	for _, name := range []string{"kind", "other"} {
		if x := c.Number(name); x == x {
			t.Errorf("%s = %v, want NaN", name, x)
		}
	}
}
