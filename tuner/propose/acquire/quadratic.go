package acquire

import (
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// mayFitQuadratic reports whether quadratics may make suggestions in a study.
func (c *Chooser) mayFitQuadratic(e *model.Engine) bool {
	return c.options.Quadratic && c.plain(e)
}

// quadraticTop returns the best point of a quadratic through the best results, where one explains them
// well and expects more there than the best. It returns no point else, or if the study has it, or
// if it is more likely to fail than not.
func (a *acquisition) quadraticTop(t turn) ([]float64, error) {
	a.elite.follow(a.engine.Results)
	var best []bandit.Evaluation
	for _, i := range a.elite.ranked[:min(len(a.elite.ranked), bandit.MostOfQuadratic(a.spec.Space.Dim()))] {
		r := &a.engine.Results.List[i]
		best = append(best, bandit.Evaluation{X: r.X, Y: valueOf(r)})
	}
	q := bandit.FitQuadratic(best)
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
