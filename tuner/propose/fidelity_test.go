package propose

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestFidelityKernel compares the kernel with a fidelity with its formula, with
// the one it is composed of in blocks, and its gradient with differences.
func TestFidelityKernel(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		plain, length := randomCovariance(t, rng), 0.2+20*rng.Float64()
		k, err := plain.withFidelity(length)
		if err != nil {
			t.Fatal(err)
		}
		const n = 5
		x := kernel.NewPoints[float64](n, 4, nil)
		for i := range n {
			copy(x.Row(i), append(randomPoint(rng), []float64{0, 12 * rng.Float64()}[rng.IntN(2)]))
		}
		block := make([]float64, n*n)
		var scratch kernel.Scratch
		k.Prepare(x).Fill(block, n, x, 0, n, &scratch)
		for i := range n {
			for j := range n {
				u, v := x.Row(i), x.Row(j)
				want := plain.factor * plain.nearness(u[:3], v[:3]) * math.Exp(-math.Abs(u[3]-v[3])/length)
				if got := k.Eval(x, i, x, j); !close2(got, want, 1e-13) || !close2(block[i*n+j], want, 1e-12) {
					t.Fatalf("k = %v, in a block %v, want %v", got, block[i*n+j], want)
				}
			}
		}
		theta := make([]float64, len(k.Parameters()))
		for i, p := range k.Parameters() {
			theta[i] = math.Log(p.Value)
		}
		grad := make([]float64, len(theta))
		k.AddLogGrad(grad, 1, x, 0, x, 1)
		for i := range theta {
			const h = 1e-6
			at := func(step float64) float64 {
				moved := slices.Clone(theta)
				moved[i] += step
				q, err := k.WithLogParameters(moved)
				if err != nil {
					t.Fatal(err)
				}
				return q.Eval(x, 0, x, 1)
			}
			if diff := (at(h) - at(-h)) / (2 * h); !close2(grad[i], diff, 1e-6) {
				t.Fatalf("slope %d is %v, by differences %v", i, grad[i], diff)
			}
		}
	}
}

// TestFidelityPosterior: with reports among its observations the posterior is the
// exact process of the kernel with a fidelity, at points that have one and at
// points that have none, which are at the full one.
func TestFidelityPosterior(t *testing.T) {
	const seed = 22
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, noise := range []float64{0.3, 1e-3} {
		k, err := randomCovariance(t, rng).withFidelity(5)
		if err != nil {
			t.Fatal(err)
		}
		p, data := newPosterior(k, noise, 0.2, 64, false), gp.Data{}
		var full []sample
		for i := range 30 {
			s := sample{x: randomPoint(rng), y: rng.NormFloat64()}
			lifted := append(slices.Clone(s.x), 0)
			if i%3 > 0 {
				lifted[3] = float64(i % 7)
				s.x = lifted
			}
			p.observe(s)
			full = append(full, sample{x: lifted})
			data.Y, data.Noise = append(data.Y, s.y), append(data.Noise, 0)
		}
		data.X = pointsOf(full, 4)
		exact, err := gp.NewExact(k, data, gp.Options{NoiseVariance: noise, Mean: gp.ConstantMean(0.2)})
		if err != nil {
			t.Fatal(err)
		}
		x, lifted := kernel.NewPoints[float64](9, 3, nil), kernel.NewPoints[float64](9, 4, nil)
		for i := range 9 {
			copy(x.Row(i), randomPoint(rng))
			copy(lifted.Row(i), x.Row(i))
		}
		mean, variance := p.predict(x)
		wantMean, wantVariance, err := exact.Predict(lifted)
		if err != nil {
			t.Fatal(err)
		}
		for i := range mean {
			if !close2(mean[i], wantMean[i], 1e-6) || !close2(variance[i], wantVariance[i], 1e-6) {
				t.Errorf("noise %v: %v ± %v, exact %v ± %v", noise, mean[i], variance[i], wantMean[i], wantVariance[i])
			}
			one, oneVariance := p.predict(kernel.NewPoints(1, 3, x.Row(i)))
			if !close2(one[0], mean[i], 1e-9) || !close2(oneVariance[0], variance[i], 1e-9) {
				t.Errorf("alone it is %v ± %v, among others %v ± %v", one[0], oneVariance[0], mean[i], variance[i])
			}
		}
	}
}

