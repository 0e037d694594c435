package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
	"gonum.org/v1/gonum/mat"
)

// A pending trial shrinks σ² at its place to σ²ξ²/(σ² + ξ²), for every objective and for
// feasibility, and does not change means.
func TestPendingByDefinition(t *testing.T) {
	l, _ := worked(t, nil, 2, 20, labtest.Wavy)
	l.Do(study.Add{Config: l.Decode(0.99, 0.01), Outcome: study.Outcome{State: study.Infeasible}})
	for i := range 8 {
		l.Do(study.Add{Config: l.Decode(float64(i)/9, 0.5), Outcome: labtest.Completed(l.S.Spec(), 1, float64(i))})
	}
	l.anchor()
	row := at(l.Coordinates(l.run(0.37, 0.81))...)
	e := l.ready()
	if len(e.surfaces) != 3 {
		t.Fatalf("%d surfaces", len(e.surfaces))
	}
	for j, q := range e.Outlook().surfaces {
		mean, was := e.surfaces[j].predict(row)
		now, variance := q.predict(row)
		want := was[0] * q.NoiseVariance() / (was[0] + q.NoiseVariance())
		if math.Abs(variance[0]-want) > 2*significant*q.NoiseVariance() || !close2(now[0], mean[0], 1e-9) {
			t.Errorf("surface %d: %v ± %v, want %v ± %v", j, now[0], variance[0], mean[0], want)
		}
	}
}

// Reports of a running trial move the predictions near it before it has ended. They are
// dropped with the outlook.
func TestRunningReportsMove(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	l, rng := newLab(t, spec, nil), rand.New(rand.NewPCG(7, 7))
	report := func(n int, v float64) {
		var all []study.Report
		for s := range int64(8) {
			all = append(all, study.Report{Step: s + 1, Values: []study.NamedValue{{Name: "loss", Value: v + 1/float64(s+1)}}})
		}
		l.Do(study.ReportValues{Trial: n, Epoch: 1, Reports: all})
	}
	for i := range 12 {
		l.anchor()
		u := l.Coordinates(l.run(rng.Float64(), rng.Float64()))
		v := math.Pow(u[0]-0.3, 2) + math.Pow(u[1]-0.6, 2)
		report(i, v)
		l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, v+0.125)})
	}
	l.anchor()
	row := at(l.Coordinates(l.run(0.35, 0.5))...)
	expected := func() (alone, running float64) {
		e := l.ready()
		before, _ := e.Predict(0, row)
		mean, _ := e.Outlook().Predict(0, row)
		after, _ := e.Predict(0, row)
		if before[0] != after[0] {
			t.Error("the engine itself has heard of what runs")
		}
		return before[0], mean[0]
	}
	if alone, running := expected(); alone != running {
		t.Errorf("nothing was reported, and %v became %v", alone, running)
	}
	report(12, 3) // far worse than all others
	if alone, running := expected(); running > alone-0.5 {
		t.Errorf("after reports of a failure %v is expected, %v without", running, alone)
	}
}

// The option min_noise is in units of the variance of the results.
func TestLeastNoise(t *testing.T) {
	smooth := func(u []float64, _ *rand.Rand) []float64 { return []float64{1000 * (u[0] + u[1])} }
	_, e := worked(t, nil, 1, 20, smooth)
	_, f := worked(t, func(o *Options) { o.MinNoise = 0.3 }, 1, 20, smooth)
	if low, high := e.Event.Surfaces[0].Noise, f.Event.Surfaces[0].Noise; low > 0.01 || high < 0.299 {
		t.Errorf("noise %v, with a least one of 0.3 %v", low, high)
	}
}

