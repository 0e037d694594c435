package acquire

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// ranked is a fold of the results, the best of them, best first.
type ranked struct {
	most        int
	begun, told int
	list        []bandit.Evaluation
}

// follow adds the new results.
func (t *ranked) follow(r *model.Results) {
	if t.begun != r.Begun {
		*t = ranked{most: t.most, begun: r.Begun}
	}
	for ; t.told < len(r.List); t.told++ {
		one := &r.List[t.told]
		if one.Y == nil || !one.Feasible {
			continue
		}
		y := min(max(one.Y[0].Value, -math.MaxFloat64), math.MaxFloat64)
		at, _ := slices.BinarySearchFunc(t.list, y, func(have bandit.Evaluation, y float64) int {
			if have.Y >= y {
				return -1
			}
			return 1
		})
		if at < t.most {
			t.list = slices.Insert(t.list, at, bandit.Evaluation{X: one.X, Y: y})
			t.list = t.list[:min(len(t.list), t.most)]
		}
	}
}

// mayFitQuadratic reports whether quadratics may make suggestions in a study.
func (c *Chooser) mayFitQuadratic(e *model.Engine) bool {
	return c.options.Quadratic && c.plain(e)
}

// quadraticTop returns the best point of a quadratic through the best results, where one explains them
// well and expects more there than the best. It returns no point else, or if the study has it, or
// if it is more likely to fail than not.
func (a *acquisition) quadraticTop(t turn) ([]float64, error) {
	a.ranked.follow(a.engine.Results)
	q := bandit.FitQuadratic(a.ranked.list)
	if q == nil {
		return nil, nil
	}
	x := q.Top()
	c, err := a.decode(x)
	if err != nil || q.At(x) <= 0 || a.repeats(c, x) || a.crowded(t)(x) || a.fails(x) {
		return nil, err
	}
	return x, nil
}

// fails reports whether a trial is more likely to fail than not, by the model of success.
func (a *acquisition) fails(x []float64) bool {
	return a.outlook.Doubts() && a.outlook.LogFeasible(kernel.NewPoints(1, len(x), x))[0] < -math.Ln2
}