// TestKnots: where curves are an affine map of what they come to, a value at any
// step is worth just that; steps beyond the full one and the outcome are worth
// themselves; whatever the values, the worth is finite and keeps their order.
func TestKnots(t *testing.T) {
	const seed = 23
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	b := &bkb{}
	scale := func(step int64) float64 { return 1 + 0.5*math.Log2(64/float64(step+1)) }
	var list []result
	for i := range 12 {
		final := rng.NormFloat64()
		r := result{trial: i, feasible: true}
		for step := int64(0); step <= 63; step = 2*step + 1 {
			r.low = append(r.low, rung{step, []float64{scale(step)*final - math.Log2(64/float64(step+1))}})
			if i%3 == 2 && step >= 7 { // pruned
				break
			}
		}
		if i%3 != 2 {
			r.y = []measure{{value: final, stdErr: math.NaN(), count: 1}}
		}
		list = append(list, r)
	}
	f := b.newFidelity(list, 0, nil)
	if f == nil || f.Full != 63 {
		t.Fatalf("%+v, want the full step 63", f)
	}
	for _, final := range []float64{-2, 0, 0.3, 5} {
		for _, step := range []int64{1, 3, 15, 31, 63, 1000} {
			s := min(step, 63)
			v := scale(s)*final - math.Log2(64/float64(s+1))
			if got, _ := f.final(f.delta(step), v); math.Abs(got-final) > 0.35*(1+math.Abs(final)) {
				t.Errorf("%v at step %d is worth %v, want %v", v, step, got, final)
			}
		}
	}
	for _, extreme := range [][]float64{{math.MaxFloat64, -math.MaxFloat64}, {1e300, 1e-300}, {0, 0}} {
		for i := range list {
			for _, g := range list[i].low {
				g.y[0] = extreme[rng.IntN(2)]
			}
		}
		f := b.newFidelity(list, 0, nil)
		for range 100 {
			d := 8 * rng.Float64()
			u, v := -math.MaxFloat64, math.MaxFloat64
			if rng.IntN(2) == 0 {
				u, v = rng.NormFloat64(), 1e3
			}
			lo, spread := f.final(d, u)
			hi, _ := f.final(d, v)
			if !(spread >= 0) || math.IsInf(spread, 0) {
				t.Fatalf("the spread is %v", spread)
			}
			if !(lo <= hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
				t.Fatalf("%v and %v at δ = %v are worth %v and %v", u, v, d, lo, hi)
			}
		}
	}
}

// TestStopped: what a stopped trial's last report says of its outcome is what the
// exact process says that has seen nothing else; at the full step it is the
// outcome, once.
func TestStopped(t *testing.T) {
	const seed = 24
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for step := range int64(20) {
		plain, length := randomCovariance(t, rng), 0.5+10*rng.Float64()
		k, err := plain.withFidelity(length)
		if err != nil {
			t.Fatal(err)
		}
		s := surface{Target: target{Spread: 1, Scale: 1}, Fidelity: &fidelity{Full: 15, Length: length}, Theta: k.theta(), Mean: rng.NormFloat64()}
		x, y := randomPoint(rng), rng.NormFloat64()
		told := s.lower(nil, x, []rung{{step, []float64{y}}}, 0, stopped)
		if step >= 15 {
			if len(told) != 1 || told[0].y != y || told[0].extra != 0 {
				t.Errorf("step %d of 15, told %v: %+v", step, y, told)
			}
			continue
		}
		p := newPosterior(k, 1e-9, s.Mean, 4, false)
		p.observe(told[0])
		mean, variance := p.predict(kernel.NewPoints(1, len(x), x))
		if len(told) != 2 || !slices.Equal(told[1].x, x) || !close2(told[1].y, mean[0], 1e-6) || !close2(told[1].extra, variance[0], 1e-6) {
			t.Errorf("step %d of 15, told %v: %+v, want %v with variance %v", step, y, told, mean, variance)
		}
	}
}

// TestReportsTeach: what pruned and running trials have reported moves the
// predictions for them towards what their curves come to, and a forecast is
// surer than a prediction without it. The function is too rough to be known from
// the other trials.
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
	before, ok, err := p.Predict(context.Background(), l.S, []space.Config{trial.Config})
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

// TestForecastsOfTheWorst: a trial far from the others that reports what is far
// worse than all before is foretold to end about there, not at the worst that a
// model tells apart, and what the best is worth does not suffer from it.
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

// TestFitsAreToMeasurements: what the model makes of stopped trials is no part of
// what its hyper-parameters are fitted to, so that a smooth function stays smooth.
func TestFitsAreToMeasurements(t *testing.T) {
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
	if _, err := p.ready(l.S); err != nil {
		t.Fatal(err)
	}
	s := p.engine.model.Surfaces[0]
	at := func(length float64) []float64 {
		s.Fidelity.Length = length
		var y []float64
		for _, it := range p.toFit(p.results.list, 0, &s) {
			y = append(y, it.y)
		}
		return y
	}
	for i, length := range s.Theta[1:] {
		if length < 0.2 {
			t.Errorf("length scale %d of a bowl is %v", i, length)
		}
	}
	if short, long := at(1), at(50); len(short) < 24 || !slices.Equal(short, long) {
		t.Errorf("%d targets to fit to are\n%v\nwith one length of the fidelity,\n%v\nwith another", len(short), short, long)
	}
}

// TestFidelityRestarts: with trials that report and are pruned, told in another
// order than asked for, all suggestions and forecasts come out the same after
// restarts, and the steps of one trial in any order.
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
					f, ok, err := p.(Forecaster).Forecast(context.Background(), l.S, n, 2)
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

