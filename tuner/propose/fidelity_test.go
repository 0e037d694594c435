package propose

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Reports of pruned and running trials move the predictions for them towards the final
// values of their curves. A forecast is more certain than a prediction without reports. The
// function is too rough to be predicted from the other trials.
func TestReportsTeach(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, labtest.Spaces["continuous"])
	rough := func(c space.Config) float64 {
		u := make([]float64, sp.Dim())
		if err := sp.Encode(c, u); err != nil {
			t.Fatal(err)
		}
		return math.Sin(25*u[0]) + math.Cos(31*u[1])
	}
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
	for i := range 12 {
		n := l.S.Trials()
		l.start(l.propose(p, 1))
		trial, _ := l.S.Trial(n)
		final := rough(trial.Config)
		steps := int64(16)
		if i%3 == 2 {
			steps = 4
		}
		l.Advance(n, 1, steps, func(step int64) float64 { return labtest.Curve(final, step) })
		o := labtest.Completed(spec, final)
		if i%3 == 2 {
			o = study.Outcome{State: study.Pruned}
		}
		l.Do(study.Tell{Trial: n, Outcome: o})
	}
	n := l.S.Trials()
	l.start(l.propose(p, 1))
	trial, _ := l.S.Trial(n)
	before, ok, err := predict(p, l.S, []space.Config{trial.Config})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, ok, err := p.Forecast(context.Background(), l.S, n, 2); ok || err != nil {
		t.Errorf("a forecast without reports: %v, %v", ok, err)
	}
	final := before[0].Mean[0] + 1 // a surprise
	l.Advance(n, 1, 8, func(step int64) float64 { return labtest.Curve(final, step) })
	f, ok, err := p.Forecast(context.Background(), l.S, n, 2)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if math.Abs(f.Mean-final) > 0.3 || !(f.Bound < f.Mean && f.StdDev > 0 && f.StdDev < before[0].StdDev[0]) {
		t.Errorf("foretold %+v, the prediction was %v, it comes to %v", f, before[0].Mean[0], final)
	}
	if f.Bound <= f.Incumbent {
		t.Errorf("so bad a trial has bound %v, the best is worth %v", f.Bound, f.Incumbent)
	}
	if _, ok, err := p.Forecast(context.Background(), l.S, 0, 2); ok || err != nil {
		t.Errorf("a forecast of what has ended: %v, %v", ok, err)
	}
}

// A trial is far from the others and reports values far worse than all before. Its forecast
// is near those values, and not at the worst value that the model distinguishes. The
// prediction at the best trial stays good.
func TestForecastsOfTheWorst(t *testing.T) {
	const seed = 25
	t.Logf("seed %d", seed)
	for name, shape := range map[string]func(v float64) float64{
		"even":   func(v float64) float64 { return v },
		"skewed": func(v float64) float64 { return math.Exp(3 * v) },
	} {
		for _, report := range []float64{1e3, 1e5, 1e9} {
			rng := rand.New(rand.NewPCG(seed, 1))
			sp := labtest.Parse(t, labtest.Spaces["continuous"])
			spec := labtest.SpecOf(sp, 2)
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
			run := func(u []float64) int {
				c, err := sp.Decode(u)
				if err != nil {
					t.Fatal(err)
				}
				n := l.S.Trials()
				l.start(Proposal{Suggestions: []study.Suggestion{{Config: c}}})
				return n
			}
			for range 24 {
				n := run([]float64{0.3 * rng.Float64(), 0.3 * rng.Float64()})
				final := shape(rng.NormFloat64())
				l.Advance(n, 1, 8, func(int64) float64 { return final })
				l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, final)})
			}
			l.anchor(p)
			n := run([]float64{0.9, 0.9})
			l.Advance(n, 1, 7, func(int64) float64 { return report })
			f, ok, err := p.Forecast(context.Background(), l.S, n, 2)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if f.Mean < report/20 || f.Mean > 20*report || !(f.Bound < f.Mean && f.Bound > f.Incumbent) {
				t.Errorf("%s: after reports of %v it is foretold %+v", name, report, f)
			}
		}
	}
}

// The model's estimates for stopped trials do not enter the fit of its hyper-parameters, so
// the length scales of a bowl stay long.
func TestSmoothStaysSmooth(t *testing.T) {
	sp := labtest.Parse(t, labtest.Spaces["continuous"])
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
	for i := range 24 {
		l.start(l.propose(p, 1))
		trial, _ := l.S.Trial(i)
		final := labtest.Bowl(sp, trial.Config)
		steps, o := int64(16), labtest.Completed(spec, final)
		if i%3 == 2 {
			steps, o = 2, study.Outcome{State: study.Pruned}
		}
		l.Advance(i, 1, steps, func(step int64) float64 { return labtest.Curve(final, step) })
		l.Do(study.Tell{Trial: i, Outcome: o})
	}
	e, err := p.At(l.S)
	if err != nil {
		t.Fatal(err)
	}
	for i, length := range e.Event.Surfaces[0].Theta[1:] {
		if length < 0.2 {
			t.Errorf("length scale %d of a bowl is %v", i, length)
		}
	}
}

