package prune

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

var objectives = []study.Objective{{Name: "loss", Direction: study.Minimize}, {Name: "acc", Direction: study.Maximize}}

func testSpec() study.Spec {
	sp, err := space.New(space.NewConstant("x", space.Int(1)))
	if err != nil {
		panic(err)
	}
	return study.Spec{Space: sp, Objectives: objectives, Seed: 7, MaxRetries: 1}
}

// components has every pruner with each of its options, but Model, which needs a proposer.
var components = []study.Component{
	{Name: Median, Options: `{"min_trials": 2}`},
	{Name: Median, Options: `{"min_trials": 1, "metric": "acc"}`},
	{Name: Median, Options: `{"min_trials": 1, "max_streak": 1}`},
	{Name: Median, Options: `{"min_trials": 1, "max_streak": 0}`},
	{Name: Percentile, Options: `{"percentile": 30, "min_trials": 2, "warmup_steps": 1, "interval_steps": 2}`},
	{Name: Percentile, Options: `{"percentile": 99.5, "min_trials": 1, "metric": "extra", "direction": "maximize"}`},
	{Name: ASHA, Options: `{"reduction_factor": 2}`},
	{Name: ASHA, Options: `{"min_trials": 1, "metric": "acc", "min_resource": 2, "max_resource": 9}`},
	{Name: Hyperband, Options: `{"max_resource": 9, "min_trials": 1}`},
	{Name: Hyperband, Options: `{"max_resource": 8, "reduction_factor": 2, "brackets": 2, "metric": "extra", "direction": "minimize"}`},
	{Name: Threshold, Options: `{"upper": 1.5}`},
	{Name: Threshold, Options: `{"lower": 0.5, "upper": 1, "metric": "extra", "warmup_steps": 3, "interval_steps": 2}`},
	{Name: Patience, Options: `{"patience_steps": 3}`},
	{Name: Patience, Options: `{"patience_steps": 1, "min_delta": 0.5, "warmup_steps": 4, "metric": "acc"}`},
}

func must(t interface {
	Helper()
	Fatalf(string, ...any)
}, c study.Component,
) Pruner {
	t.Helper()
	p, err := New(c, testSpec())
	if err != nil {
		t.Fatalf("%s %s: %v", c.Name, c.Options, err)
	}
	return p
}

// lab is a random study.
type lab struct {
	t     *rapid.T
	s     study.Study
	heard func(study.Trial) // called with every trial that changed
}

func newLab(t *rapid.T, heard func(study.Trial)) *lab {
	l := &lab{t: t, heard: heard}
	l.do(study.Create{Spec: testSpec()})
	return l
}

// do sends a command and passes on the trials that it changed. It ignores refusals, which
// the tests of package study cover.
func (l *lab) do(c study.Command) {
	_, events, err := l.s.Decide(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), c)
	if err != nil {
		return
	}
	for _, e := range events {
		if err := l.s.Apply(e); err != nil {
			l.t.Fatalf("%v", err)
		}
		for _, n := range concerned(e) {
			t, _ := l.s.Trial(n)
			l.heard(t)
		}
	}
}

// concerned returns the trials to update after an event, as a service does.
func concerned(e study.Event) []int {
	switch b := e.Body.(type) {
	case study.Started:
		return []int{b.Trial}
	case study.Reported:
		return []int{b.Trial}
	case study.Expired:
		return []int{b.Trial}
	case study.Told:
		return []int{b.Trial}
	case study.Added:
		return []int{b.Trial}
	default:
		return nil
	}
}

