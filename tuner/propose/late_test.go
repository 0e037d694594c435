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
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// lateOutcome returns one of many kinds. A trial gets no other outcome under its last
// lease.
func lateOutcome(spec study.Spec, rng *rand.Rand, c space.Config) study.Outcome {
	values := make([]float64, len(spec.Objectives))
	for j := range values {
		values[j] = float64(j) + labtest.Bowl(spec.Space, c)*float64(1-2*(j%2)) + 0.1*rng.NormFloat64()
	}
	o := labtest.Completed(spec, values...)
	o.Cost = 1 + rng.Float64()
	loss := &o.Metrics[slices.IndexFunc(o.Metrics, func(m study.Metric) bool { return m.Name == "loss" })]
	switch rng.IntN(12) {
	case 0:
		o = study.Outcome{State: study.Infeasible}
	case 1:
		o = study.Outcome{State: study.Failed, Reason: study.FailedCrash, Cost: 2}
	case 2:
		o = study.Outcome{State: study.Failed, Reason: study.FailedCancelled}
	case 3:
		loss.Values = []float64{math.NaN()}
	case 4:
		loss.Values = []float64{values[0], values[0] + 0.1, values[0] - 0.05}
	case 5:
		loss.HasStdErr, loss.StdErr = true, 0.2
	case 6:
		o.State = study.Pruned
	case 7:
		loss.Values[0] = math.Inf(1) // the bad side
	}
	return o
}

func lateReports(rng *rand.Rand, final float64) []study.Report {
	var out []study.Report
	for step := int64(1); step <= int64(1+rng.IntN(20)); step++ {
		out = append(out, study.Report{Step: step, Values: []study.NamedValue{{Name: "loss", Value: labtest.Curve(final, step)}}})
	}
	return out
}

// lateStudies are the studies in which late results are tested. They have options,
// objectives, and a flag for reports.
var lateStudies = []struct {
	space, options string
	objectives     int
	reports        bool
}{
	{"continuous", `{}`, 1, false},
	{"mixed", `{"constraints": {"loss": {"max": 0.5}}}`, 1, false},
	{"conditional", `{"cost": "told", "failures": "ignore"}`, 1, false},
	{"mixed", `{}`, 2, false},
	{"continuous", `{}`, 1, true},
}

