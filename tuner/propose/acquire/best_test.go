package acquire

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func limits(text string) []model.Constraint {
	return model.ReadConstraints(study.ReadOptions("proposer.options", `{"constraints": `+text+`}`))
}

// Equal configurations count once, with the mean of all their replicates, also for several
// objectives. The oracle is computed from all values of each configuration.
func TestBestPoolsEqualConfigurations(t *testing.T) {
	sp := labtest.Parse(t, `{"a": {"type": "categorical", "values": ["A", "B", "C", 1, 1.0]}}`)
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		spec := labtest.SpecOf(sp, seed)
		k := 1 + int(seed%2)
		if k == 2 {
			spec.Objectives = append(spec.Objectives, study.Objective{Name: "acc", Direction: study.Maximize})
		}
		l := labtest.New(t, spec)
		all := make([][][]float64, 5) // by value of a, replicates of the objectives
		first := slices.Repeat([]int{-1}, 5)
		for range 1 + rng.IntN(25) {
			i, o := rng.IntN(5), study.Outcome{State: study.Completed}
			n := 1 + rng.IntN(3)
			loss, acc := make([]float64, n), make([]float64, n)
			for r := range n {
				loss[r], acc[r] = rng.Float64(), rng.Float64()
				all[i] = append(all[i], []float64{loss[r], acc[r]})
			}
			o.Metrics = []study.Metric{{Name: "acc", Values: acc}, {Name: "loss", Values: loss}}
			c := space.NewConfig(space.Assignment{Name: "a", Value: sp.Parameters()[0].Values[i]})
			number := l.Do(study.Add{Config: c, Outcome: o}).Trials[0]
			if first[i] < 0 {
				first[i] = number
			}
		}
		type point struct {
			trial     int
			loss, acc float64
		}
		var points []point
		for i, values := range all {
			p := point{trial: first[i]}
			for _, v := range values {
				p.loss += v[0] / float64(len(values))
				p.acc += v[1] / float64(len(values))
			}
			if len(values) > 0 {
				points = append(points, p)
			}
		}
		var want []int
		for _, p := range points {
			beaten := slices.ContainsFunc(points, func(q point) bool {
				if k == 1 {
					return q.loss < p.loss-1e-9 || q.loss < p.loss+1e-9 && q.trial < p.trial
				}
				return q.loss < p.loss+1e-9 && q.acc > p.acc-1e-9 && (q.loss < p.loss-1e-9 || q.acc > p.acc+1e-9)
			})
			if !beaten {
				want = append(want, p.trial)
			}
		}
		slices.Sort(want)
		got := Best(l.S, nil)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("seed %d: the best are %v, want %v of %v", seed, got, want, points)
		}
	}
}

// With no trial within the limits, the best one breaks them least, and of equal ones it has the
// best objective. No other trial beats it in both. A missing metric breaks its limit most.
func TestBestWithoutAFeasibleTrial(t *testing.T) {
	sp := labtest.Parse(t, labtest.Square)
	one := limits(`{"lat": {"max": 10}}`)
	both := limits(`{"lat": {"max": 10}, "acc": {"min": 0.5, "max": 0.75}}`)
	type told struct{ loss, lat, acc float64 } // NaN for a metric that is not told
	for what, k := range map[string]struct {
		limits []model.Constraint
		trials []told
		want   int
	}{
		"the least":         {one, []told{{1, 12, 0}, {2, 11, 0}, {0, 13, 0}}, 1},
		"ties":              {one, []told{{1, 20, 0}, {0.5, 20, 0}, {2, 20, 0}}, 1},
		"missing":           {one, []told{{0, math.NaN(), 0}, {5, 1e9, 0}}, 1},
		"all missing":       {one, []told{{3, math.NaN(), 0}, {2, math.NaN(), 0}}, 1},
		"huge":              {one, []told{{0, 1e308, 0}, {5, 1e9, 0}}, 1},
		"one keeps":         {one, []told{{0, 11, 0}, {5, 10, 0}, {6, 9, 0}}, 1},
		"sum of two":        {both, []told{{0, 11, 0.4}, {5, 10, 0.35}, {6, 11, 0.9}}, 0}, // 0.1 + 0.2, 0.3, 0.1 + 0.2
		"above and below":   {both, []told{{0, 10, 1.5}, {5, 10, 0.4}}, 1},
		"mean of two tries": {one, []told{{0, 9, 0}, {1, 10, 0}}, 1}, // trial 0 is measured again, see below
	} {
		spec := labtest.SpecOf(sp, 1)
		l := labtest.New(t, spec)
		add := func(i int, r told) {
			o := labtest.Completed(spec, r.loss)
			for _, m := range []study.Metric{{Name: "acc", Values: []float64{r.acc}}, {Name: "lat", Values: []float64{r.lat}}} {
				if !math.IsNaN(m.Values[0]) {
					o.Metrics = append(o.Metrics, m)
				}
			}
			slices.SortFunc(o.Metrics, func(a, b study.Metric) int { return map[bool]int{true: -1, false: 1}[a.Name < b.Name] })
			l.Do(study.Add{Config: l.Decode(float64(i)/10, 0.5), Outcome: o})
		}
		for i, r := range k.trials {
			add(i, r)
		}
		if what == "mean of two tries" {
			add(0, told{0, 13, 0})
		}
		if got := Best(l.S, k.limits); !slices.Equal(got, []int{k.want}) {
			t.Errorf("%s: the best is %v, want %d", what, got, k.want)
		}
	}
}

// Under noise the recommendation is not the luckiest measured value, and its true value is no
// worse on average than that of the best measured trial.
func TestBestUnderNoise(t *testing.T) {
	for _, noise := range []float64{0.05, 0.1, 0.3} {
		luckiest, byModel, byValue := 0, 0.0, 0.0
		const seeds = 24
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 41))
			spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), seed+1)
			s := newSubject(t, spec, nil)
			value := func(n int) float64 {
				u := s.Coordinates(n)
				return (u[0]-0.3)*(u[0]-0.3) + (u[1]-0.6)*(u[1]-0.6)
			}
			for range 40 {
				u := []float64{rng.Float64(), rng.Float64()}
				y := (u[0]-0.3)*(u[0]-0.3) + (u[1]-0.6)*(u[1]-0.6) + noise*rng.NormFloat64()
				s.Do(study.Add{Config: s.Decode(u...), Outcome: labtest.Completed(spec, y)})
			}
			s.anchor()
			got, lucky := s.recommended()[0], Best(s.S, nil)[0]
			if got == lucky {
				luckiest++
			}
			byModel, byValue = byModel+value(got)/seeds, byValue+value(lucky)/seeds
		}
		if noise <= 0.1 && luckiest > seeds/2 || byModel > byValue {
			t.Errorf("noise %v: the luckiest value is recommended in %d of %d studies; the recommended have %.4f, the luckiest %.4f", noise, luckiest, seeds, byModel, byValue)
		}
	}
}
