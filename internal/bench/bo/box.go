package bo

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/tuner/space"
)

// boxed is a function on a box, without noise.
type boxed struct {
	name         string
	value        func(x []float64) float64
	space        *space.Space
	names        []string
	best, median float64
}

// newBox returns the function value, to be minimised within bounds lo and hi, of
// which best is the least.
func newBox(name string, lo, hi []float64, value func(x []float64) float64, best float64) (*boxed, error) {
	b := &boxed{name: name, value: value, best: best}
	var parameters []space.Parameter
	for i := range lo {
		b.names = append(b.names, fmt.Sprintf("x%02d", i+1))
		parameters = append(parameters, space.NewFloat(b.names[i], lo[i], hi[i]))
	}
	var err error
	if b.space, err = space.New(parameters...); err != nil {
		return nil, err
	}
	b.median, err = UniformMedian(b)
	return b, err
}

// maximised lists one of package problems, which are to be maximised.
func maximised(name string, tier Tier, f problems.Objective) Listed {
	return Listed{name, tier, func(string) (Problem, error) {
		_, best, known := f.Optimum()
		if !known {
			return nil, fmt.Errorf("%s: its optimum is not known", name)
		}
		lo, hi := f.Bounds()
		return newBox(name, lo, hi, func(x []float64) float64 { return -f.Value(x) }, -best)
	}}
}

// Name implements [Problem].
func (b *boxed) Name() string { return b.name }

// Suite implements [Problem].
func (b *boxed) Suite() string { return suiteOf(b.name) }

// suiteOf returns the suite of a problem with a name.
func suiteOf(name string) string {
	suite, _, _ := strings.Cut(name, "/")
	return suite
}

// Space implements [Problem].
func (b *boxed) Space() *space.Space { return b.space }

// Best implements [Problem].
func (b *boxed) Best() float64 { return b.best }

// Median implements [Problem].
func (b *boxed) Median() float64 { return b.median }

// Evaluate implements [Problem].
func (b *boxed) Evaluate(c space.Config, _ *rand.Rand) (float64, bool) { return b.True(c), true }

// True implements [Problem].
func (b *boxed) True(c space.Config) float64 {
	x := make([]float64, len(b.names))
	for i, name := range b.names {
		v, _ := c.Get(name)
		x[i], _ = v.AsFloat()
	}
	return b.value(x)
}