// In a study trials are taken over, and their former holders tell late results. Its model
// equals to the bit that of a study in which the same outcomes, with the reports under the
// same leases, belong to separate trials. Late results come before the new holder's outcome
// or after it, or belong to a trial that still runs or has expired.
func TestLateIsAReplicate(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	for _, k := range lateStudies {
		for seed := range uint64(2) {
			rng := rand.New(rand.NewPCG(seed, 21))
			spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces[k.space]), seed)
			for j := 1; j < k.objectives; j++ {
				spec.Objectives = append(spec.Objectives, study.Objective{Name: string(rune('a' + j)), Direction: study.Maximize})
			}
			c := study.Component{Name: BKB, Options: k.options}
			l, p := newLab(t, spec), must(t, c, spec)
			twin, q := newLab(t, spec), must(t, c, spec)
			told := 0
			tell := func(n, epoch int, reports []study.Report) {
				trial, _ := l.S.Trial(n)
				o := lateOutcome(spec, rng, trial.Config)
				l.Do(study.Tell{Trial: n, Epoch: epoch, Outcome: o})
				twin.Do(study.Add{Config: trial.Config, Outcome: o, Reports: reports})
				if o.Reason != study.FailedCancelled {
					told++
				}
			}
			compare := func(when string) {
				l.anchor(p)
				twin.anchor(q)
				u := make([]float64, spec.Space.Dim())
				var at []space.Config
				for range 20 {
					for i := range u {
						u[i] = rng.Float64()
					}
					config, err := spec.Space.Decode(u)
					if err != nil {
						t.Fatal(err)
					}
					at = append(at, config)
				}
				got, ok, err := predict(p, l.S, at)
				want, okToo, errToo := predict(q, twin.S, at)
				if err != nil || errToo != nil || ok != okToo || !ok && told > 30 {
					t.Fatalf("%+v, seed %d, %s: %t, %v and %t, %v", k, seed, when, ok, err, okToo, errToo)
				}
				for i := range want {
					if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
						t.Fatalf("%+v, seed %d, %s: at %v it is %v, of replicates %v", k, seed, when, at[i], got[i], want[i])
					}
				}
				if n, m := len(p.(*bkb).Results.List), len(q.(*bkb).Results.List); n != m {
					t.Fatalf("%+v, seed %d, %s: %d results, of replicates %d", k, seed, when, n, m)
				}
			}
			for i := range 36 {
				u := make([]float64, spec.Space.Dim())
				for i := range u {
					u[i] = rng.Float64()
				}
				config, err := spec.Space.Decode(u)
				if err != nil {
					t.Fatal(err)
				}
				l.Do(study.Enqueue{Config: config})
				report := func() (r []study.Report) {
					if k.reports {
						r = lateReports(rng, labtest.Bowl(spec.Space, config))
						l.Do(study.ReportValues{Trial: i, Reports: r})
					}
					return r
				}
				l.Do(study.Ask{Count: 1})
				first := report()
				if i%3 == 0 { // no worker takes it over
					tell(i, 1, first)
					continue
				}
				l.Do(study.Expire{Trial: i, Epoch: 1})
				l.Do(study.Ask{Count: 1})
				second := report()
				switch rng.IntN(5) {
				case 0:
					tell(i, 1, first)
					tell(i, 2, second)
				case 1:
					tell(i, 2, second)
					tell(i, 1, first)
				case 2: // runs on
					tell(i, 1, first)
				case 3: // expired finally, because specOf allows one retry
					l.Do(study.Expire{Trial: i, Epoch: 2})
					tell(i, 1, first)
				case 4: // late again
					tell(i, 1, first)
					l.Do(study.Expire{Trial: i, Epoch: 2})
					tell(i, 2, second)
				}
				if i%12 == 10 {
					compare(fmt.Sprintf("after trial %d", i))
				}
			}
			if err := l.S.Check(); err != nil || l.S.LateResults() < 10 {
				t.Fatalf("%d late results, %v", l.S.LateResults(), err)
			}
			compare("at the end")
		}
	}
}

// Trials expire, are taken over and told late, in any order. All suggestions, forecasts,
// recommendations and diagnoses are the same after restarts, and each model is remade as it
// was (see lab.anchor).
func TestLateSurvivesRestarts(t *testing.T) {
	racetest.Alone(t)
	for i, k := range lateStudies {
		t.Run(k.space+k.options, func(t *testing.T) {
			more := []string{`"cap": 16`, `"cap": 200`}[i%2]
			if k.objectives > 1 {
				more = `"cap": 16`
			}
			options := `{` + more + `}`
			if len(k.options) > 2 {
				options = `{` + more + `, ` + k.options[1:]
			}
			c := study.Component{Name: BKB, Options: options}
			spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces[k.space]), 5)
			spec.MaxRetries = 2
			for j := 1; j < k.objectives; j++ {
				spec.Objectives = append(spec.Objectives, study.Objective{Name: string(rune('a' + j)), Direction: study.Maximize})
			}
			late, between := 0, 0
			run := func(restart bool) []string {
				l, p := newLab(t, spec), must(t, c, spec)
				rng := rand.New(rand.NewPCG(3, 4))
				var out []string
				for i := range 18 {
					proposal := l.propose(p, 1+i%2)
					for _, g := range proposal.Suggestions {
						out = append(out, fmt.Sprint(g.Config, g.Seed, g.Phase, g.Mean, g.StdDev, g.Bound, g.Seen))
					}
					l.start(proposal)
					for n := range l.S.Trials() {
						trial, _ := l.S.Trial(n)
						switch draw := rng.IntN(6); {
						case trial.Epoch > 1 && draw < 3 && len(trial.Late) < trial.Epoch-1:
							if trial.State.Terminal() {
								between++
							}
							l.Do(study.Tell{Trial: n, Epoch: len(trial.Late) + 1, Outcome: lateOutcome(spec, rng, trial.Config)})
						case trial.State != study.Running:
						case k.reports && len(trial.CurrentReports()) == 0 && draw < 5:
							l.Do(study.ReportValues{Trial: n, Reports: lateReports(rng, labtest.Bowl(spec.Space, trial.Config))})
							f, ok, err := p.(Modeler).Forecast(context.Background(), l.S, n, 2)
							out = append(out, fmt.Sprint(f, ok, err))
						case draw == 3:
							l.Do(study.Expire{Trial: n, Epoch: trial.Epoch})
							if again, _ := l.S.Trial(n); again.State == study.Queued {
								l.Do(study.Ask{Count: 1})
							}
						case draw > 3:
							l.Do(study.Tell{Trial: n, Outcome: lateOutcome(spec, rng, trial.Config)})
						}
						if rng.IntN(4) > 0 && restart {
							p = l.restart(c, spec)
						}
					}
					best, err := recommend(p, l.S)
					d, errToo := p.(Modeler).Diagnose(context.Background(), l.S)
					out = append(out, fmt.Sprint(best, err, d, errToo))
				}
				late = l.S.LateResults()
				return out
			}
			straight, restarted := run(false), run(true)
			for i := range straight {
				if straight[i] != restarted[i] {
					t.Fatalf("%s: answer %d was\n%s and is\n%s", options, i, straight[i], restarted[i])
				}
			}
			if late < 5 || between == 0 {
				t.Errorf("%s: %d late results, %d of trials that were over", options, late, between)
			}
		})
	}
}

