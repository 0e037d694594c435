package space_test

import (
	"os"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

func TestForms(t *testing.T) {
	for file, want := range map[string]struct {
		form       space.Form
		parameters string
	}{
		"own.yaml":          {space.FormOwn, "lr batch width size optimizer momentum beta seed"},
		"conditions.json":   {space.FormOwn, "a b c"},
		"optuna-short.json": {space.FormOptunaShort, "lr x units layers act"},
		"optuna-long.json":  {space.FormOptunaLong, "lr n c u l q i"},
		"katib.yaml":        {space.FormKatib, "lr momentum layers batch optimizer"},
	} {
		data, err := os.ReadFile("testdata/forms/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if form, err := space.Detect(data); form != want.form || err != nil {
			t.Errorf("%s: detected %v, %v", file, form, err)
		}
		s, _, err := space.Parse(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var names []string
		for _, p := range s.Parameters() {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != want.parameters {
			t.Errorf("%s: parameters %s", file, got)
		}
	}
}

// Files of other programs are equal to these files in the own form.
func TestForeignForms(t *testing.T) {
	for _, c := range []struct{ foreign, own string }{
		{`{"x":{"type":"float","low":1,"high":8,"log":true,"step":null}}`, `x: {type: float, low: 1.0, high: 8.0, scale: log}`},
		{`{"x":{"type":"int","low":1,"high":8,"step":2}}`, `x: {type: int, low: 1, high: 8, step: 2}`},
		{`{"x":{"name":"DiscreteUniformDistribution","attributes":{"low":0,"high":1,"q":0.5}}}`, `x: {type: float, low: 0.0, high: 1.0, step: 0.5}`},
		{`{"x":{"name":"IntLogUniformDistribution","attributes":{"low":1,"high":8,"step":1}}}`, `x: {type: int, low: 1, high: 8, scale: log}`},
		{`{"parameters":{"type":"categorical","choices":["a",1,2.5]}}`, `parameters: {type: categorical, values: [a, 1, 2.5]}`},
		{`[{"name":"x","parameterType":"double","feasibleSpace":{"min":"0.5","max":"1e1","distribution":"logUniform","step":""}}]`, `x: {type: float, low: 0.5, high: 10.0, scale: log}`},
		{"parameters:\n- {name: x, parameterType: discrete, feasibleSpace: {list: ['3', '1', '0.5']}}", `x: {type: ordinal, values: [0.5, 1, 3]}`},
		{"- {name: x, parameterType: categorical, feasibleSpace: {list: ['3', a]}}", `x: {type: categorical, values: ["3", a]}`},
		{"- {name: x, parameterType: int, feasibleSpace: {min: '-1', max: '8', step: '3'}}", `x: {type: int, low: -1, high: 8, step: 3}`},
	} {
		s, _, err := space.Parse([]byte(c.foreign))
		if err != nil {
			t.Errorf("%s: %v", c.foreign, err)
			continue
		}
		if got, want := string(s.YAML()), "version: 1\nparameters:\n  "+c.own+"\n"; got != want {
			t.Errorf("%s is\n%swant\n%s", c.foreign, got, want)
		}
	}
}

// There is one input for every message. In the input, P stands for the head of a file in
// the own form.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"P: lr: {type: float, low: 0, high: 0.1, scale: log}", `line 2: parameter "lr": low = 0: a log range must not touch zero; use low: 1e-8, or scale: linear`},
		{"P: a: {type: float, low: -1, high: 0, scale: reverse-log}", `low = -1: a log range must not have negative numbers; use scale: linear`},
		{"P: a: {type: int, low: 0, high: 9, scale: log}", `use low: 1, or scale: linear`},
		{"P: a: {type: float, low: 2, high: 1}", `low = 2: the range is reversed: low is above high = 1; swap them`},
		{"P: a: {type: float, low: 2}", `high: a float needs high; add high`},
		{"P: a: {type: float, low: \"2\", high: 3}", `low = "2": must be a number, and this is text; remove the quotes`},
		{"P: a: {type: float, low: two, high: 3}", `low = "two": must be a number, not a text; write a number`},
		{"P: a: {type: float, low: .inf, high: 3}", `low = .inf: a number must be finite`},
		{"P: a: {type: float, low: nan, high: 3}", `low = nan: a number must be finite`},
		{"P: a: {type: float, low: 1_000, high: 3000}", `low = 1_000: a number is written in plain decimal, without _; write 1000`},
		{"P: a: {type: float, low: 0x1p-2, high: 3}", `low = 0x1p-2: a number is written in plain decimal, not in hexadecimal`},
		{"P: a: {type: int, low: 0x10, high: 30}", `not in hexadecimal, octal or binary`},
		{"P: a: {type: int, low: 007, high: 30}", `low = 007: a number is written in plain decimal, without leading zeros; write 7`},
		{"P: a: {type: float, low: 1e400, high: 3}", `the number is too large for a float64`},
		{"P: a: {type: float, low: 1e-400, high: 3}", `the number is too small for a float64`},
		{"P: a: {type: int, low: 1, high: 2.5}", `high = 2.5: an int has whole numbers of 64 bits; round it, or use type: float`},
		{"P: a: {type: int, low: 1, high: 9223372036854775808}", `an int has whole numbers of 64 bits`},
		{"P: a: {type: float, low: 9007199254740993, high: 1e20}", `float64 does not hold this integer exactly`},
		{"P: a: {type: float, low: 0, high: 1, step: -1}", `step = -1: a step is above zero`},
		{"P: a: {type: float, low: 1, high: 9, step: 1, scale: log}", `step = 1: steps need the linear scale`},
		{"P: a: {type: float, low: 0, high: 1, step: 1e-17}", `step = 1e-17: the step is too fine`},
		{"P: a: {type: float, low: 0, high: 1, scale: logarithmic}", `scale = "logarithmic": there is no such scale; use linear, log or reverse-log`},
		{"P: a: {type: float, low: 0, high: 1, scale: reverselog}", `did you mean reverse-log?`},
		{"P: a: {type: float, lo: 0, high: 1}", `parameter "a": lo: there is no such key; did you mean low?`},
		{"P: a: {type: float, low: 0, high: 1, log: true}", `log: there is no such key; write scale: log`},
		{"P: a: {type: float, low: 0, low: 0, high: 1}", `low: the key is there twice; remove one`},
		{"P: a: {type: float, low: 0, Low: 0, high: 1}", `Low: the key differs from "low" only in case`},
		{"P: a: {type: bool}", `there is no such type; use type: categorical, values: [false, true]`},
		{"P: a: {type: flaot}", `did you mean float?`},
		{"P: a: {low: 1}", `type: a parameter has a type; use float`},
		{"P: a: 3", `parameter "a" = 3: a parameter is described by a mapping`},
		{"P: a: [3, 4]", `numbers may have an order or none; write {type: ordinal, values: […]}`},
		{"P: a: []", `values: the categorical has nothing to choose from`},
		{"P: a: [x, x]", `values = "x": the value is there twice`},
		{"P: a: [x, [y]]", `must be a single value, not a list`},
		{"P: a: {type: categorical}", `values: the categorical has nothing to choose from`},
		{"P: a: {type: categorical, values: []}", `nothing to choose from`},
		{"P: a: {type: categorical, values: x}", `values = "x": must be a list`},
		{"P: a: {type: categorical, values: [x, x]}", `values = "x": the value is there twice`},
		{"P: a: {type: categorical, values: [1, '1']}", `values = "1": an int in the same list is written the same`},
		{"P: a: {type: categorical, values: [1, null]}", `values = null: null is not a value; name the absence`},
		{"P: a: {type: categorical, values: [1, [2]]}", `must be a single value, not a list`},
		{"P: a: {type: categorical, values: [2020-01-01, x]}", `this is not a number; quote it if it is text`},
		{"P: a: {type: categorical, values: [99999999999999999999, x]}", `an integer has 64 bits`},
		{"P: a: {type: constant, values: [1]}", `values: there is no such key; did you mean value?`},
		{"P: a: {type: constant}", `value: the constant has nothing to choose from`},
		{"P: a: {type: int, low: 1, high: 2, when: {b: 1}}", `when = "b": there is no such parameter; the parameters are a`},
		{"P: alpha: {type: int, low: 1, high: 2, when: {alhpa: 1}}", `did you mean "alpha"?`},
		{"P: a: {type: int, low: 1, high: 2, when: 7}", `when = 7: conditions are a mapping`},
		{"P: a: {type: int, low: 1, high: 2, when: {a: 1}}", `the conditions form a cycle: a ← a`},
		{"P: a: {type: float, low: 1, high: 2}\n  b: {type: int, low: 1, high: 2, when: {a: 1}}", `line 3: parameter "b": when = "a": a parent has values to choose from, and this one is a float`},
		{"P: a: {type: int, low: 1, high: 2}\n  b: {type: int, low: 1, high: 2, when: {a: 3}}", `when = "a": 3: the parent cannot take this value: outside 1 … 2`},
		{"P: a: {type: int, low: 1, high: 2}\n  b: {type: int, low: 1, high: 2, when: {a: [1, 1]}}", `the value is there twice`},
		{"P: a: {type: int, low: 1, high: 2}\n  b: {type: int, low: 1, high: 2, when: {a: []}}", `a condition names between 1 and 10000 values`},
		{"P: a: {type: int, low: 1, high: 2}\n  A: {type: int, low: 1, high: 2}", `line 3: parameter "A": name = "A": differs from parameter "a" only in case; rename one of them`},
		{"P: a: {type: int, low: 1, high: 2}\n  a: {type: int, low: 1, high: 2}", `there are two parameters of this name`},
		{"P: \"\\u202e\": {type: int, low: 1, high: 2}", `name = "\u202e": a name has no control or text-direction characters`},
		{"P: \"\": {type: int, low: 1, high: 2}", `a parameter needs a name`},
		{"P: \" a\": {type: int, low: 1, high: 2}", `a name neither begins nor ends with a space; use "a"`},
		{"version: 2\nparameters: {}", `version = 2: this program reads version 1`},
		{"version: 1", `a space file has a mapping of parameters`},
		{"version: 1\nparameters: {}\nparamters: 1", `line 3: paramters: there is no such key; did you mean parameters?`},
		{"a: &x 1", `line 1: &x: anchors are not supported`},
		{"a: !!str 1", `tags are not supported`},
		{"a: {<<: 1}", `merge keys are not supported`},
		{"a: 1\n---\nb: 2", `a space file holds one YAML document`},
		{"? [1]\n: 2", `a key is text`},
		{"a: [", `line 1: not valid YAML`},
		{"{\n\"a\": tru}", `line 2: parameter "a" = "tru": a parameter is described by an object`},
		{"{\n\"a\": [}", `line 2: not valid JSON`},
		{"", `the file is empty`},
		{"# nothing", `the file is empty`},
		{"text", `a space file is a mapping`},
		{"a: \xff", `line 1: the file is not valid UTF-8`},
		{strings.Repeat("[", 33) + strings.Repeat("]", 33), `at most 32 deep`},
		{`{"x":{"type":"float","low":0,"high":1,"log":true}}`, `use low: 1e-7, or log: false`},
		{`{"x":{"type":"float","low":0,"high":1,"scale":"log"}}`, `this is Optuna's form`},
		{`{"x":{"type":"real","low":0,"high":1}}`, `Optuna's types are float, int and categorical`},
		{`{"x":{"type":"categorical","choices":["a",null]}}`, `choices = null: null is not a value; name the absence`},
		{`{"x":{"type":"float","low":1,"high":2,"log":1}}`, `log = 1: must be true or false`},
		{`{"x":{"name":"FloatDistributon","attributes":{}}}`, `there is no such distribution; did you mean FloatDistribution?`},
		{`{"x":{"name":"FloatDistribution"}}`, `a distribution has attributes`},
		{`{"parameters":[{"name":"x","parameterType":"double","feasibleSpace":{"min":"1","max":"2","distribution":"normal"}}]}`, `a prior over a range is not supported`},
		{`[{"name":"x","parameterType":"double","feasibleSpace":{"min":"0","max":"2","distribution":"logUniform"}}]`, `min = 0: a log range must not touch zero; use min: 1e-7, or distribution: uniform`},
		{`[{"name":"x","parameterType":"discrete","feasibleSpace":{"list":["a"]}}]`, `a discrete parameter lists numbers`},
		{`[{"name":"x","parameterType":"float","feasibleSpace":{}}]`, `Katib's types are double, int, discrete and categorical`},
		{`[{"name":"x"}]`, `a Katib parameter has a feasibleSpace`},
		{`[1]`, `a Katib parameter is a mapping`},
	} {
		file := strings.Replace(c.file, "P:", "parameters:\n ", 1)
		_, _, err := space.Parse([]byte(file))
		switch {
		case err == nil:
			t.Errorf("%q: accepted, want %s", file, c.want)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%q:\n got %v\nwant %s", file, err, c.want)
		}
	}
}

// All faults of reading and of meaning are reported at once, in order of lines.
func TestAllFaultsAtOnce(t *testing.T) {
	_, _, err := space.Parse([]byte("parameters:\n  a: {type: int, low: 5, high: 1}\n  b: {type: int, low: x, high: 1}\n  A: {type: flat}\n  c: {type: float, low: 0, high: 1, scale: log, colour: 3}\n"))
	var lines []int
	for _, f := range space.Faults(err) {
		lines = append(lines, f.Line)
	}
	if len(lines) != 5 || lines[0] != 2 || lines[1] != 3 || lines[2] != 4 || lines[3] != 4 || lines[4] != 5 {
		t.Errorf("lines %v:\n%v", lines, err)
	}
}

func TestLint(t *testing.T) {
	for _, c := range []struct{ parameter, want string }{
		{"{type: categorical, values: [16, 32, 64, 128]}", `it should be a log range; use {type: int, low: 16, high: 128, scale: log}, or type: ordinal`},
		{"{type: categorical, values: ['0.1', '0.01', '0.001']}", `use {type: float, low: 0.001, high: 0.1, scale: log}`},
		{"{type: categorical, values: [1, 2, 3]}", `use {type: int, low: 1, high: 3}, or type: ordinal`},
		{"{type: categorical, values: [3, 1, 2]}", ``},
		{"{type: categorical, values: [1, 2]}", ``},
		{"{type: int, low: 3, high: 3}", `there is one value, 3: nothing to tune; use type: constant, value: 3`},
		{"{type: float, low: 3, high: 4, step: 2}", `there is one value, 3`},
		{"{type: ordinal, values: [a]}", `there is one value, "a"`},
		{"{type: float, low: 1, high: 1.9, scale: log}", `a log range of a factor 1.9, less than 2`},
		{"{type: int, low: 10, high: 19, scale: reverse-log}", `a reverse-log range of a factor 1.9`},
		{"{type: float, low: 1, high: 2, scale: log}", ``},
		{"{type: float, low: 0.001, high: 1}", `use scale: log`},
		{"{type: float, low: 0, high: 1, step: 0.3}", `the highest value is 0.9, not 1`},
		{"{type: int, low: 1, high: 9, step: 3}", `the highest value is 7, not 9`},
		{"{type: float, low: 0, high: 1, step: 0.1}", ``},
		{"{type: float, low: 1e-13, high: 1, scale: reverse-log}", `float64 cannot tell the values near 1 apart`},
		{"{type: float, low: 1, high: 1.0000000000001}", `so narrow`},
	} {
		_, warnings, err := space.Parse([]byte("parameters:\n  p: " + c.parameter))
		if err != nil {
			t.Errorf("%s: %v", c.parameter, err)
			continue
		}
		var text string
		for _, w := range warnings {
			text += w.String() + "\n"
			if w.Line != 2 || w.Parameter != "p" || w.Message == "" || w.Remedy == "" {
				t.Errorf("%s: %+v", c.parameter, w)
			}
		}
		if !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: %q, want %q", c.parameter, text, c.want)
		}
	}
	_, warnings, _ := space.Parse([]byte("parameters:\n  a: {type: int, low: 1, high: 2}\n  b: {type: int, low: 1, high: 2, when: {a: 1}}\n  c: {type: int, low: 1, high: 2, when: {a: 2, b: 1}}"))
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), `never active`) {
		t.Errorf("contradiction: %v", warnings)
	}
}