// Of very many pending trials the latest count.
func TestManyPending(t *testing.T) {
	l, _ := worked(t, nil, 1, 12, labtest.Wavy)
	enqueue := func(u ...float64) { l.Do(study.Enqueue{Config: l.Decode(u...)}) }
	for range maxPending {
		enqueue(0, 0)
	}
	enqueue(1, 1)
	e, row := l.ready(), at(1, 1)
	_, before := e.Predict(0, row)
	_, after := e.Outlook().Predict(0, row)
	if after[0] > before[0]/2 {
		t.Errorf("σ² of the latest of %d pending trials is %v, %v without it", maxPending+1, after[0], before[0])
	}
}

// A mean of n values counts with precision n/ξ², one with a told standard error with 1/(ξ²
// + (error·slope)²), and the scatter of replicates teaches ξ².
func TestNoiseOfOutcomes(t *testing.T) {
	_, e := worked(t, nil, 1, 20, labtest.Wavy)
	s, p := &e.Event.Surfaces[0], e.surfaces[0]
	precision := func(m Measure) float64 { return 1 / (p.NoiseVariance() + s.outcome([]float64{0, 0}, m).extra) }
	for _, n := range []int{1, 2, 9} {
		if got := precision(Measure{Value: 0.3, StdErr: math.NaN(), Count: n}); !close2(got, float64(n)/s.Noise, 1e-12) {
			t.Errorf("precision %v of %d values, want %v", got, n, float64(n)/s.Noise)
		}
	}
	const h = 1e-6
	slope := (s.Target.Of(0.3+h) - s.Target.Of(0.3-h)) / (2 * h)
	want := 1 / (s.Noise + math.Pow(0.7*slope, 2))
	if got := precision(Measure{Value: 0.3, StdErr: 0.7, Count: 5}); !close2(got, want, 1e-6) {
		t.Errorf("precision %v with a standard error, want %v", got, want)
	}
	learnt := func(spread float64) float64 {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		l := newLab(t, spec, nil)
		for i := range 30 {
			o := labtest.Completed(spec, 0)
			m := math.Sin(3 * float64(i) / 29)
			o.Metrics[0].Values = []float64{m - spread, m + spread, m - spread, m + spread}
			l.Do(study.Add{Config: l.Decode(float64(i)/29, float64(i*7%30)/29), Outcome: o})
		}
		l.anchor()
		e := l.ready()
		return e.Event.Surfaces[0].Target.Deviation(0, math.Sqrt(e.Event.Surfaces[0].Noise))
	}
	for _, spread := range []float64{0.05, 0.4} {
		if got, want := learnt(spread), spread*math.Sqrt(4.0/3); got < want/1.4 || got > want*1.4 {
			t.Errorf("noise of standard deviation %v learnt from replicates, want %v", got, want)
		}
	}
}

// The mean of the prior is m + c·1ᵀ(K + ξ²I)⁻¹(y − m), the expectation of the constant of the kernel,
// in the objective's unit.
func TestPriorMean(t *testing.T) {
	_, e := worked(t, nil, 1, 20, labtest.Wavy)
	s, list := &e.Event.Surfaces[0], e.Results.List
	k, y := mat.NewSymDense(len(list), nil), mat.NewVecDense(len(list), nil)
	for i := range list {
		y.SetVec(i, s.Target.Of(list[i].Y[0].Value)-s.Mean)
		for j := range i + 1 {
			square := 0.0
			for c := range list[i].X {
				square += math.Pow((list[i].X[c]-list[j].X[c])/s.Theta[1+c], 2)
			}
			r := math.Sqrt(5 * square)
			v := s.Constant + s.Theta[0]*(1+r+r*r/3)*math.Exp(-r)
			if i == j {
				v += s.Noise
			}
			k.SetSym(i, j, v)
		}
	}
	var w mat.VecDense
	if err := w.SolveVec(k, y); err != nil {
		t.Fatal(err)
	}
	want := e.Show(0, s.Mean+s.Constant*mat.Sum(&w))
	if got := e.PriorMean(); !close2(got, want, 1e-3) {
		t.Errorf("the mean of the prior is %v, want %v", got, want)
	}
}