// step sends a random command.
func (l *lab) step() {
	t := l.t
	n := 0
	if l.s.Trials() > 0 {
		n = rapid.IntRange(0, l.s.Trials()-1).Draw(t, "trial")
	}
	trial, _ := l.s.Trial(n)
	switch rapid.IntRange(0, 12).Draw(t, "what") {
	case 0, 1, 2:
		l.do(study.Ask{Count: 1}) // from the queue, if there is one
		l.do(study.Start{Ask: study.Ask{Count: 1}, Trial: l.s.Trials(), Suggestion: study.Suggestion{Config: config()}})
	case 3, 4, 5, 6, 7:
		l.do(study.ReportValues{Trial: n, Reports: reports(t)})
	case 8, 9:
		l.do(study.Tell{Trial: n, Outcome: outcome(t, study.Completed)})
	case 10:
		state := rapid.SampledFrom([]study.TrialState{study.Pruned, study.Failed, study.Infeasible}).Draw(t, "state")
		l.do(study.Tell{Trial: n, Outcome: outcome(t, state)})
	case 11:
		l.do(study.Expire{Trial: n, Epoch: trial.Epoch})
	default:
		l.do(study.Add{Config: config(), Reports: reports(t), Outcome: outcome(t, study.Completed)})
	}
}

func config() space.Config {
	return space.NewConfig(space.Assignment{Name: "x", Value: space.Int(1)})
}

func outcome(t *rapid.T, state study.TrialState) study.Outcome {
	return study.Outcome{State: state, Metrics: []study.Metric{
		{Name: "loss", Values: []float64{value(t, math.Inf(1))}}, {Name: "acc", Values: []float64{value(t, math.Inf(-1))}},
	}}
}

// reports returns a batch in any order of steps, with all kinds of numbers.
func reports(t *rapid.T) []study.Report {
	steps := rapid.SliceOfNDistinct(rapid.Int64Range(0, 14), 1, 6, rapid.ID[int64]).Draw(t, "steps")
	out := make([]study.Report, len(steps))
	for i, s := range steps {
		out[i].Step = s
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"loss", "acc", "extra"}), 1, 3, rapid.ID[string]).Draw(t, "metrics") {
			x := float64(rapid.IntRange(0, 20).Draw(t, "extra")) / 10
			switch name {
			case "loss":
				x = value(t, math.Inf(1))
			case "acc":
				x = value(t, math.Inf(-1))
			}
			out[i].Values = append(out[i].Values, study.NamedValue{Name: name, Value: x})
		}
	}
	return out
}

// value returns the value of an objective. There are few different ones, so that ties
// occur.
func value(t *rapid.T, bad float64) float64 {
	switch k := rapid.IntRange(0, 24).Draw(t, "value"); k {
	case 0:
		return math.NaN()
	case 1:
		return bad
	case 2:
		return math.Copysign(math.MaxFloat64, bad)
	default:
		return float64(k) / 10
	}
}

// On random histories every pruner decides after every event as its slow twin, which reads
// the whole history.
func TestPrunersAgreeWithTheirTwins(t *testing.T) {
	all := 0 // stops of all pruners, because a pruner that rarely applies may have none
	for _, c := range components {
		t.Run(c.Name+c.Options, func(t *testing.T) {
			stops, verdicts := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				p := must(t, c)
				slow := twinOf(p)
				l := newLab(t, p.Update)
				for range rapid.IntRange(1, racetest.Size(60, 120)).Draw(t, "steps") {
					l.step()
					history := slices.Collect(l.s.All(0))
					for n := range history {
						got, want := p.Decide(n), slow(history, n)
						if got.Stop != want || got.Stop && got.Reason == "" {
							t.Fatalf("trial %d: got %+v, want %t", n, got, want)
						}
						verdicts++
						if got.Stop {
							stops++
						}
					}
				}
			})
			t.Logf("%d of %d verdicts were to stop", stops, verdicts)
			all += stops
		})
	}
	if all < 1000 { // of some 30,000
		t.Errorf("the histories are too tame: %d verdicts were to stop", all)
	}
}

// A pruner may receive changes late, several of a trial at once. A new one may receive the
// study in any order and some trials twice. Both agree with one that received each change.
func TestPrunersCanBeLateOrMadeAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(components).Draw(t, "pruner")
		p, late := must(t, c), must(t, c)
		l := newLab(t, p.Update)
		for range 80 {
			l.step()
			if rapid.IntRange(0, 7).Draw(t, "catch up") == 0 {
				for trial := range l.s.All(0) {
					late.Update(trial)
				}
				compare(t, p, late, l.s.Trials())
			}
		}
		anew := must(t, c)
		for _, trial := range rapid.Permutation(slices.Collect(l.s.All(0))).Draw(t, "order") {
			anew.Update(trial)
			if rapid.Bool().Draw(t, "twice") {
				anew.Update(trial)
			}
		}
		compare(t, p, anew, l.s.Trials())
	})
}

