package bo

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// These are the optima of scipy's SLSQP from 200 starts, and the shares of uniform
// configurations that keep the limits.
var optima = map[string]struct {
	x     map[string]float64
	share float64
}{
	"limits/gardner":     {map[string]float64{"x": 4.71238897, "y": 1.2532359}, 0.0175},
	"limits/townsend":    {map[string]float64{"x": 2.00529273, "y": 1.19445286}, 0.649},
	"limits/g24":         {map[string]float64{"x": 2.3295202, "y": 3.17849307}, 0.443},
	"limits/g08":         {map[string]float64{"x": 1.22797135, "y": 4.24537337}, 0.0091},
	"limits/g04":         {map[string]float64{"x1": 78, "x2": 33, "x3": 29.99525602, "x4": 45, "x5": 36.7758129}, 0.270},
	"limits/spring":      {map[string]float64{"wire": 0.05168905, "coil": 0.35671751, "turns": 11.28897911}, 0.0076},
	"limits/welded-beam": {map[string]float64{"h": 0.20572964, "l": 3.47048867, "t": 9.03662391, "b": 0.20572964}, 0.258},
}

func TestLimitedProblems(t *testing.T) {
	for _, l := range limits.Problems {
		p := problem(t, l.Name).(Limited)
		rng := stream.New(stream.Derive(1, l.Name, 0))
		kept := 0
		const n = 10_000
		for range n {
			c := random(t, p.Space(), rng.Float64)
			value, metrics := p.Measure(c)
			y, ok := p.Evaluate(c, nil)
			if len(metrics) != len(p.Metrics()) || ok != !slices.ContainsFunc(metrics, func(m float64) bool { return m > 0 }) || ok && y != value || math.IsNaN(value) {
				t.Fatalf("%s at %v: value %v, metrics %v, evaluated %v, %t", l.Name, c, value, metrics, y, ok)
			}
			if ok {
				kept++
			}
		}
		known, ok := optima[l.Name]
		if !ok {
			continue
		}
		if share := float64(kept) / n; math.Abs(share-known.share) > 5*math.Sqrt(known.share/n) {
			t.Errorf("%s: the share that keeps the limits is %v, want %v", l.Name, share, known.share)
		}
		var at []space.Assignment
		for name, x := range known.x {
			at = append(at, space.Assignment{Name: name, Value: space.Float(x)})
		}
		value, metrics := p.Measure(space.NewConfig(at...))
		scale := p.Median() - p.Best()
		if math.Abs(value-p.Best()) > 1e-5*scale {
			t.Errorf("%s: the value at the optimum is %v, and the best is %v", l.Name, value, p.Best())
		}
		for i, m := range metrics {
			if m > 1e-3 {
				t.Errorf("%s: metric %s at the optimum is %v", l.Name, p.Metrics()[i], m)
			}
		}
	}
}

// The best of the network is that of its grid of layers and widths, found by enumeration.
func TestLimitedNetwork(t *testing.T) {
	p := problem(t, "limits/network").(Limited)
	best := math.Inf(1)
	assign := func(opt string, layers, width int64) space.Config {
		entries := []space.Assignment{
			{Name: "opt", Value: space.String(opt)},
			{Name: "layers", Value: space.Int(layers)},
			{Name: "width", Value: space.Int(width)},
			{Name: "drop", Value: space.Float(0.3)},
		}
		lr, name, v := -1.2, "momentum", 0.9
		switch opt {
		case "adam":
			lr, name, v = -3, "beta", 0.93
		case "rms":
			lr, name, v = -3.3, "beta", 0.8
		}
		return space.NewConfig(append(entries,
			space.Assignment{Name: "lr", Value: space.Float(math.Pow(10, lr))}, space.Assignment{Name: name, Value: space.Float(v)})...)
	}
	for _, opt := range []string{"sgd", "adam", "rms"} {
		for layers := range int64(5) {
			for width := int64(8); width <= 512; width++ {
				best = min(best, p.True(assign(opt, layers+1, width)))
			}
		}
	}
	if math.Abs(best-p.Best()) > 1e-12 {
		t.Errorf("the best is %v, want %v", p.Best(), best)
	}
}

// BKB and its ablations learn from the metrics, and keep the limits more often than random.
func TestLimitedRuns(t *testing.T) {
	p := problem(t, "limits/townsend").(Limited)
	share := func(k Contestant) float64 {
		s := Setup{Space: p.Space(), Metrics: p.Metrics(), Seed: 3, Trials: 25}
		o, err := k.New(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		r := &runner{run: Run{Problem: p.Name(), Best: p.Best(), Median: p.Median()}, problem: p, optimiser: o}
		if err := r.do(t.Context(), s.Trials); err != nil {
			t.Fatal(err)
		}
		s2 := &suiteResults{Suite: limits, plan: &plan{seeds: 1}, runs: map[cell]map[string]*Run{{p.Name(), 1}: {k.Name: &r.run}}}
		return s2.successShare(p.Name(), k.Name, s.Trials)
	}
	random := share(baselines[0])
	for _, k := range []Contestant{ours[0], ours[1]} {
		if got := share(k); got < random+0.1 {
			t.Errorf("%s keeps the limits in %v of the trials, random in %v", k.Name, got, random)
		}
	}
}
