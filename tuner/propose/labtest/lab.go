// Package labtest has small spaces, outcomes, and a study in memory for the tests of
// proposers and of their parts.
package labtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Began is the time of all that a [Lab] does.
var Began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Fataler is the common part of tests, benchmarks and rapid.
type Fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Square is a space of two continuous parameters.
const Square = `{"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1}}`

// Spaces are small and large, finite and infinite, flat and conditional.
var Spaces = map[string]string{
	"continuous":  `{"x": {"type": "float", "low": 0, "high": 1}, "lr": {"type": "float", "low": 1e-5, "high": 0.1, "scale": "log"}}`,
	"mixed":       `{"x": {"type": "float", "low": -5, "high": 5}, "n": {"type": "int", "low": 1, "high": 100, "scale": "log"}, "k": {"type": "categorical", "values": ["a", "b", "c"]}, "seed": {"type": "constant", "value": 17}}`,
	"conditional": `{"kind": {"type": "categorical", "values": ["plain", "deep"]}, "depth": {"type": "int", "low": 1, "high": 9, "when": {"kind": "deep"}}, "rate": {"type": "float", "low": 0, "high": 1, "when": {"depth": [1, 2, 3]}}}`,
	"finite":      `{"a": {"type": "categorical", "values": ["u", "v", "w"]}, "b": {"type": "int", "low": 0, "high": 9}, "c": {"type": "float", "low": 0, "high": 1, "step": 0.25}}`,
	"tiny":        `{"a": {"type": "categorical", "values": [true, false]}, "b": {"type": "ordinal", "values": [1, 2], "when": {"a": true}}}`,
	"constant":    `{"a": {"type": "constant", "value": 1}}`,
	"empty":       `{}`,
}

// Parse makes a space from its parameters.
func Parse(t Fataler, parameters string) *space.Space {
	t.Helper()
	if parameters == "{}" {
		sp, err := space.New()
		if err != nil {
			t.Fatalf("%v", err)
		}
		return sp
	}
	sp, _, err := space.Parse([]byte(`{"version": 1, "parameters": ` + parameters + `}`))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return sp
}

// SpecOf returns a study on a space that minimizes a loss.
func SpecOf(sp *space.Space, seed uint64) study.Spec {
	return study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: seed, MaxRetries: 1}
}

// Completed returns an outcome with the values of the first objectives.
func Completed(spec study.Spec, values ...float64) study.Outcome {
	o := study.Outcome{State: study.Completed}
	for i, v := range values {
		o.Metrics = append(o.Metrics, study.Metric{Name: spec.Objectives[i].Name, Values: []float64{v}})
	}
	slices.SortFunc(o.Metrics, func(a, b study.Metric) int { return map[bool]int{true: -1, false: 1}[a.Name < b.Name] })
	return o
}

// Bowl returns a value for any configuration. It is smooth in numbers and a step for each
// category.
func Bowl(sp *space.Space, c space.Config) float64 {
	u := make([]float64, sp.Dim())
	if err := sp.Encode(c, u); err != nil {
		panic(err)
	}
	sum := 0.0
	for i, v := range u {
		d := v - 0.3 - 0.1*float64(i%3)
		sum += d * d
	}
	return sum
}

// Curve returns a trial's report at a step, which approaches final.
func Curve(final float64, step int64) float64 { return final + 3/float64(step) }

// Lab is a study with its log.
type Lab struct {
	T   Fataler
	S   *study.Study
	Log []study.Event
}

// New creates the study.
func New(t Fataler, spec study.Spec) *Lab {
	t.Helper()
	l := &Lab{T: t, S: new(study.Study)}
	l.Do(study.Create{Spec: spec})
	return l
}

// Do sends a command to the study, which must accept it.
func (l *Lab) Do(c study.Command) study.Reply {
	l.T.Helper()
	return l.At(Began, c)
}

// At is Do at another time than Began.
func (l *Lab) At(now time.Time, c study.Command) study.Reply {
	l.T.Helper()
	reply, events, err := l.S.Decide(now, c)
	if err != nil {
		l.T.Fatalf("%T: %v", c, err)
	}
	for _, e := range events {
		if err := l.S.Apply(e); err != nil {
			l.T.Fatalf("%T: %v", c, err)
		}
		l.Log = append(l.Log, e)
	}
	return reply
}

// Start hands out a trial for each suggestion.
func (l *Lab) Start(suggestions ...study.Suggestion) {
	l.T.Helper()
	for _, g := range suggestions {
		l.Do(study.Start{Ask: study.Ask{Count: 1}, Trial: l.S.Trials(), Suggestion: g})
	}
}

// Advance makes a trial report some steps.
func (l *Lab) Advance(n int, from, to int64, value func(step int64) float64) {
	l.T.Helper()
	for step := from; step <= to; step++ {
		l.Do(study.ReportValues{Trial: n, Reports: []study.Report{{Step: step, Values: []study.NamedValue{{Name: "loss", Value: value(step)}}}}})
	}
}

// Coordinates returns the coordinates of a trial.
func (l *Lab) Coordinates(n int) []float64 {
	l.T.Helper()
	trial, _ := l.S.Trial(n)
	u := make([]float64, l.S.Spec().Space.Dim())
	if err := l.S.Spec().Space.Encode(trial.Config, u); err != nil {
		l.T.Fatalf("%v", err)
	}
	return u
}

// Scatter adds n trials at random points, with outcomes that value computes.
func (l *Lab) Scatter(n int, value func(u []float64, rng *rand.Rand) []float64) {
	l.T.Helper()
	spec, rng := l.S.Spec(), rand.New(rand.NewPCG(5, 6))
	for range n {
		u := make([]float64, spec.Space.Dim())
		for i := range u {
			u[i] = rng.Float64()
		}
		c := l.Decode(u...)
		if err := spec.Space.Encode(c, u); err != nil {
			l.T.Fatalf("%v", err)
		}
		l.Do(study.Add{Config: c, Outcome: Completed(spec, value(u, rng)[:len(spec.Objectives)]...)})
	}
}

// Decode returns the configuration at a point.
func (l *Lab) Decode(u ...float64) space.Config {
	l.T.Helper()
	c, err := l.S.Spec().Space.Decode(u)
	if err != nil {
		l.T.Fatalf("%v", err)
	}
	return c
}

// Wavy returns three values on a square, the first with noise.
func Wavy(u []float64, rng *rand.Rand) []float64 {
	return []float64{math.Sin(7*u[0]) + u[1]*u[1] + 0.1*rng.NormFloat64(), math.Cos(5 * u[1]), u[0] - u[1]}
}
