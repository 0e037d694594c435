package propose

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

const curveSteps = 81

// curveTask is a task whose value is the end of a learning curve, with loss at step s =
// final + gap(x)·((s/81)^−speed(x) − 1)/(81^speed(x) − 1) + noise.
type curveTask struct {
	task
	gap, speed func(u []float64) float64
	noise      float64
}

// at returns the loss after a step. The noise of each trial is its own.
func (k curveTask) at(c space.Config, trial int, seed uint64, step int64) float64 {
	u := make([]float64, k.Space.Dim())
	if err := k.Space.Encode(c, u); err != nil {
		panic(err)
	}
	p := k.speed(u)
	left := (math.Pow(float64(step)/curveSteps, -p) - 1) / (math.Pow(curveSteps, p) - 1)
	rng := stream.New(stream.Derive(seed, "curve", uint64(trial)*1000+uint64(step)))
	return k.Value(c) + k.gap(u)*left + k.noise*rng.NormFloat64()
}

func curveTasks(t labtest.Fataler) []curveTask {
	constant := func(v float64) func([]float64) float64 { return func([]float64) float64 { return v } }
	branin, hartmann := boxTask(t, problems.Branin{}), boxTask(t, problems.Hartmann6{})
	ackley := boxTask(t, problems.Ackley{Dim: 5, Shift: 1.3})
	return []curveTask{
		{branin, constant(100), constant(0.5), 0},
		// Slow learners may end best, because gaps and speeds depend on x.
		{branin, func(u []float64) float64 { return 40 + 160*u[0] }, func(u []float64) float64 { return 0.2 + 0.8*u[1] }, 1},
		{hartmann, constant(3), constant(0.7), 0.02},
		{hartmann, func(u []float64) float64 { return 1 + 4*u[0] }, func(u []float64) float64 { return 0.3 + u[3] }, 0.02},
		{ackley, func(u []float64) float64 { return 3 + 10*u[2] }, func(u []float64) float64 { return 0.3 + 0.7*u[1] }, 0.1},
	}
}

// curveRun runs a study and returns, for each of the budgets in steps, the least final loss
// of the trials that ran to the end.
func curveRun(t labtest.Fataler, k curveTask, c study.Component, rule string, seed uint64, workers int, budgets []int) []float64 {
	spec := labtest.SpecOf(k.Space, seed)
	l, p := newLab(t, spec), must(t, c, spec)
	pruner := curveRules{rule: rule, at: make(map[int][]float64), ended: make(map[int][]float64)}
	type run struct {
		trial, step int
		curve       []float64
	}
	var running []run
	best, spent, at := math.Inf(1), 0, []float64(nil)
	for len(at) < len(budgets) {
		for len(running) < workers {
			running = append(running, run{trial: l.step(p)})
		}
		for i := range running {
			w := &running[i]
			w.step++
			trial, _ := l.S.Trial(w.trial)
			y := k.at(trial.Config, w.trial, seed, int64(w.step))
			l.Do(study.ReportValues{Trial: w.trial, Reports: []study.Report{{Step: int64(w.step), Values: []study.NamedValue{{Name: "loss", Value: y}}}}})
			if spent++; len(at) < len(budgets) && spent >= budgets[len(at)] {
				at = append(at, best-k.Best)
			}
			var o study.Outcome
			w.curve = append(w.curve, y)
			switch {
			case w.step == curveSteps:
				o = labtest.Completed(spec, y)
				best = min(best, k.Value(trial.Config))
				pruner.completed(w.curve)
			case pruner.stops(t, p, l, w.trial, w.curve):
				o = study.Outcome{State: study.Pruned}
			default:
				continue
			}
			l.Do(study.Tell{Trial: w.trial, Outcome: o})
			w.trial = -1
		}
		running = slices.DeleteFunc(running, func(r run) bool { return r.trial < 0 })
	}
	return at
}

// TestCurveExperiment compares ways to learn from reports. Set BKB_EXPERIMENT_CURVES to the
// number of seeds to run it.
func TestCurveExperiment(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("BKB_EXPERIMENT_CURVES"))
	if err != nil {
		t.Skip("takes minutes a seed: BKB_EXPERIMENT_CURVES=10 go test -timeout 0 -run TestCurveExperiment ./tuner/propose runs it over so many seeds")
	}
	options := []string{""}
	if text := os.Getenv("BKB_EXPERIMENT_OPTIONS"); text != "" {
		options = strings.Split(text, ";")
	}
	pruners := []string{"median", "asha", "model"}
	if text := os.Getenv("BKB_EXPERIMENT_PRUNERS"); text != "" {
		pruners = strings.Split(text, ";")
	}
	budgets := []int{15 * curveSteps, 30 * curveSteps}
	for i, k := range curveTasks(t) {
		if only := os.Getenv("BKB_EXPERIMENT_TASKS"); only != "" && !slices.Contains(strings.Split(only, ","), fmt.Sprint(i)) {
			continue
		}
		for _, pr := range pruners {
			for _, o := range options {
				line := make([]string, len(budgets))
				for seed := range seeds {
					for b, v := range curveRun(t, k, study.Component{Name: BKB, Options: o}, pr, uint64(seed+1), 2, budgets) {
						line[b] += fmt.Sprintf(" %.4g", v)
					}
				}
				for b := range budgets {
					fmt.Printf("RESULT %s%d;%s;%s;%d;%s\n", k.Name, i, pr, o, budgets[b], strings.TrimSpace(line[b]))
				}
			}
		}
	}
}

// curveRules are the rules of package prune that the experiment needs, because the import
// rules do not allow that package here. They are the median rule, halving with η = 3 from
// step 3 on, and the rule of the pruner model.
type curveRules struct {
	rule  string
	at    map[int][]float64 // losses at the steps of the ladder
	ended map[int][]float64 // losses of completed trials, by step
}

func (r *curveRules) completed(curve []float64) {
	for i, y := range curve {
		r.ended[i] = append(r.ended[i], y)
	}
}

func (r *curveRules) stops(t labtest.Fataler, p Proposer, l *lab, trial int, curve []float64) bool {
	i := len(curve) - 1
	switch r.rule {
	case "median":
		others := slices.Sorted(slices.Values(r.ended[i]))
		return len(others) >= 5 && slices.Min(curve) > (others[(len(others)-1)/2]+others[len(others)/2])/2
	case "asha":
		if step := i + 1; step != 3 && step != 9 && step != 27 {
			return false
		}
		r.at[i] = append(r.at[i], curve[i])
		better := 0
		for _, y := range r.at[i] {
			if y < curve[i] {
				better++
			}
		}
		return len(r.at[i]) >= 3 && better >= max(1, len(r.at[i])/3)
	default:
		if len(r.ended[i]) < 5 {
			return false
		}
		f, ok, err := p.(Modeler).Forecast(context.Background(), l.S, trial, 2)
		if err != nil {
			t.Fatalf("forecast: %v", err)
		}
		return ok && f.Bound > f.Incumbent
	}
}