func compare(t *rapid.T, p, q Pruner, trials int) {
	t.Helper()
	for n := range trials {
		if a, b := p.Decide(n), q.Decide(n); a != b {
			t.Fatalf("trial %d: %+v and %+v", n, a, b)
		}
	}
}

// Trials that failed or were infeasible, and reports of NaN, do not change the verdict
// about other trials.
func TestFailuresAndNaNChangeNothingForOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(components).Draw(t, "pruner")
		p := must(t, c)
		l := newLab(t, p.Update)
		for range 60 {
			l.step()
		}
		without := must(t, c)
		for trial := range l.s.All(0) {
			if trial.State == study.Failed || trial.State == study.Infeasible {
				continue
			}
			if c.Name != Threshold && c.Name != Patience { // both compare a trial only with itself
				trial.Reports = withoutNaN(trial.Reports)
			}
			without.Update(trial)
		}
		compare(t, p, without, l.s.Trials())
	})
}

func withoutNaN(reports []study.Report) []study.Report {
	out := slices.Clone(reports)
	for i := range out {
		out[i].Values = slices.DeleteFunc(slices.Clone(out[i].Values), func(v study.NamedValue) bool { return math.IsNaN(v.Value) })
	}
	return out
}

// The example of a ladder with rungs 1, 4, 16 and η = 4, worked out by hand.
func TestASHALadder(t *testing.T) {
	p := must(t, study.Component{Name: ASHA})
	report := func(trial int, losses ...float64) Verdict {
		x := study.Trial{Number: trial, State: study.Running, Epoch: 1}
		for i, v := range losses {
			x.Reports = append(x.Reports, study.Report{Epoch: 1, Step: int64(i + 1), Values: []study.NamedValue{{Name: "loss", Value: v}}})
		}
		p.Update(x)
		return p.Decide(trial)
	}
	for trial, loss := range []float64{0.5, 0.7, 0.9} {
		if v := report(trial, loss); v.Stop {
			t.Errorf("trial %d is stopped on a rung with %d trials: %s", trial, trial+1, v.Reason)
		}
	}
	if v := report(3, 0.6); !v.Stop || v.Reason != "loss 0.6 since step 1 is worse than that of 1 of the 4 trials on the rung of step 1, of which 1 continue" {
		t.Errorf("the second best of 4: %+v", v)
	}
	if v := report(0, 0.5, 0.45); v.Stop {
		t.Errorf("the best of 4: %+v", v)
	}
	if v := report(1, 0.7, 0.49); v.Stop { // better now than trial 0 was on the rung
		t.Errorf("a late improvement: %+v", v)
	}
	if v := report(2, 0.9, 0.51); !v.Stop {
		t.Errorf("not enough of an improvement: %+v", v)
	}
}

// Trials are divided among brackets in the proportions of the paper. With η = 3 and R = 81
// r they are 81, 34, 15, 8 and 5 in 143 (Hyperband, table 1).
func TestHyperbandBrackets(t *testing.T) {
	p := must(t, study.Component{Name: Hyperband, Options: `{"max_resource": 81}`})
	h := p.(*fold[climb]).rule.(*halving)
	var weights []uint64
	for _, b := range h.brackets {
		weights = append(weights, b.weight)
	}
	if want := []uint64{81, 34, 15, 8, 5}; !slices.Equal(weights, want) {
		t.Errorf("weights %v, want %v", weights, want)
	}
	for k, want := range []string{"1 3 9 27", "3 9 27", "9 27", "27", ""} {
		var got []string
		for _, r := range h.brackets[k].rungs {
			got = append(got, fmt.Sprint(r.resource))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("bracket %d: rungs %v, want %s", k, got, want)
		}
	}
	count := make([]float64, 5)
	const n = 14_300
	for trial := range n {
		count[h.bracketOf(trial)]++
	}
	for k, w := range weights { // 5 standard deviations, exceeded once in 340,000 runs
		want := float64(w) * 100
		if d := math.Abs(count[k] - want); d > 5*math.Sqrt(want) {
			t.Errorf("bracket %d: %g of %d trials, want %g", k, count[k], n, want)
		}
	}
}

