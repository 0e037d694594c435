package acquire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// UsefulWorkers is the number of running, waiting or chosen trials that the rule 1 + Σσ²/ξ²
// ≤ 2 allows. If it allows all, further trials with the last one's variance count too.
func TestUsefulWorkersByDefinition(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	l := newSubject(t, spec, nil)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		c := l.Decode(rng.Float64(), rng.Float64())
		v, o := rng.NormFloat64(), labtest.Completed(spec, 0)
		o.Metrics[0].Values = []float64{v - 1, v + 1, v - 1, v + 1} // makes the noise known
		l.Do(study.Add{Config: c, Outcome: o})
	}
	all, tripped := 0, 0
	for range 14 {
		proposal := l.propose(2)
		e := l.at()
		var rows []float64
		for _, q := range l.model.Results.Pending {
			rows = append(rows, q.X...)
		}
		for _, g := range proposal.Suggestions {
			x, err := l.model.Results.Encode(g.Config)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, x...)
		}
		_, variance := e.Predict(0, kernel.NewPoints(len(rows)/2, 2, rows))
		sum, want := 0.0, 0
		for want < len(variance) && sum+variance[want]/e.Event.Surfaces[0].Noise <= 1 {
			sum += variance[want] / e.Event.Surfaces[0].Noise
			want++
		}
		if want == len(variance) {
			for last := variance[want-1] / e.Event.Surfaces[0].Noise; sum+last <= 1 && want < 1000; want++ {
				sum += last
			}
			all++
		} else {
			tripped++
		}
		if got := proposal.UsefulWorkers; got < max(want, 1)-1 || got > max(want, 1)+1 { // rounding
			t.Errorf("%d useful workers, want %d", got, want)
		}
		l.Start(proposal.Suggestions...)
	}
	if all == 0 || tripped == 0 {
		t.Errorf("the rule allowed all %d times, and not all %d times", all, tripped)
	}
}

// The width of the bounds is √(c·d·log(2t + 1)) with d active parameters. By theory it is the width of package bandit. That is
// the exact rule while all points are inducing, and otherwise Theorem 21 of Carratino
// (2020). Suggestions contain it with their bounds.
func TestWidths(t *testing.T) {
	racetest.Alone(t)
	for _, c := range []struct {
		name  string
		tweak func(m *model.Options, o *Options)
		n     int
		times func(trial int) float64
	}{
		{"as ever", func(_ *model.Options, o *Options) { o.Width = 0.2 }, 24, func(int) float64 { return 1 }},
	} {
		l, _ := worked(t, c.tweak, 1, c.n, labtest.Wavy)
		for range 9 {
			trial := l.S.Trials()
			proposal := l.propose(1)
			target := l.at().Event.Surfaces[0].Target
			for i, g := range proposal.Suggestions {
				want := c.times(trial+i) * math.Sqrt(0.2*2*math.Log(2*float64(trial+i)+1))
				if !close2(g.Beta[0], want, 1e-12) {
					t.Errorf("%s: width %v of trial %d, want %v", c.name, g.Beta[0], trial+i, want)
				}
				if bound := g.Mean[0] - g.Beta[0]*g.StdDev[0]; target.Power == 0 && !close2(g.Bound[0], bound, 1e-9) {
					t.Errorf("%s: bound %v, want %v", c.name, g.Bound[0], bound)
				}
			}
			l.Start(proposal.Suggestions...)
			l.Do(study.Tell{Trial: trial, Outcome: labtest.Completed(l.S.Spec(), 0.5)})
		}
	}
	// In a batch, each suggestion counts the ones before it.
	l, _ := worked(t, func(_ *model.Options, o *Options) { o.Width = 0.2 }, 1, 24, labtest.Wavy)
	for i, g := range l.propose(3).Suggestions {
		if want := math.Sqrt(0.2 * 2 * math.Log(2*float64(24+i)+1)); !close2(g.Beta[0], want, 1e-12) {
			t.Errorf("width %v of suggestion %d of 3, want %v", g.Beta[0], i, want)
		}
	}
	for _, n := range []int{10, 12, 60} { // the cap is 16
		l, e := worked(t, func(m *model.Options, o *Options) { o.Theory, m.Cap = true, 16 }, 1, n, labtest.Wavy)
		s := e.Event.Surfaces[0]
		want := 1 + math.Sqrt(e.Gain()+2*math.Log(1/0.1))
		if n > 16 {
			late := float64(len(l.model.Results.List) - e.Event.Results)
			want = bandit.Theory{Norm: 1, ByDimension: true}.Beta(bandit.State{
				Step: n + 1, EffectiveDimension: s.Dimension + late, Bound: 1 + s.Theta[0], NoiseVariance: s.Noise,
			})
			if exact := 1 + math.Sqrt(e.Gain()+2*math.Log(10)); want < exact {
				t.Errorf("the width by the theorem, %v, is below %v of exact posteriors", want, exact)
			}
		}
		if got := l.chooser.width(e, 0, 0); !close2(got, want, 1e-12) {
			t.Errorf("%d results: width by theory %v, want %v", n, got, want)
		}
	}
}