func TestOptunaJSON(t *testing.T) {
	s := mustNew(t, space.NewFloat("x", 0, 1), space.NewInt("n", 1, 8).WithScale(space.Log), space.NewBool("b"), space.NewConstant("c", space.Int(3)))
	const want = `{"x":{"type":"float","low":0.0,"high":1.0,"step":null,"log":false},"n":{"type":"int","low":1,"high":8,"step":1,"log":true},"b":{"type":"categorical","choices":[false,true]},"c":{"type":"categorical","choices":[3]}}`
	if got, err := s.OptunaJSON(); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	s = mustNew(t, space.NewFloat("x", 1, 9).WithScale(space.ReverseLog), space.NewOrdinal("o", space.Int(1), space.Int(2)), space.NewBool("b").Given("o", space.Int(1)))
	if _, err := s.OptunaJSON(); len(space.Faults(err)) != 3 {
		t.Errorf("faults: %v", err)
	}
}

// TestOptunaNamesThatLookLikeKatib reads back the output of OptunaJSON for parameters with
// the names of an Experiment's keys.
func TestOptunaNamesThatLookLikeKatib(t *testing.T) {
	want := mustNew(t, space.NewFloat("spec", 0, 1), space.NewInt("kind", 1, 3), space.NewFloat("apiVersion", 0, 1), space.NewFloat("parameters", 0, 1), space.NewFloat("version", 0, 1))
	text, err := want.OptunaJSON()
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := space.Parse(text)
	if err != nil || !got.Equal(want) {
		t.Errorf("Parse(%s): %v", text, err)
	}
}
