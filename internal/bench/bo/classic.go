package bo

import (
	"fmt"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/tuner/space"
)

// classic is test functions that everybody has.
var classic = Suite{
	Name: "classic", Title: "Classic test functions", Source: "package internal/problems", Log: true,
	Problems: []Listed{
		box("classic/branin", Smoke, problems.Branin{}),
		box("classic/hartmann6", Standard, problems.Hartmann6{}),
		box("classic/ackley5", Standard, problems.Ackley{Dim: 5, Shift: 1.3}),
	},
}

func box(name string, tier Tier, f problems.Objective) Listed {
	return Listed{name, tier, func(string) (Problem, error) { return newBoxed(name, f) }}
}

// boxed is an objective on a box, without noise.
type boxed struct {
	name         string
	f            problems.Objective
	space        *space.Space
	names        []string
	best, median float64
}

func newBoxed(name string, f problems.Objective) (Problem, error) {
	lo, hi := f.Bounds()
	b := &boxed{name: name, f: f}
	var parameters []space.Parameter
	for i := range lo {
		b.names = append(b.names, fmt.Sprintf("x%02d", i+1))
		parameters = append(parameters, space.NewFloat(b.names[i], lo[i], hi[i]))
	}
	var err error
	if b.space, err = space.New(parameters...); err != nil {
		return nil, err
	}
	_, best, known := f.Optimum()
	if !known {
		return nil, fmt.Errorf("%s: its optimum is not known", name)
	}
	b.best = -best
	b.median, err = UniformMedian(b)
	return b, err
}

func (b *boxed) Name() string        { return b.name }
func (b *boxed) Suite() string       { return "classic" }
func (b *boxed) Space() *space.Space { return b.space }
func (b *boxed) Best() float64       { return b.best }
func (b *boxed) Median() float64     { return b.median }

// Evaluate implements [Problem].
func (b *boxed) Evaluate(c space.Config, _ *rand.Rand) (float64, bool) { return b.True(c), true }

// True implements [Problem].
func (b *boxed) True(c space.Config) float64 {
	x := make([]float64, len(b.names))
	for i, name := range b.names {
		v, _ := c.Get(name)
		x[i], _ = v.AsFloat()
	}
	return -b.f.Value(x)
}