// Bounds become no wider from 10 coordinates on.
func TestWidthOfManyCoordinates(t *testing.T) {
	for _, d := range []int{9, 10, 12} {
		floats := make([]string, d)
		for c := range floats {
			floats[c] = fmt.Sprintf(`"x%d": {"type": "float", "low": 0, "high": 1}`, c)
		}
		l := newSubject(t, labtest.SpecOf(labtest.Parse(t, "{"+strings.Join(floats, ", ")+"}"), 4), func(_ *model.Options, o *Options) { o.Width = 0.2 })
		l.Scatter(8, labtest.Wavy)
		if got, want := l.propose(1).Suggestions[0].Beta[0], math.Sqrt(0.2*math.Min(float64(d), 10)*math.Log(17)); !close2(got, want, 1e-12) {
			t.Errorf("%d coordinates: width %v, want %v", d, got, want)
		}
	}
}

// With conditional parameters the width counts the active ones, in the mean over the
// results that the model was made from.
func TestWidthOfWhatIsActive(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["conditional"]), 4)
	l := newSubject(t, spec, func(_ *model.Options, o *Options) { o.Width = 0.2 })
	var active []int
	rng := rand.New(rand.NewPCG(4, 4))
	const n = 20
	for range n {
		c := l.Decode(rng.Float64(), rng.Float64(), rng.Float64())
		active = append(active, c.Len())
		l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, labtest.Bowl(spec.Space, c))})
	}
	got, sum := l.propose(1).Suggestions[0].Beta[0], 0.0
	of := l.at().Event.Results
	for _, k := range active[:of] {
		sum += float64(k)
	}
	if want := math.Sqrt(0.2 * sum / float64(of) * math.Log(2*n+1)); sum == float64(3*of) || !close2(got, want, 1e-12) {
		t.Errorf("width %v, want %v; %v of %d were active", got, want, sum, 3*of)
	}
}

// Every fourth trial is where the mean is best, by the model of its suggestion. With
// exploit_every = 0 none is.
func TestExploits(t *testing.T) {
	for _, every := range []int{4, 3, 0} {
		l, _ := worked(t, func(_ *model.Options, o *Options) { o.ExploitEvery = every }, 1, 20, labtest.Wavy)
		for range 9 {
			trial := l.S.Trials()
			g := l.propose(1).Suggestions[0]
			if want := every > 0 && trial%every == every-1; (g.Phase == study.PhaseExploit) != want {
				t.Errorf("every %d: trial %d is of phase %s", every, trial, g.Phase)
			}
			if g.Phase == study.PhaseExploit {
				rng, x := rand.New(rand.NewPCG(uint64(trial), 3)), kernel.NewPoints[float64](4000, 2, nil)
				for i := range x.Data() {
					x.Data()[i] = rng.Float64()
				}
				u, err := l.model.Results.Encode(g.Config)
				if err != nil {
					t.Fatal(err)
				}
				mean, _ := l.at().Predict(0, x)
				if at, _ := l.at().Predict(0, row(u...)); at[0] < slices.Max(mean)-1e-6 {
					t.Errorf("every %d: trial %d exploits a mean of %v, where there is %v", every, trial, at[0], slices.Max(mean))
				}
			}
			l.Start(g)
			u := l.Coordinates(trial)
			l.Do(study.Tell{Trial: trial, Outcome: labtest.Completed(l.S.Spec(), labtest.Wavy(u, rand.New(rand.NewPCG(1, 1)))[0])})
		}
	}
}

