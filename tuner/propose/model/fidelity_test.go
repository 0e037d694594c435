package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// With reports among its observations the posterior is the exact process of the kernel with
// a fidelity. This holds at points that have a fidelity and at points that have none, which
// are at the full one.
func TestFidelityPosterior(t *testing.T) {
	const seed = 22
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, noise := range []float64{0.3, 1e-3} {
		k, err := randomKernel(t, rng).WithFidelity(5)
		if err != nil {
			t.Fatal(err)
		}
		p, data := newPosterior(k, noise, 0.2, 64, false, nil, nil), gp.Data{}
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
		data.X = p.data(full...).X
		exact, err := gp.NewExact(k, data, gp.Options{NoiseVariance: noise, Mean: 0.2})
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

// Where curves are an affine map of their outcomes, a value at any step converts to its
// outcome exactly. Values at the full step or beyond, and the outcome, convert to
// themselves. For any values, the result is finite and keeps their order.
func TestKnots(t *testing.T) {
	const seed = 23
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var o Options
	scale := func(step int64) float64 { return 1 + 0.5*math.Log2(64/float64(step+1)) }
	var list []Result
	for i := range 12 {
		final := rng.NormFloat64()
		r := Result{Trial: i, Feasible: true}
		for step := int64(0); step <= 63; step = 2*step + 1 {
			r.Low = append(r.Low, Rung{step, []float64{scale(step)*final - math.Log2(64/float64(step+1))}})
			if i%3 == 2 && step >= 7 { // pruned
				break
			}
		}
		if i%3 != 2 {
			r.Y = []Measure{{Value: final, StdErr: math.NaN(), Count: 1}}
		}
		list = append(list, r)
	}
	f := newFidelity(list, 0, nil, &o)
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
			for _, g := range list[i].Low {
				g.Y[0] = extreme[rng.IntN(2)]
			}
		}
		f := newFidelity(list, 0, nil, &o)
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

// The prediction for a stopped trial's outcome from its last report equals that of the
// exact process with no other data. At the full step it is the outcome, counted once.
func TestStopped(t *testing.T) {
	const seed = 24
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for step := range int64(20) {
		plain, length := randomKernel(t, rng), 0.5+10*rng.Float64()
		constant := float64(step % 2)
		k, err := plain.WithConstant(constant).WithFidelity(length)
		if err != nil {
			t.Fatal(err)
		}
		s := Surface{Constant: constant, Target: Target{Spread: 1, Scale: 1}, Fidelity: &fidelity{Full: 15, Length: length}, Theta: k.Theta(), Mean: rng.NormFloat64()}
		x, y := randomPoint(rng), rng.NormFloat64()
		told := s.lower(nil, x, []Rung{{step, []float64{y}}}, 0, stopped)
		if step >= 15 {
			if len(told) != 1 || told[0].y != y || told[0].extra != 0 {
				t.Errorf("step %d of 15, told %v: %+v", step, y, told)
			}
			continue
		}
		p := newPosterior(k, 1e-9, s.Mean, 4, false, nil, nil)
		p.observe(told[0])
		mean, variance := p.predict(kernel.NewPoints(1, len(x), x))
		if len(told) != 2 || !slices.Equal(told[1].x, x) || !close2(told[1].y, mean[0], 1e-6) || !close2(told[1].extra, variance[0], 1e-6) {
			t.Errorf("step %d of 15, told %v: %+v, want %v with variance %v", step, y, told, mean, variance)
		}
	}
}

// Hyper-parameters are not fitted to outcomes that the model inferred for stopped trials.
func TestFitsAreToMeasurements(t *testing.T) {
	sp := labtest.Parse(t, labtest.Spaces["continuous"])
	spec := labtest.SpecOf(sp, 2)
	l, rng := newLab(t, spec, nil), rand.New(rand.NewPCG(2, 2))
	for i := range 24 {
		l.anchor()
		l.run(rng.Float64(), rng.Float64())
		trial, _ := l.S.Trial(i)
		final := labtest.Bowl(sp, trial.Config)
		steps, o := int64(16), labtest.Completed(spec, final)
		if i%3 == 2 {
			steps, o = 2, study.Outcome{State: study.Pruned}
		}
		l.Advance(i, 1, steps, func(step int64) float64 { return labtest.Curve(final, step) })
		l.Do(study.Tell{Trial: i, Outcome: o})
	}
	s := l.ready().Event.Surfaces[0]
	f := builder{space: sp, seed: spec.Seed}
	with := func(length float64) []float64 {
		s.Fidelity.Length = length
		var y []float64
		for _, it := range f.toFit(l.m.Results.List, 0, &s) {
			y = append(y, it.y)
		}
		return y
	}
	if short, long := with(1), with(50); len(short) < 24 || !slices.Equal(short, long) {
		t.Errorf("%d targets to fit to are\n%v\nwith one length of the fidelity,\n%v\nwith another", len(short), short, long)
	}
}

// Of a trial with 10⁵ reports only a few count, and an ask while it runs reads the latest.
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
		if g.Y[0] != -float64(g.Step) || g.Step != 99_999 && g.Step&(g.Step+1) != 0 {
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
	s := &Surface{Target: Target{Spread: 1, Scale: 1}, Fidelity: &fidelity{Full: 99_999, Length: 5}, Theta: []float64{1}}
	if got := len(s.lower(nil, []float64{0.5}, low, 0, stopped)); got > lowRows+1 {
		t.Errorf("%d rows of one trial", got)
	}
}

// Where reports would fill the cap, all but a few inducing points are outcomes. The
// posterior there is near the exact one. Between model events reports leave a quarter of
// the room.
func TestReportsLeaveRoom(t *testing.T) {
	const seed, trials, limit = 26, 60, 64
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	sp := labtest.Parse(t, `{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1}}`)
	spec := labtest.SpecOf(sp, 2)
	l := newLab(t, spec, func(o *Options) { o.Cap = limit })
	value := func(u []float64) float64 { return math.Sin(4*u[0]) + math.Cos(5*u[1]) + u[2]*u[0] }
	run := func(u []float64) {
		n := l.run(u...)
		final, speed := value(u), 0.5+u[2]
		l.Advance(n, 1, 32, func(step int64) float64 { return final + 3*math.Pow(float64(step), -speed) })
		l.Do(study.Tell{Trial: n, Outcome: labtest.Completed(spec, final)})
	}
	for range trials {
		run(randomPoint(rng))
	}
	l.anchor()
	e := l.ready()
	s := &e.Event.Surfaces[0]
	full := len(s.Dictionary)
	for _, row := range s.Rows {
		full -= min(row, 1)
	}
	if full < len(s.Dictionary)*9/10 || !s.Capped {
		t.Errorf("%d of %d inducing points are outcomes; capped: %v", full, len(s.Dictionary), s.Capped)
	}
	// The exact posterior has them all.
	k, err := s.kernel(sp)
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	var inputs [][]float64
	for i := range l.m.Results.List {
		for _, o := range s.samples(&l.m.Results.List[i], 0) {
			samples, inputs = append(samples, o), append(inputs, o.x)
		}
	}
	exact := newPosterior(k, s.Noise, s.Mean, len(samples), false, inputs, samples)
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
	e = l.ready()
	post := e.surfaces[0]
	outcomes := 0
	inducing, _ := post.Inducing()
	for i := range post.Rank() {
		if !isReport(post.k, inducing.(*kernel.Points[float64]).Row(i)) {
			outcomes++
		}
	}
	if outcomes < full+8 {
		t.Errorf("of 12 results since the model event %d are inducing points", outcomes-full)
	}
}
