package autotune

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Spaces are valid for n = 1 … 10⁷ and for scales of any unit. The starts are in them. The
// starts, the corners and the middle make valid estimators.
func TestSpaces(t *testing.T) {
	for _, a := range training.Algorithms() {
		for _, n := range []int{1, 2, 3, 10, 47, 100, 1000, 20_000, 1_000_000, 10_000_000} {
			for _, median := range []float64{1e-9, 1, 3.14159265, 1e9} {
				p := training.Problem{Rows: n, Dim: 4, Outputs: 1, Task: data.Regression, MedianDistance: median}
				if a.Name == "log-falkon" {
					p.Task = data.Classification
				}
				checkSpace(t, &Tuning{algorithm: a, problem: p})
			}
		}
	}
}

func checkSpace(t *testing.T, tn *Tuning) {
	t.Helper()
	p := tn.problem
	where := fmt.Sprintf("%s, n = %d, median %g", tn.algorithm.Name, p.Rows, p.MedianDistance)
	dims, err := theory.Space(tn.algorithm.Name, theory.Data{Rows: p.Rows, MedianDistance: p.MedianDistance})
	if err == nil {
		err = tn.build(dims)
	}
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	configs := tn.Starts()
	for _, u := range []float64{0, 0.5, 1} {
		at := make([]float64, tn.space.Dim())
		for i := range at {
			at[i] = u
		}
		c, err := tn.space.Decode(at)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		configs = append(configs, c)
	}
	for _, c := range configs {
		if err := tn.space.Validate(c); err != nil {
			t.Errorf("%s: %s: %v", where, c, err)
		}
		if _, err := tn.algorithm.Estimator(Values(c), p); err != nil {
			t.Errorf("%s: %s: %v", where, c, err)
		}
	}
	if len(configs) != 5 || configs[0].Equal(configs[1]) {
		t.Errorf("%s: starts %v", where, configs[:2])
	}
}

// Fixed hyper-parameters are not searched, and stand in every configuration.
func TestFixed(t *testing.T) {
	a, err := training.Find("sgdrf")
	if err != nil {
		t.Fatal(err)
	}
	p := training.Problem{Rows: 1000, Dim: 4, Outputs: 1, Task: data.Regression, MedianDistance: 2}
	all, some := &Tuning{algorithm: a, problem: p}, &Tuning{algorithm: a, problem: p}
	some.options.Fixed = training.Values{"length-scale": "median", "passes": "3", "lambda": "1e-06", "kernel": "matern12"}
	checkSpace(t, all)
	dims, err := theory.Space("sgdrf", theory.Data{Rows: 1000, MedianDistance: 2})
	if err == nil {
		err = some.build(dims)
	}
	if err != nil {
		t.Fatal(err)
	}
	if all.steps != 20 || some.steps != 3 || some.Searched() != all.Searched()-3 || len(some.starts) != 1 {
		t.Errorf("steps %d, %d; searched %d, %d; starts %v", all.steps, some.steps, all.Searched(), some.Searched(), some.starts)
	}
	v := Values(some.starts[0].config)
	for name, want := range some.options.Fixed {
		if v[name] != want {
			t.Errorf("%s = %q, want %q", name, v[name], want)
		}
	}
}

// withRanges returns a tuning of made-up data of n rows in ranges.
func withRanges(t *testing.T, algorithm string, n int, ranges map[string]Range) (*Tuning, error) {
	t.Helper()
	a, err := training.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	p := training.Problem{Rows: n, Dim: 4, Outputs: 1, Task: data.Regression, MedianDistance: 2}
	if algorithm == "log-falkon" {
		p.Task = data.Classification
	}
	tn := &Tuning{algorithm: a, problem: p, options: Options{Ranges: ranges}}
	dims, err := theory.Space(algorithm, theory.Data{Rows: n, MedianDistance: 2})
	if err == nil {
		err = checkRanges(a, dims, nil, ranges)
	}
	if err != nil {
		return nil, err
	}
	return tn, tn.build(dims)
}