// The gap is the largest upper bound of a fine grid minus the largest lower bound of the
// results. This also holds where a suggestion exploits, in batches, and while trials run.
func TestGapByDefinition(t *testing.T) {
	l, e := worked(t, func(m *model.Options, o *Options) { o.StopGap = 1e-9 }, 1, 20, labtest.Wavy)
	const side = 150
	x := kernel.NewPoints[float64](side*side, 2, nil)
	for i := range side * side {
		x.Row(i)[0], x.Row(i)[1] = float64(i%side)/(side-1), float64(i/side)/(side-1)
	}
	want := func() float64 {
		b := l.chooser.width(e, 0, 0)
		mean, variance := e.Predict(0, x)
		most, least := math.Inf(-1), math.Inf(-1)
		for i, m := range mean {
			most = max(most, m+b*math.Sqrt(variance[i]))
		}
		for i := range l.model.Results.List {
			m, v := e.Predict(0, row(l.model.Results.List[i].X...))
			least = max(least, m[0]-b*math.Sqrt(v[0]))
		}
		t := e.Event.Surfaces[0].Target
		return t.Value(most) - t.Value(least)
	}
	diagnosed := func() float64 { return l.chooser.Diagnose(l.at(), l.S.Trials()).Gap }
	if got, want := diagnosed(), want(); math.Abs(got/want-1) > 0.01 {
		t.Errorf("gap %v, want %v", got, want)
	}
	for n := 1; n <= 3; n++ {
		if got := l.propose(n).Gap; math.Abs(got/want()-1) > 0.01 {
			t.Errorf("%d at once: gap %v, want %v", n, got, want())
		}
	}
	for l.S.Trials()%4 != 3 {
		l.Do(study.Add{Config: l.Decode(0.5, 0.1*float64(l.S.Trials()-20)), Outcome: labtest.Completed(l.S.Spec(), 2)})
	}
	for n := 1; n <= 3; n++ {
		if got := l.propose(n); got.Suggestions[0].Phase != study.PhaseExploit || got.Gap != 0 || got.Converged {
			t.Errorf("%d at once, the first of phase %s: gap %v, which nobody has looked for before that was pending", n, got.Suggestions[0].Phase, got.Gap)
		}
	}
	if e = l.at(); e == nil {
		t.Fatal("no model")
	}
	l.Start(l.propose(1).Suggestions...)
	if got := diagnosed(); math.Abs(got/want()-1) > 0.01 {
		t.Errorf("with trials running: gap %v, want %v", got, want())
	}
	if got := l.propose(1); got.Suggestions[0].Phase != study.PhaseModel || got.Gap != 0 || got.Converged {
		t.Errorf("with trials running an ask of phase %s says %v, %t", got.Suggestions[0].Phase, got.Gap, got.Converged)
	}
}

// Idle counts the results after the first of the best ones, of several objectives those after the last of
// the front, and all where none keeps the limits.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		values [][]float64
		limit  string
		want   int
	}{
		{[][]float64{{5}, {4}, {1}, {3}, {1}, {2}}, `{}`, 3},
		{[][]float64{{5}, {4}, {3}, {2}, {1}}, `{}`, 0},
		{[][]float64{{5}, {4}, {3}, {2}, {1}}, `{"loss": {"max": 0}}`, 5},
		{[][]float64{{0, 4}, {4, 0}, {3, 3}, {1, 1}, {2, 2}, {1, 4}}, `{}`, 2},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		if len(c.values[0]) > 1 {
			spec.Objectives = append(spec.Objectives, study.Objective{Name: "size", Direction: study.Minimize})
		}
		l := newSubject(t, spec, func(m *model.Options, _ *Options) { m.Constraints = limits(c.limit) })
		for i, y := range c.values {
			l.Do(study.Add{Config: l.Decode(0.1*float64(i), math.Mod(0.37*float64(i), 1)), Outcome: labtest.Completed(spec, y...)})
		}
		l.anchor()
		if got := l.chooser.Diagnose(l.at(), 0).Idle; got != c.want {
			t.Errorf("%v with limits %s: %d results since the best, want %d", c.values, c.limit, got, c.want)
		}
	}
}

