package model

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// log Φ agrees with scipy.special.log_ndtr, and the hazard with its differences.
func TestLogNormal(t *testing.T) {
	for z, want := range map[float64]float64{
		-1000: -500007.8266948122, -40: -804.6084420137539, -20.5: -214.06672896326387, -20: -203.9171553710973,
		-19.9: -201.91716770733265, -5: -15.064998393988727, -1: -1.8410216450092634, 0: -0.6931471805599453,
		2: -0.023012909328963476, 9: -1.1285884059538324e-19,
	} {
		if got := logNormal(z); math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("log Φ(%v) = %v, want %v", z, got, want)
		}
		const h = 1e-5
		if z == farTail {
			continue // the two forms differ by more than h there
		}
		if got, want := hazard(z), (logNormal(z+h)-logNormal(z-h))/(2*h); math.Abs(got-want) > 1e-5*max(want, 1) {
			t.Errorf("hazard at %v = %v, want %v", z, got, want)
		}
	}
}

// limits are constraints on the metrics width, from 0.3 to 0.5, and time, at most 20.
func limits(o *Options) {
	o.Constraints = []Constraint{{"time", math.Inf(-1), 20}, {"width", 0.3, 0.5}}
}

// limitedLab returns a study of n trials on a square whose outcomes outcome makes.
func limitedLab(t *testing.T, n int, outcome func(u []float64, spec study.Spec) study.Outcome) (*lab, *Engine) {
	t.Helper()
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	l := newLab(t, spec, limits)
	rng := stream.New(3)
	for range n {
		u := []float64{rng.Float64(), rng.Float64()}
		l.Do(study.Add{Config: l.Decode(u...), Outcome: outcome(u, spec)})
	}
	l.anchor()
	return l, l.ready()
}

// measuredAt returns a completed outcome. Time grows to the right by orders of magnitude, and
// width upwards.
func measuredAt(u []float64, spec study.Spec) study.Outcome {
	o := labtest.Completed(spec, (u[0]-0.9)*(u[0]-0.9)+u[1])
	o.Metrics = append(o.Metrics,
		study.Metric{Name: "time", Values: []float64{math.Exp(7 * u[0])}},
		study.Metric{Name: "width", Values: []float64{u[1] + 0.05*u[0]}})
	return o
}

// The probability to keep the limits is high inside, low outside, and 1/2 on an edge. The
// oracle draws outcomes of each metric from its posterior.
func TestLogFeasible(t *testing.T) {
	_, e := limitedLab(t, 60, measuredAt)
	if len(e.Event.Surfaces) != 1 || len(e.Event.Limited) != 2 {
		t.Fatalf("%d surfaces, %d limits", len(e.Event.Surfaces), len(e.Event.Limited))
	}
	edge := math.Log(20) / 7 // of time
	for _, c := range []struct {
		u         []float64
		low, high float64
	}{
		{[]float64{0.2, 0.4}, 0.99, 1},
		{[]float64{0.9, 0.4}, 0, 0.01},
		{[]float64{0.2, 0.9}, 0, 0.01},
		{[]float64{0.2, 0.1}, 0, 0.01},
		{[]float64{edge, 0.4}, 0.05, 0.95},
	} {
		if p := math.Exp(e.Past().LogFeasible(at(c.u...))[0]); p < c.low || p > c.high {
			t.Errorf("at %v the probability is %v, want %v to %v", c.u, p, c.low, c.high)
		}
	}
	rng := stream.New(11)
	for range 30 {
		u := []float64{rng.Float64(), rng.Float64()}
		product := 1.0
		for i, p := range e.limited {
			s := e.Event.Limited[i]
			mean, variance := p.predict(at(u...))
			below, above := 0, 0
			const draws = 20_000
			for range draws {
				y := mean[0] + math.Sqrt(variance[0]+p.NoiseVariance())*rng.NormFloat64()
				if y >= s.low {
					above++
				}
				if y <= s.top {
					below++
				}
			}
			product *= float64(above) / draws * (float64(below) / draws)
		}
		if got := math.Exp(e.Past().LogFeasible(at(u...))[0]); math.Abs(got-product) > 0.02 {
			t.Errorf("at %v the probability is %v, and of drawn outcomes the share is %v", u, got, product)
		}
	}
}

// The gradient of a probe agrees with differences of μ + log p and σ, with limits, and with
// failures in addition.
func TestLimitedProbe(t *testing.T) {
	failing := func(u []float64, spec study.Spec) study.Outcome {
		if u[0]+u[1] > 1.5 {
			return study.Outcome{State: study.Failed, Reason: study.FailedCrash}
		}
		return measuredAt(u, spec)
	}
	for _, outcome := range []func([]float64, study.Spec) study.Outcome{measuredAt, failing} {
		_, e := limitedLab(t, 40, outcome)
		for _, s := range e.Event.Limited {
			s.Noise = 1e-2 // so that rounding of σ does not matter
		}
		e, err := newEngine(e.builder, e.Results, e.Event, e.Event.Results)
		if err != nil {
			t.Fatal(err)
		}
		o := e.Outlook()
		probe := o.Probe(nil)
		value := func(u []float64) (score, sd float64) {
			mean, variance := o.Predict(0, at(u...))
			return mean[0] + o.LogFeasible(at(u...))[0], math.Sqrt(variance[0])
		}
		rng := stream.New(5)
		for range 40 {
			u := []float64{0.05 + 0.9*rng.Float64(), 0.05 + 0.9*rng.Float64()}
			m, sd, err := probe.Value(u)
			if want, wantSD := value(u); err != nil || math.Abs(m-want) > 1e-6*(1+math.Abs(want)) || math.Abs(sd-wantSD) > 1e-6 {
				t.Fatalf("at %v: %v ± %v, %v, want %v ± %v", u, m, sd, err, want, wantSD)
			}
			g, _ := probe.Gradient()
			g = slices.Clone(g)
			for c := range u {
				const h = 1e-6
				up, down := slices.Clone(u), slices.Clone(u)
				up[c], down[c] = u[c]+h, u[c]-h
				high, _ := value(up)
				low, _ := value(down)
				if want := (high - low) / (2 * h); err != nil || math.Abs(g[c]-want) > 1e-3*(1+math.Abs(want)) {
					t.Errorf("at %v, coordinate %d: slope %v, %v, want %v", u, c, g[c], err, want)
				}
			}
		}
	}
}