// TestHostileReports (reliability.md, L4): whatever was reported, at whatever
// steps, the next suggestion is valid and finite, and a forecast finite.
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
					f, _, err := p.(Forecaster).Forecast(context.Background(), l.S, i, 2)
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
				if d, err := p.(Diagnoser).Diagnose(context.Background(), l.S); err != nil || !finite(d) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
	}
}

// TestManyReports: of a trial with 10⁵ reports a few count, and an ask while it
// runs looks at the latest.
func TestManyReports(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 3)
	trial := study.Trial{State: study.Completed, Epoch: 1}
	for i := range 100_000 {
		step := int64(i*7919) % 100_000
		trial.Reports = append(trial.Reports, study.Report{Epoch: 1, Step: step, Values: []study.NamedValue{{Name: "loss", Value: float64(step)}}})
	}
	low := rungsOf(&trial, spec.Objectives)
	if len(low) != 18 { // ⌊log₂ 10⁵⌋ + 1 levels and the last
		t.Errorf("%d of 10⁵ reports are kept, want 18", len(low))
	}
	for _, g := range low {
		if g.y[0] != -float64(g.step) || g.step != 99_999 && g.step&(g.step+1) != 0 {
			t.Errorf("kept: %+v", g)
		}
	}
	trial.State = study.Running
	begin := time.Now()
	for range 1000 {
		rungsOf(&trial, spec.Objectives)
	}
	t.Logf("%s for each look at a running trial", time.Since(begin)/1000)
	if n := len(rungsOf(&trial, spec.Objectives)); n < 1 || n > 18 {
		t.Errorf("%d reports of a running trial", n)
	}
	s := &surface{Target: target{Spread: 1, Scale: 1}, Fidelity: &fidelity{Full: 99_999, Length: 5}, Theta: []float64{1}}
	if got := len(s.lower(nil, []float64{0.5}, low, 0, stopped)); got > lowRows+1 {
		t.Errorf("%d rows of one trial", got)
	}
}

// TestWithoutReports: a study without reports has the very model that it has when
// reports are ignored, with and without a step given.
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

// TestReportsLeaveRoom: where reports would fill the cap, all but a few inducing
// points are what trials came to, the posterior there is near the exact one, and
// between model events reports leave a quarter of the room.
func TestReportsLeaveRoom(t *testing.T) {
	const seed, trials, limit = 26, 60, 64
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	sp := labtest.Parse(t, `{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1}}`)
	spec := labtest.SpecOf(sp, 2)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: fmt.Sprintf(`{"cap": %d}`, limit)}, spec).(*bkb)
	value := func(u []float64) float64 { return math.Sin(4*u[0]) + math.Cos(5*u[1]) + u[2]*u[0] }
	run := func(u []float64) {
		c, err := sp.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		n := l.S.Trials()
		l.start(Proposal{Suggestions: []study.Suggestion{{Config: c}}})
		final, speed := value(u), 0.5+u[2]
		l.Advance(n, 1, 32, func(step int64) float64 { return final + 3*math.Pow(float64(step), -speed) })
		l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, final)})
	}
	for range trials {
		run(randomPoint(rng))
	}
	l.anchor(p)
	e, err := p.ready(l.S)
	if err != nil {
		t.Fatal(err)
	}
	s := &e.model.Surfaces[0]
	full := len(s.Dictionary)
	for _, row := range s.Rows {
		full -= min(row, 1)
	}
	if full < len(s.Dictionary)*9/10 || !s.Capped {
		t.Errorf("%d of %d inducing points are outcomes; capped: %v", full, len(s.Dictionary), s.Capped)
	}
	// The exact posterior has them all.
	k, err := p.kernelOf(s)
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	var inputs [][]float64
	for i := range p.results.list {
		for _, o := range p.samplesOf(&p.results.list[i], 0, s) {
			samples, inputs = append(samples, o), append(inputs, o.x)
		}
	}
	exact := rebuilt(k, s.Noise, s.Mean, len(samples), false, inputs, samples)
	x := kernel.NewPoints[float64](300, 3, nil)
	for i := range x.Len() {
		copy(x.Row(i), randomPoint(rng))
	}
	mean, variance := exact.predict(x)
	have, got := e.surfaces[0].predict(x)
	off, wide := 0.0, 0.0
	for i := range mean {
		off += math.Pow(have[i]-mean[i], 2) / variance[i] / float64(x.Len())
		wide += math.Log(got[i]/variance[i]) / float64(x.Len())
	}
	if off, wide := math.Sqrt(off), math.Exp(wide); off > 0.3 || wide > 1.2 || wide < 1/1.2 {
		t.Errorf("means are %.2f exact standard deviations off, variances %.2f times the exact ones", off, wide)
	}
	for range 12 {
		run(randomPoint(rng))
	}
	if e, err = p.ready(l.S); err != nil {
		t.Fatal(err)
	}
	post := e.surfaces[0]
	outcomes := 0
	for i := range post.rank() {
		if !post.isReport(post.points[i*post.dim:][:post.dim]) {
			outcomes++
		}
	}
	if outcomes < full+8 {
		t.Errorf("of 12 results since the model event %d are inducing points", outcomes-full)
	}
}
