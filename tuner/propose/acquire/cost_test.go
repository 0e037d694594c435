package acquire

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Scores are log(u − μ*) − p·log c with μ* the best mean of the results, c the cost that
// the model predicts, and p = 1 or the share of the study's MaxCost that is left.
// Candidates that are no better than μ* come after all that are.
func TestThriftByDefinition(t *testing.T) {
	for _, all := range []float64{0, 100} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		spec.MaxCost = all
		l := newSubject(t, spec, func(m *model.Options, _ *Options) { m.Cost = model.CostTold })
		spent := 0.0
		for i := range 14 {
			l.Start(l.propose(1).Suggestions...)
			u := l.Coordinates(i)
			o := labtest.Completed(spec, math.Pow(u[0]-0.3, 2)+u[1])
			o.Cost = math.Exp(2*u[1] - u[0])
			spent += o.Cost
			l.Do(study.Tell{Trial: i, Outcome: o})
		}
		l.anchor()
		e := l.at()
		if e == nil || e.Event.Expense == nil {
			t.Fatal("no model of costs")
		}
		reference := math.Inf(-1)
		for i := range l.model.Results.List {
			mean, _ := e.Predict(0, row(l.model.Results.List[i].X...))
			reference = max(reference, mean[0])
		}
		power := 1.0
		if all > 0 {
			power = 1 - spent/all
		}
		a, rng := l.ahead(), rand.New(rand.NewPCG(1, 2))
		x := kernel.NewPoints[float64](50, 2, nil)
		bounds := make([]float64, x.Len())
		for i := range bounds {
			x.Row(i)[0], x.Row(i)[1], bounds[i] = rng.Float64(), rng.Float64(), reference+rng.NormFloat64()
		}
		scores := slices.Clone(bounds)
		a.costWeight().weigh(scores, e.LogCost(x))
		apart := 0
		for i, u := range bounds {
			cost := e.LogCost(row(x.Row(i)...))[0]
			if math.Abs(cost-(2*x.Row(i)[1]-x.Row(i)[0])) > 0.3 {
				apart++
			}
			if u <= reference {
				if best := slices.Max(scores); scores[i] > best-5 {
					t.Errorf("a bound below the best mean has score %v of %v", scores[i], best)
				}
			} else if want := math.Log(u-reference) - power*cost; !close2(scores[i], want, 1e-9) {
				t.Errorf("score %v, want %v with power %v", scores[i], want, power)
			}
		}
		if apart > 10 {
			t.Errorf("%d of 50 costs are foretold far from what they are", apart)
		}
	}
}

// Two settings have no effect, cost weighing without reported costs, and a budget from
// which nothing is spent. Suggestions and the diagnosis warn about them. Late results are
// spent like others.
func TestCostsThatComeToNothing(t *testing.T) {
	for _, k := range []struct {
		cost       model.CostSource
		max, told  float64
		takes      time.Duration
		warned     []string
		spentAtAll bool
	}{
		{model.CostTold, 0, 0, 0, []string{"option cost has no effect: 0 of 9 results were told"}, false},
		{model.CostTold, 100, 0, 0, []string{"option cost has no effect", "study's max_cost is not spent"}, false},
		{model.CostTold, 100, 2, 0, nil, true},
		{model.CostSeconds, 0, 0, 0, []string{"option cost has no effect: 0 of 9 results have a running time"}, false},
		{model.CostSeconds, 100, 0, time.Second, []string{"costs have their full weight until"}, false},
		{model.CostSeconds, 100, 2, time.Second, nil, true},
		{model.CostSeconds, 0, 0, time.Second, nil, false},
		{model.CostIgnored, 100, 0, 0, []string{"study's max_cost is not spent"}, false},
		{model.CostIgnored, 0, 0, 0, nil, false},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 1)
		spec.MaxCost = k.max
		l := newSubject(t, spec, func(m *model.Options, _ *Options) { m.Cost = k.cost })
		for i := range 8 {
			l.step()
			if i == 3 { // another worker takes it over
				l.Do(study.Expire{Trial: i, Epoch: 1})
				l.Do(study.Ask{Count: 1})
				l.Do(study.Tell{Trial: i, Epoch: 1, Outcome: study.Outcome{State: study.Failed, Reason: study.FailedCrash, Cost: 5 * k.told}})
			}
			trial, _ := l.S.Trial(i)
			o := labtest.Completed(spec, labtest.Bowl(spec.Space, trial.Config))
			o.Cost = k.told
			l.At(labtest.Began.Add(k.takes), study.Tell{Trial: i, Outcome: o})
		}
		warned := l.propose(1).Warnings
		d := l.chooser.Diagnose(l.at(), l.S.Trials())
		if !slices.Equal(d.Warnings, warned) || len(warned) != len(k.warned) {
			t.Errorf("%+v: warned %q, diagnosed %q", k, warned, d.Warnings)
			continue
		}
		for i, text := range k.warned {
			if !strings.Contains(warned[i], text) || !regexp.MustCompile("; (tell|run|end) ").MatchString(warned[i]) {
				t.Errorf("%+v: warned %q, without what to do or %q", k, warned[i], text)
			}
		}
		spent := l.model.Results.Spent
		if spent != l.S.Cost() || (spent > 0) != k.spentAtAll {
			t.Errorf("%+v: %v is spent, the proposer counts %v", k, l.S.Cost(), spent)
		}
		if w := l.ahead().costWeight(); k.spentAtAll && (w == nil || w.power != 1-l.S.Cost()/k.max) {
			t.Errorf("%+v: costs weigh %+v", k, w)
		}
	}
}