// The number of centres is the largest that theory searches, in closed form and elsewhere, but
// for samplers that find it themselves.
func TestCentersAreTheLargestNumber(t *testing.T) {
	a, err := training.Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n       int
		fixed   training.Values
		centers string
		sampler bool
	}{
		{1, nil, "constant 1", false},
		{300, nil, "constant 300", false},
		{300, training.Values{"sampler": "uniform"}, "constant 300", true},
		{300, training.Values{"sampler": "bless"}, "174…300", true},
		{300, training.Values{"sampler-lambda": "1e-3"}, "constant 300", false},
		{300, training.Values{"centers": "20"}, "constant 20", false},
		{4000, nil, "constant 4000", false},
		{5000, nil, "constant 5000", false},
		{10_001, nil, "constant 4000", false},
		{5000, training.Values{"sampler": "bless"}, "500…5000", true},
		{1_000_000, nil, "constant 10000", false},
	} {
		p := training.Problem{Rows: c.n, Dim: 4, Outputs: 1, Task: data.Regression, MedianDistance: 2}
		tn := &Tuning{algorithm: a, problem: p, alone: c.n%2 == 0, options: Options{Fixed: c.fixed}}
		dims, err := theory.Space("falkon", theory.Data{Rows: c.n, MedianDistance: 2})
		if err == nil {
			err = tn.build(dims)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := searchedIn(tn.space, "centers")
		if q, _ := tn.space.Lookup("centers"); q.Type == space.TypeConstant {
			got = "constant " + got
		}
		if _, sampler := tn.space.Lookup("sampler"); got != c.centers || sampler != c.sampler {
			t.Errorf("%d rows, %v: centers %s, sampler %v, want %s, %v", c.n, c.fixed, got, sampler, c.centers, c.sampler)
		}
	}
}

// The space has the ranges that were given, to the last digit, and contains the starts.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		algorithm, name string
		r               Range
		moved           bool
	}{
		{"falkon", "lambda", Range{1.23456789e-14, 1}, false},
		{"falkon", "lambda", Range{0.01, 1}, true},
		{"falkon", "length-scale", Range{0.5, 1}, true},
		{"falkon", "centers", Range{3, 1000}, false},
		{"falkon", "centers", Range{999, 1000}, true},
		{"sgdrf", "random-features", Range{2, 100_000}, false},
		{"sgdrf", "random-features", Range{1000, 1002}, true},
		{"sgdrf", "step-scale", Range{1e-5, 1.99}, false},
		{"sgdrf", "batch-size", Range{1, 1000}, false},
		{"doublyonline", "step-features", Range{6, 8}, true},
	} {
		tn, err := withRanges(t, c.algorithm, 1000, map[string]Range{c.name: c.r})
		if err != nil {
			t.Fatal(err)
		}
		where := fmt.Sprintf("%s, %s=%v", c.algorithm, c.name, c.r)
		p, _ := tn.space.Lookup(c.name)
		low, high := p.Low, p.High
		if n := len(p.Values); n > 0 {
			low, high = p.Values[0], p.Values[n-1]
		}
		l, _ := low.Number()
		h, _ := high.Number()
		if (Range{l, h}) != c.r || tn.moved != c.moved {
			t.Errorf("%s: the space has %v…%v, moved %v", where, low, high, tn.moved)
		}
		for _, s := range tn.Starts() {
			if err := tn.space.Validate(s); err != nil {
				t.Errorf("%s: %v", where, err)
			}
			if _, err := tn.algorithm.Estimator(Values(s), tn.problem); err != nil {
				t.Errorf("%s: %s: %v", where, s, err)
			}
		}
		if len(tn.starts) > 1 && tn.starts[0].config.Equal(tn.starts[1].config) {
			t.Errorf("%s: begins twice with %s", where, tn.starts[0].config)
		}
	}
}

// A wider range contains every value of theory's range and of one around it, so its trials
// can be taken over.
func TestWiderRangesHaveAll(t *testing.T) {
	for _, a := range training.Algorithms() {
		for _, n := range []int{1, 10, 300, 20_000} {
			theirs, err := withRanges(t, a.Name, n, nil)
			if err != nil {
				t.Fatal(err)
			}
			all := []*Tuning{theirs}
			for range 2 { // and once more
				last := all[len(all)-1]
				ranges := map[string]Range{}
				for _, p := range last.space.Parameters() {
					for _, e := range endsOf(last.space, p) {
						widen(t, last, e, ranges)
					}
				}
				next, err := withRanges(t, a.Name, n, ranges)
				if err != nil {
					t.Fatalf("%s, n = %d: %v", a.Name, n, err)
				}
				all = append(all, next)
			}
			for _, wide := range all[1:] {
				for _, c := range everyValue(t, theirs.space) {
					if err := wide.space.Validate(c); err != nil {
						t.Fatalf("%s, n = %d: %v", a.Name, n, err)
					}
				}
				if err := wide.alikeTo(theirs.space); err != "" {
					t.Errorf("%s, n = %d: %s", a.Name, n, err)
				}
			}
		}
	}
}

