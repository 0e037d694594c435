package bo

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/bkbtuner/bkb/tuner/space"
)

// formula is a problem with a formula and without noise.
type formula struct {
	name         string
	space        *space.Space
	value        func(c space.Config) float64 // +Inf where it fails
	best, median float64
}

// newFormula returns a problem with the given parameters and least value.
func newFormula(name string, best float64, value func(c space.Config) float64, parameters ...space.Parameter) (*formula, error) {
	f := &formula{name: name, value: value, best: best}
	var err error
	if f.space, err = space.New(parameters...); err != nil {
		return nil, err
	}
	f.median, err = UniformMedian(f)
	return f, err
}

// number returns a number of a configuration, NaN if it has no number of that name.
func number(c space.Config, name string) float64 {
	v, _ := c.Get(name)
	if x, ok := v.Number(); ok {
		return x
	}
	return math.NaN()
}

// word returns a text of a configuration.
func word(c space.Config, name string) string {
	v, _ := c.Get(name)
	text, _ := v.AsString()
	return text
}

// Name implements [Problem].
func (f *formula) Name() string { return f.name }

// Suite implements [Problem].
func (f *formula) Suite() string { return suiteOf(f.name) }

// suiteOf returns the suite of a problem with a name.
func suiteOf(name string) string {
	suite, _, _ := strings.Cut(name, "/")
	return suite
}

// Space implements [Problem].
func (f *formula) Space() *space.Space { return f.space }

// Best implements [Problem].
func (f *formula) Best() float64 { return f.best }

// Median implements [Problem].
func (f *formula) Median() float64 { return f.median }

// Evaluate implements [Problem].
func (f *formula) Evaluate(c space.Config, _ *rand.Rand) (value float64, ok bool) {
	v := f.value(c)
	return v, !math.IsInf(v, 1)
}

// True implements [Problem].
func (f *formula) True(c space.Config) float64 { return f.value(c) }