// Where measurements decide, the recommended trial has the best mean of all its measurements.
func TestLateAndTheBest(t *testing.T) {
	recommended := func(own float64, late ...float64) int {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 3)
		spec.MaxRetries = 3
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"noise": "none"}`}, spec)
		rng := rand.New(rand.NewPCG(3, 24))
		for i := range 30 { // two places of equal value, among others
			u := []float64{rng.Float64(), rng.Float64()}
			if i < 2 {
				u = []float64{0.3 + 0.001*float64(i), 0.6}
			}
			c, err := spec.Space.Decode(u)
			if err != nil {
				t.Fatal(err)
			}
			l.Do(study.Enqueue{Config: c})
			l.Do(study.Ask{Count: 1})
			if i == 0 {
				for k := range late {
					l.Do(study.Expire{Trial: 0, Epoch: k + 1})
					l.Do(study.Ask{Count: 1})
				}
			}
			v := 4 + rng.NormFloat64()
			if i < 2 {
				v = []float64{own, 0.2}[i]
			}
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, v)})
			if i == 1 {
				for k, v := range late {
					l.Do(study.Tell{Trial: 0, Epoch: k + 1, Outcome: labtest.Completed(spec, v)})
				}
			}
		}
		l.anchor(p)
		best, err := recommend(p, l.S)
		if err != nil || len(best) != 1 {
			t.Fatalf("%v, %v", best, err)
		}
		return best[0]
	}
	if n := recommended(0); n != 0 {
		t.Errorf("trial %d is recommended where trial 0 measured best", n)
	}
	for _, k := range []struct {
		want int
		own  float64
		late []float64
	}{{0, 0, []float64{0.3}}, {1, 0, []float64{0.6}}, {1, 0.6, []float64{0}}, {0, 0.6, []float64{0, -0.1}}, {1, 0, []float64{0, 0.9}}} {
		if n := recommended(k.own, k.late...); n != k.want {
			t.Errorf("trial %d is recommended, where 0 measured %v and %v, and 1 0.2", n, k.own, k.late)
		}
	}
}

// predict returns the predictions of a proposer's model. If there is none, ok is false.
func predict(p Proposer, v View, at []space.Config) (out []surrogate.Prediction, ok bool, err error) {
	m, _, _, err := p.(Modeler).Freeze(context.Background(), v)
	if m == nil || err != nil {
		return nil, false, err
	}
	out, err = m.Predict(at)
	return out, true, err
}