func (t *Tuning) alikeTo(s *space.Space) string {
	if t.alike(s, t.space) {
		return ""
	}
	return "not alike" + differs(s, t.space)
}

// endsOf returns both ends of a numeric parameter.
func endsOf(s *space.Space, p space.Parameter) []space.Edge {
	low, high := p.Low, p.High
	if n := len(p.Values); n > 1 {
		low, high = p.Values[0], p.Values[n-1]
	}
	if _, ok := low.Number(); !ok || low == high {
		return nil
	}
	e := space.Edge{Parameter: p.Name, Low: low, High: high}
	upper := e
	upper.Upper = true
	return []space.Edge{e, upper}
}

// widen adds the range that Wider advises, at both ends.
func widen(t *testing.T, tn *Tuning, e space.Edge, ranges map[string]Range) {
	t.Helper()
	name, r, err := ParseRange(Wider(tn.Complete(study.Spec{}), e))
	if err != nil || name != e.Parameter {
		t.Fatal(name, err)
	}
	low, _ := e.Low.Number()
	high, _ := e.High.Number()
	kept := r.High == high
	if e.Upper {
		kept = r.Low == low
	}
	if !kept || r.Low > low || r.High < high {
		t.Errorf("%v: %v is no wider range", e, r)
	}
	if before, ok := ranges[name]; ok {
		r = Range{min(r.Low, before.Low), max(r.High, before.High)}
	}
	ranges[name] = r
}