// With min_resource and max_resource at their extremes nothing overflows.
func TestHyperbandExtremes(t *testing.T) {
	for options, brackets := range map[string]int{
		`{"max_resource": 1000000000000000, "reduction_factor": 2}`: 50,
		`{"max_resource": 1}`:  1,
		`{"max_resource": 26}`: 3,
		`{"max_resource": 27}`: 4,
		`{"max_resource": 1000000000000000, "min_resource": 1000000000000000}`: 1,
		`{"max_resource": 1000000, "reduction_factor": 1000000}`:               2,
	} {
		h := must(t, study.Component{Name: Hyperband, Options: options}).(*fold[climb]).rule.(*halving)
		if len(h.brackets) != brackets {
			t.Errorf("%s: %d brackets, want %d", options, len(h.brackets), brackets)
		}
		for trial := range 1000 {
			h.bracketOf(trial)
		}
	}
	h := must(t, study.Component{Name: ASHA, Options: `{"reduction_factor": 2}`}).(*fold[climb]).rule.(*halving)
	if n := len(h.brackets[0].rungs); n != 63 {
		t.Errorf("%d rungs up to 2⁶³", n)
	}
}

func TestNoPruner(t *testing.T) {
	for _, name := range []string{"", None} {
		if p, err := New(study.Component{Name: name}, testSpec()); p != nil || err != nil {
			t.Errorf("%q: %v, %v", name, p, err)
		}
	}
}