// A trial that breaks a limit is no failure. A crash is one, and so is a missing
// metric. Such a trial teaches nothing about the metric.
func TestFailuresApart(t *testing.T) {
	crash := func(u []float64, spec study.Spec) study.Outcome {
		switch o := measuredAt(u, spec); {
		case u[1] > 0.9:
			return study.Outcome{State: study.Failed, Reason: study.FailedCrash}
		case u[1] > 0.8:
			o.Metrics = o.Metrics[:len(o.Metrics)-1]
			return o
		default:
			return o
		}
	}
	l, e := limitedLab(t, 40, crash)
	if len(e.Event.Surfaces) != 2 {
		t.Fatalf("%d surfaces, want 2", len(e.Event.Surfaces))
	}
	for _, r := range l.m.Results.List {
		label := e.Event.Surfaces[1].samples(&r, success)[0].y
		if want := r.X[1] > 0.8; want != (label < 0) {
			t.Errorf("trial %d at %v has the label %v", r.Trial, r.X, label)
		}
		if n := len(e.Event.Limited[1].samples(&r, limitOf(1))); (n == 0) != (r.X[1] > 0.8) {
			t.Errorf("trial %d at %v teaches %d widths", r.Trial, r.X, n)
		}
	}
	if p := e.Past().LogFeasible(at(0.2, 0.95))[0]; p > -3 {
		t.Errorf("the probability at a crash is %v", math.Exp(p))
	}
}

// With more results than inducing points, those nearest to a limit are inducing points, and
// the edge stays sharp.
func TestManyLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	l := newLab(t, spec, func(o *Options) { limits(o); o.Cap = 32 })
	rng := stream.New(3)
	for range 300 {
		u := []float64{rng.Float64(), rng.Float64()}
		l.Do(study.Add{Config: l.Decode(u...), Outcome: measuredAt(u, spec)})
	}
	l.anchor()
	e := l.ready()
	wrong := 0
	for range 500 {
		u := []float64{rng.Float64(), rng.Float64()}
		keeps := Violation(l.m.options.Constraints, measuredAt(u, spec)) == 0
		if likely := e.Past().LogFeasible(at(u...))[0] > math.Log(0.25); likely != keeps {
			wrong++
		}
	}
	if wrong > 15 {
		t.Errorf("%d of 500 configurations are on the wrong side", wrong)
	}
	list := l.m.Results.List[:e.Event.Results]
	s := e.Event.Limited[0]
	s.bound(l.m.options.Constraints[0])
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	away := func(i int) float64 { return s.distance(s.samples(&list[i], limitOf(0))[0].y) }
	slices.SortFunc(places, func(a, b int) int {
		if away(a) < away(b) {
			return -1
		}
		return 1
	})
	for _, i := range places[:bestAlways] {
		if !slices.Contains(s.Dictionary, list[i].Trial) {
			t.Errorf("trial %d, %v from the limit, is no inducing point", list[i].Trial, away(i))
		}
	}
}

// The standard error of a metric with a limit is that of its target, however far the value is
// from the others. That at the knee would be larger.
func TestStandardErrorsBeyondTheKnee(t *testing.T) {
	var values []float64
	for i := range 60 {
		values = append(values, -math.Exp(float64(i)/4))
	}
	c := Constraint{"time", math.Inf(-1), 20}
	s := Surface{Target: newTarget(values, true), Noise: 0.01}
	far := -math.Exp(60)
	m := Measure{Value: far, StdErr: -far * 1e-3, Count: 3}
	if s.Target.Of(far) == s.Target.exact(far) {
		t.Fatalf("%v is not beyond the knee", far)
	}
	around := (s.Target.exact(far*(1-1e-3)) - s.Target.exact(far*(1+1e-3))) / 2
	s.bound(c)
	got := math.Sqrt(s.samples(&Result{X: []float64{0}, Limited: []Measure{m}}, limitOf(0))[0].extra)
	if knee := -far * 1e-3 * s.Target.slope(far); math.Abs(got-around) > 0.02*around || knee < 1.5*around {
		t.Errorf("a standard error %v of targets, at the knee %v, want %v", got, knee, around)
	}
}

// The cap binds if only a metric with a limit has more inputs than inducing points.
func TestCappedLimit(t *testing.T) {
	_, e := limitedLab(t, 40, measuredAt)
	if e.Capped() {
		t.Fatal("it is capped")
	}
	e.Event.Limited[1].Capped = true
	if !e.Capped() {
		t.Error("it is not capped")
	}
}
