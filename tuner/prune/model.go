package prune

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Guided is a Pruner that needs the model's forecast of a trial. Its Decide never stops a
// trial. The owner of the model calls Wants, and then Judge with a forecast.
type Guided interface {
	Pruner
	// Wants reports whether a running trial can be judged, and how many standard deviations
	// the bound of its forecast should be away from the mean.
	Wants(trial int) (width float64, ok bool)
	// Judge decides by the forecast of a trial for which Wants was true.
	Judge(f Forecast) Verdict
}

// Forecast is what a model predicts for a running trial, in the unit of the objective.
type Forecast struct {
	Mean, StdDev float64 // of its final value
	Bound        float64 // the mean made better by the wanted number of standard deviations
	Incumbent    float64 // the model's mean at the best trial that has ended
}

// model is the pruner "model".
type model struct {
	*fold[arrival]
	rule *modelRule
}

// modelRule is the rule of the pruner "model".
type modelRule struct {
	metric    metric
	width     float64
	warmup    int64
	least     int
	completed int
	streak    streak
}

// arrival notes whether a trial has reached the warm-up step.
type arrival struct {
	trial int
	due   bool
}

func newModel(o *study.Options, spec study.Spec) Pruner {
	r := &modelRule{metric: readMetric(o, spec, false), width: o.Number("width", 2), warmup: o.Whole("warmup_steps", 0, 0, math.MaxInt64), streak: readStreak(o)}
	r.least = int(o.Whole("min_trials", 5, 1, study.MaxTrials))
	switch {
	case !(r.width > 0 && r.width <= 100):
		o.Fail("pruner.options.width", fmt.Sprint(r.width), "must be above 0 and at most 100", "")
	case len(spec.Objectives) > 1:
		o.Fail("pruner.name", Model, "is for studies with one objective", "use another pruner")
	case len(spec.Objectives) == 1 && r.metric.name != spec.Objectives[0].Name:
		o.Fail("pruner.options.metric", r.metric.name, "must be the objective, of which there is a model", "leave it out")
	}
	return &model{newFold(r).(*fold[arrival]), r}
}

func (r *modelRule) begin(trial int) arrival {
	r.streak.begin(trial)
	return arrival{trial: trial}
}

func (r *modelRule) read(n *arrival, report study.Report) {
	_, ok := r.metric.loss(report)
	n.due = n.due || ok && report.Step >= r.warmup
}

func (r *modelRule) withdraw(n *arrival) { r.streak.withdraw(n.trial) }

func (r *modelRule) finish(_ *arrival, t study.Trial) {
	r.streak.finish(&t)
	if t.State == study.Completed {
		r.completed++
	}
}

func (r *modelRule) judge(n *arrival) Verdict {
	if n.due && r.streak.spares(n.trial) {
		return r.streak.mercy()
	}
	return Verdict{}
}

func (m *model) Wants(trial int) (width float64, ok bool) {
	a := m.running[trial]
	return m.rule.width, a != nil && a.note.due && m.rule.completed >= m.rule.least && !m.rule.streak.spares(trial)
}

func (m *model) Judge(f Forecast) Verdict {
	r := m.rule.metric
	if !(r.flip(f.Bound) > r.flip(f.Incumbent)) {
		return Verdict{}
	}
	return Verdict{Stop: true, Reason: fmt.Sprintf("%s is predicted to end at %.6g ± %.2g, at best %.6g, which is worse than the model's mean %.6g at the best trial",
		r.name, f.Mean, f.StdDev, f.Bound, f.Incumbent)}
}