func TestFaultyComponents(t *testing.T) {
	for _, test := range []struct{ name, options, want string }{
		{"wilcoxon", ``, `pruner.name = "wilcoxon": there is no such pruner; use none, median, percentile, asha, hyperband, threshold, patience or model`},
		{"none", `{"a": 1}`, `pruner.options.a = 1: there is no such option; none has no options`},
		{"median", `{"percentile": 30}`, `pruner.options.percentile = 30: there is no such option; the options of median are metric, direction, warmup_steps, interval_steps, max_streak, min_trials`},
		{"median", `7`, `pruner.options = 7: must be a JSON object; write it as {"name": value}`},
		{"median", `{"metric": "recall"}`, `pruner.options.metric = recall: is not an objective, so its direction is not known; give the direction too, minimize or maximize`},
		{"median", `{"metric": ""}`, `pruner.options.metric = "": must name a metric`},
		{"median", `{"metric": null}`, `pruner.options.metric = null: must be a string`},
		{"median", `{"direction": "maximize"}`, `pruner.options.direction = maximize: the objective loss is to minimize; leave it out`},
		{"median", `{"direction": null}`, `pruner.options.direction = null: must be minimize or maximize`},
		{"median", `{"min_trials": 0}`, `pruner.options.min_trials = 0: must be a whole number from 1 to 10000000`},
		{"median", `{"interval_steps": 0}`, `pruner.options.interval_steps = 0: must be a whole number from 1 to 9223372036854775807`},
		{"percentile", `{"percentile": 100}`, `pruner.options.percentile = 100: must be above 0 and below 100`},
		{"percentile", `{"percentile": "half"}`, `pruner.options.percentile = "half": must be a finite number`},
		{"percentile", `{"percentile": 1e999}`, `pruner.options.percentile = 1e999: must be a finite number`},
		{"asha", `{"reduction_factor": 1}`, `pruner.options.reduction_factor = 1: must be a whole number from 2 to 1000000`},
		{"asha", `{"reduction_factor": 0, "min_resource": -1}`, `pruner.options.min_resource = -1: must be a whole number from 1 to 1000000000000000`},
		{"asha", `{"brackets": 2}`, `pruner.options.brackets = 2: there is no such option; the options of asha are metric, direction, min_resource, reduction_factor, max_resource, min_trials`},
		{"asha", `{"min_resource": 5, "max_resource": 4}`, `pruner.options.max_resource = 4: must be at least min_resource, 5`},
		{"hyperband", `{}`, `pruner.options.max_resource = none: hyperband needs the last step of a trial; give the last step that trials report`},
		{"hyperband", `{"max_resource": 9, "brackets": 4}`, `pruner.options.brackets = 4: must be a whole number from 1 to 3`},
		{"hyperband", `{"max_resource": 9, "max_resource": 9}`, `pruner.options.max_resource = 9: is there twice; remove one`},
		{"threshold", ``, `pruner.options = no bound: threshold needs lower, upper or both`},
		{"threshold", `{"lower": 2, "upper": 1}`, `pruner.options.lower = 2: must not be above upper, 1`},
		{"threshold", `{"upper": 1, "direction": "minimize"}`, `pruner.options.direction = "minimize": there is no such option; the options of threshold are metric, warmup_steps, interval_steps, lower, upper`},
		{"model", ``, `pruner.name = model: is for studies with one objective; use another pruner`},
		{"model", `{"width": 0}`, `pruner.options.width = 0: must be above 0 and at most 100`},
		{"patience", ``, `pruner.options.patience_steps = none: must be given; give the number of steps without improvement after which a trial stops`},
		{"patience", `{"patience_steps": 0}`, `pruner.options.patience_steps = 0: must be a whole number from 1 to 9223372036854775807`},
		{"patience", `{"patience_steps": 1, "min_delta": -1}`, `pruner.options.min_delta = -1: must not be negative`},
	} {
		_, err := New(study.Component{Name: test.name, Options: test.options}, testSpec())
		var invalid *study.InvalidError
		if !errors.As(err, &invalid) || err.Error() != test.want {
			t.Errorf("%s %s:\ngot  %v\nwant %s", test.name, test.options, err, test.want)
		}
	}
	for _, c := range components {
		if _, err := New(c, study.Spec{}); err == nil && !strings.Contains(c.Options, "extra") {
			t.Errorf("%s %s: no error for a spec without objectives", c.Name, c.Options)
		}
	}
}

// Options of any text are accepted or refused without a panic.
func FuzzNew(f *testing.F) {
	for _, c := range components {
		f.Add(c.Name, c.Options)
	}
	f.Add(ASHA, `{"reduction_factor":0}`)
	f.Fuzz(func(t *testing.T, name, options string) {
		p, err := New(study.Component{Name: name, Options: options}, testSpec())
		if err == nil && p != nil {
			p.Update(study.Trial{State: study.Running, Epoch: 1, Reports: []study.Report{{Epoch: 1, Step: 1, Values: []study.NamedValue{{Name: "loss", Value: 1}}}}})
			p.Decide(0)
		}
	})
}

// TestMedianOf leaves out NaN, and takes the mean of the two values in the middle.
func TestMedianOf(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		values []float64
		want   float64
		ok     bool
	}{
		{nil, 0, false},
		{[]float64{math.NaN()}, 0, false},
		{[]float64{3}, 3, true},
		{[]float64{4, math.NaN(), 1, 2}, 2, true},
		{[]float64{4, 1, 2, 8}, 3, true},
		{[]float64{inf, 1, inf}, inf, true},
	} {
		if got, ok := MedianOf(c.values); got != c.want || ok != c.ok {
			t.Errorf("%v: %g, %t", c.values, got, ok)
		}
	}
}

// TestEveryPrunerIsTried checks that components leaves out no pruner.
func TestEveryPrunerIsTried(t *testing.T) {
	for _, name := range Names() {
		if name != Model && !slices.ContainsFunc(components, func(c study.Component) bool { return c.Name == name }) {
			t.Errorf("components has no %s", name)
		}
	}
}