// Trials report, are pruned, and are told in another order than asked for. All suggestions
// and forecasts are the same after restarts, and do not depend on the order of the steps of
// one trial.
func TestFidelityRestarts(t *testing.T) {
	racetest.Alone(t)
	c := study.Component{Name: BKB, Options: `{"cap": 24}`}
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 5)
	run := func(restart, reversed bool) []string {
		l, p := newLab(t, spec), must(t, c, spec)
		rng := rand.New(rand.NewPCG(3, 4))
		var out []string
		for i := range 40 {
			proposal := l.propose(p, 1+i%2)
			for _, g := range proposal.Suggestions {
				out = append(out, fmt.Sprint(g.Config, g.Phase, g.Mean, g.StdDev, g.Bound))
			}
			l.start(proposal)
			for n := range l.S.Trials() {
				trial, _ := l.S.Trial(n)
				if trial.State != study.Running || rng.IntN(3) == 0 {
					continue
				}
				to := int64(1 + rng.IntN(20))
				final := labtest.Bowl(spec.Space, trial.Config)
				if len(trial.Reports) == 0 {
					var steps []study.Report
					for step := int64(1); step <= to; step++ {
						steps = append(steps, study.Report{Step: step, Values: []study.NamedValue{{Name: "loss", Value: labtest.Curve(final, step)}}})
					}
					if reversed {
						slices.Reverse(steps)
					}
					l.Do(study.ReportValues{Trial: n, Reports: steps})
					f, ok, err := p.(Modeler).Forecast(context.Background(), l.S, n, 2)
					out = append(out, fmt.Sprint(f, ok, err))
					continue
				}
				o := labtest.Completed(spec, final)
				if rng.IntN(2) == 0 {
					o = study.Outcome{State: study.Pruned}
				}
				l.Do(study.Tell{Trial: n, Outcome: o})
			}
			if restart {
				p = l.restart(c, spec)
			}
		}
		return out
	}
	straight := run(false, false)
	for name, other := range map[string][]string{"restarted": run(true, false), "backwards": run(false, true)} {
		for i := range straight {
			if straight[i] != other[i] {
				t.Fatalf("%s: answer %d was\n%s and is\n%s", name, i, straight[i], other[i])
			}
		}
	}
}

// After any reports at any steps, the next suggestion is valid and finite, and so is a
// forecast.
func TestHostileReports(t *testing.T) {
	racetest.Alone(t)
	big := math.MaxFloat64
	for name, report := range map[string]func(i, k int) (int64, float64){
		"nan":       func(_, k int) (int64, float64) { return int64(k), math.NaN() },
		"infinite":  func(_, k int) (int64, float64) { return int64(k), math.Inf(1) },
		"huge":      func(_, k int) (int64, float64) { return int64(k), []float64{big, -big, 1e300, 0}[k%4] },
		"far":       func(_, k int) (int64, float64) { return math.MaxInt64 - int64(k), float64(k) },
		"some far":  func(i, k int) (int64, float64) { return []int64{math.MaxInt64, 1}[i%2] * int64(1-k%2), float64(k) },
		"backwards": func(_, k int) (int64, float64) { return int64(100 - k), float64(k) },
		"one step":  func(i, _ int) (int64, float64) { return 0, float64(i) },
		"constant":  func(_, k int) (int64, float64) { return int64(k), 3 },
		"tiny":      func(i, k int) (int64, float64) { return int64(k), 5e-324 * float64(i) },
		"wild":      func(i, k int) (int64, float64) { return int64(k * k * k), math.Pow(-10, float64((i*7+k)%300)) },
	} {
		for _, options := range []string{`{"cap": 16}`, `{"cap": 16, "max_step": 9223372036854775807}`, `{"cap": 16, "max_step": 1}`} {
			t.Run(name+options, func(t *testing.T) {
				spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 3)
				l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
				for i := range 16 {
					proposal := l.propose(p, 1)
					l.start(proposal)
					told := make(map[int64]bool)
					for k := range 30 {
						step, v := report(i, k)
						if step < 0 || told[step] {
							continue
						}
						told[step] = true
						l.Do(study.ReportValues{Trial: i, Reports: []study.Report{{Step: step, Values: []study.NamedValue{{Name: "loss", Value: v}}}}})
					}
					f, _, err := p.(Modeler).Forecast(context.Background(), l.S, i, 2)
					if s := f.Mean + f.StdDev + f.Bound + f.Incumbent; err != nil || math.IsNaN(s) {
						t.Fatalf("forecast: %+v, %v", f, err)
					}
					switch i % 3 {
					case 0:
						l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, float64(i))})
					case 1:
						l.Do(study.Tell{Trial: i, Outcome: study.Outcome{State: study.Pruned}})
					}
				}
				if d, err := p.(Modeler).Diagnose(context.Background(), l.S); err != nil || !finite(d) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
	}
}

// A study without reports has the same model as when reports are ignored, with and without
// a step.
func TestWithoutReports(t *testing.T) {
	racetest.Alone(t)
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 3)
	run := func(options string) string {
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
		var out string
		for i := range 14 {
			proposal := l.propose(p, 1)
			out += fmt.Sprint(proposal.Suggestions[0])
			l.start(proposal)
			trial, _ := l.S.Trial(i)
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(spec.Space, trial.Config))})
		}
		a, _ := l.S.Anchor(l.S.Position())
		return out + string(a.Model)
	}
	plain := run("")
	for _, options := range []string{`{"reports": "ignore"}`, `{"max_step": 50}`} {
		if got := run(options); got != plain {
			t.Errorf("%s:\n%s\nwant\n%s", options, got, plain)
		}
	}
}
