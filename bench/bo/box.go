package bo

import (
	"fmt"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/tuner/space"
)

// newBox returns the function value, to be minimized within bounds lo and hi. Its least
// value is best.
func newBox(name string, lo, hi []float64, value func(x []float64) float64, best float64) (*formula, error) {
	names := make([]string, len(lo))
	var parameters []space.Parameter
	for i := range lo {
		names[i] = fmt.Sprintf("x%02d", i+1)
		parameters = append(parameters, space.NewFloat(names[i], lo[i], hi[i]))
	}
	return newFormula(name, best, func(c space.Config) float64 {
		x := make([]float64, len(names))
		for i, name := range names {
			x[i] = number(c, name)
		}
		return value(x)
	}, parameters...)
}

// maximised lists a problem of package problems, which are to be maximized.
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