// The measurement decides where there is no noise, and the mean where there is. Then a lucky
// result does not count.
func TestRecommendation(t *testing.T) {
	for seed := range uint64(6) {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), seed+1)
		l := newSubject(t, spec, nil)
		rng := rand.New(rand.NewPCG(seed, 5))
		noise := []float64{0, 0.3}[seed%2]
		least, lucky := math.Inf(1), -1
		for i := range 40 {
			x := []float64{rng.Float64(), rng.Float64()}
			y := 4*math.Pow(x[0]-0.3, 2) + 4*math.Pow(x[1]-0.6, 2) + noise*rng.NormFloat64()
			if noise > 0 { // two places, measured again and again, where the worse one has the luckier result
				x, y = []float64{0.2 + 0.6*float64(i%2), 0.5}, float64(i%2)+noise*rng.NormFloat64()
				if i == 21 {
					y = -1.5
				}
			}
			l.Do(study.Add{Config: l.Decode(x...), Outcome: labtest.Completed(spec, y)})
			if y < least {
				least, lucky = y, i
			}
		}
		l.anchor()
		best := l.recommended()
		if len(best) != 1 {
			t.Fatalf("seed %d: %v", seed, best)
		}
		if noise == 0 && best[0] != lucky {
			t.Errorf("seed %d: trial %d is recommended, %d was the best measured of a smooth function", seed, best[0], lucky)
		}
		if noise > 0 && best[0]%2 == 1 {
			t.Errorf("seed %d: trial %d is recommended, of the worse place", seed, best[0])
		}
		// This is its definition.
		sum, of := make(map[string]float64), make(map[string]float64)
		for trial := range l.S.All(0) {
			m, _ := trial.Outcome.Metric("loss")
			sum[trial.Config.String()], of[trial.Config.String()] = sum[trial.Config.String()]+m.Mean(), of[trial.Config.String()]+1
		}
		want, top := -1, math.Inf(-1)
		for n := range l.S.Trials() {
			trial, _ := l.S.Trial(n)
			value := -sum[trial.Config.String()] / of[trial.Config.String()]
			if l.at().Event.Surfaces[0].Noise >= 0.01 {
				value = l.at().Means(0, kernel.NewPoints(1, 2, l.Coordinates(n)))[0]
			}
			if value > top {
				want, top = n, value
			}
		}
		if best[0] != want {
			t.Errorf("seed %d: trial %d is recommended, not %d", seed, best[0], want)
		}
	}
}

// The survey's largest upper confidence bound is not exceeded at 20,000 points drawn from
// the cube and from around the best results.
func TestSurvey(t *testing.T) {
	racetest.Alone(t)
	sp := labtest.Parse(t, `{"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "float", "low": 0, "high": 1}, "c": {"type": "float", "low": 0, "high": 1},
		"d": {"type": "float", "low": 0, "high": 1}, "e": {"type": "float", "low": 0, "high": 1}}`)
	for seed := range uint64(3) {
		spec := labtest.SpecOf(sp, seed)
		l := newSubject(t, spec, nil)
		for i := range 25 {
			l.Start(l.propose(1).Suggestions...)
			trial, _ := l.S.Trial(i)
			l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, labtest.Bowl(sp, trial.Config))})
		}
		e, a := l.at(), l.ahead()
		a.survey(l.S.Trials())
		rng := rand.New(rand.NewPCG(seed, 7))
		x := kernel.NewPoints[float64](20_000, sp.Dim(), nil)
		for i := range x.Len() {
			row := x.Row(i)
			copy(row, l.model.Results.List[a.elite.ranked[rng.IntN(4)]].X)
			for c := range row {
				if i%2 == 0 {
					row[c] = rng.Float64()
				} else {
					row[c] = min(max(row[c]+0.1*rng.NormFloat64(), 0), 1)
				}
			}
		}
		mean, variance := e.Predict(0, x)
		for i, m := range mean {
			if u := m + a.beta[0]*math.Sqrt(variance[i]); u > a.best+1e-9 {
				t.Fatalf("seed %d: the bound is %v at %v, the largest was said to be %v", seed, u, x.Row(i), a.best)
			}
		}
	}
}