// everyValue returns configurations with the ends and every listed value of each parameter,
// with the others in the middle.
func everyValue(t *testing.T, s *space.Space) []space.Config {
	t.Helper()
	at := make([]float64, s.Dim())
	for i := range at {
		at[i] = 0.5
	}
	var out []space.Config
	for i := range at {
		const fine = 500
		for j := range fine + 1 {
			at[i] = float64(j) / fine
			c, err := s.Decode(at)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
		at[i] = 0.5
	}
	return out
}

// An error names the parameter, the range, the rule and the remedy.
func TestBadRanges(t *testing.T) {
	for _, c := range []struct {
		algorithm, text, want string
	}{
		{"falkon", "lamda=1..2", "the range lamda=1..2: falkon has no hyper-parameter of this name; the searched ones are length-scale, lambda, centers"},
		{"falkon", "tolerance=1..2", "falkon does not search it; set tolerance=1; the searched ones are length-scale, lambda, centers"},
		{"falkon", "kernel=1..2", "it has choices instead of a range, gaussian, matern52, matern32, laplace; set one of them"},
		{"falkon", "lambda=2..1", "the lower end is above the upper one; swap them"},
		{"falkon", "lambda=1..1", "it has one value; set lambda=1"},
		{"falkon", "lambda=0..1", "it must be above 0, because it is searched on a logarithmic scale; choose a small lower end, such as 1e-12"},
		{"falkon", "lambda=-1..1", "it must be above 0"},
		{"falkon", "centers=10..1001", "it must be from 1 to 1000; choose both ends from 1 to 1000"},
		{"falkon", "centers=0..10", "it must be from 1 to 1000"},
		{"falkon", "centers=1.5..10", "it must be a whole number"},
		{"sgdrf", "passes=1..40", "one training passes through all its values; set passes=40"},
		{"sgdrf", "random-features=3..10", "it must be a multiple of 2; choose such ends"},
		{"sgdrf", "random-features=2..3e9", "it must be from 2 to 2147483646"},
		{"sgdrf", "step-scale=0.1..2", "it must be below 2; choose a smaller upper end, such as 1.5"},
	} {
		name, r, err := ParseRange(c.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = withRanges(t, c.algorithm, 1000, map[string]Range{name: r})
		wrong := (*RangeError)(nil)
		if !errors.As(err, &wrong) || wrong.Name != name || wrong.Range != r || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	for _, text := range []string{"", "lambda", "lambda=", "lambda=1", "=1..2", "lambda=1..", "lambda=..1", "lambda=1..nan", "lambda=1...2", "lambda=-inf..1", "lambda=1..1e999"} {
		if _, _, err := ParseRange(text); err == nil && text != "lambda=1...2" { // 1 and .2
			t.Errorf("%q was read", text)
		}
	}
}

// A limit of the learner itself is not reported as an edge.
func TestEdgesOfLearners(t *testing.T) {
	const n = 300
	for _, c := range []struct {
		algorithm, name string
		ranges          map[string]Range
		low, high       bool // are edges
	}{
		{"falkon", "lambda", nil, false, true}, // below 1e-12 all is rounding
		{"krr", "lambda", nil, false, true},
		{"log-falkon", "lambda", nil, true, true},
		{"krr", "lambda", map[string]Range{"lambda": {1e-14, 1}}, false, true},
		{"krr", "lambda", map[string]Range{"lambda": {1e-11, 1}}, true, true},
		{"falkon", "centers", map[string]Range{"centers": {5, n}}, true, false}, // of all rows
		{"falkon", "centers", map[string]Range{"centers": {1, 200}}, false, true},
		{"sgdrf", "batch-size", nil, false, true},
		{"sgdrf", "batch-size", map[string]Range{"batch-size": {1, n}}, false, false},
		{"sgdrf", "random-features", nil, true, true},
		{"doublyonline", "step-features", nil, false, true}, // 2 are the least
		{"avgsgd", "step-size", nil, true, true},
	} {
		tn, err := withRanges(t, c.algorithm, n, c.ranges)
		if err != nil {
			t.Fatal(err)
		}
		spec := tn.Complete(study.Spec{})
		i, _ := tn.space.Coordinate(c.name)
		at := make([]float64, tn.space.Dim())
		for j := range at {
			at[j] = 0.5
		}
		for _, end := range []struct {
			u    float64
			want bool
		}{{0, c.low}, {0.5, false}, {1, c.high}} {
			at[i] = end.u
			config, err := tn.space.Decode(at)
			if err != nil {
				t.Fatal(err)
			}
			if got := Edges(spec, config); (len(got) > 0) != end.want || end.want && (got[0].Parameter != c.name || got[0].Upper != (end.u == 1)) {
				t.Errorf("%s, %s at %g: %v, want %v", c.algorithm, c.name, end.u, got, end.want)
			}
		}
		if !Is(spec) || Is(study.Spec{Space: tn.space}) {
			t.Error("a study is not told for what it is")
		}
	}
}

// A study stores the limits of its data, and no wider range is proposed beyond them.
func TestLimitsOfAStudy(t *testing.T) {
	for _, c := range []struct {
		algorithm, name string
		upper           bool
		with            string // range to continue in
	}{
		{"sgdrf", "step-scale", true, "step-scale=0.05..1.75"},
		{"sgdrf", "random-features", false, "random-features=2..278"},
		{"sgdrf", "batch-size", true, "batch-size=1..280"},
		{"falkon", "lambda", true, "lambda=1e-12..10"},
		{"falkon", "lambda", false, ""},
		{"log-falkon", "lambda", false, "lambda=1e-12..0.1"},
		{"nystrom", "length-scale", false, "length-scale=0.002..600"},
		{"falkon", "centers", true, ""},
	} {
		tn, err := withRanges(t, c.algorithm, 300, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := make([]float64, tn.space.Dim())
		for j := range at {
			at[j] = 0.5
		}
		i, _ := tn.space.Coordinate(c.name)
		at[i] = map[bool]float64{true: 1}[c.upper]
		config, err := tn.space.Decode(at)
		if err != nil {
			t.Fatal(err)
		}
		with, spec := "", tn.Complete(study.Spec{})
		if edges := Edges(spec, config); len(edges) > 0 {
			with = Wider(spec, edges[0])
		}
		if with != c.with {
			t.Errorf("%s, %s: %q, want %q", c.algorithm, c.name, with, c.with)
		}
		if c.with == "" {
			continue
		}
		name, r, err := ParseRange(c.with)
		if err == nil {
			_, err = withRanges(t, c.algorithm, 300, map[string]Range{name: r})
		}
		if err != nil {
			t.Errorf("%s: %v", c.with, err)
		}
	}
}
