package propose

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// worked returns a study of n trials, told, on a labtest.Square, and the engine after them.
func worked(t *testing.T, options string, objectives, n int, value func(u []float64, rng *rand.Rand) []float64) (*lab, *bkb, *engine) {
	t.Helper()
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	for i := 1; i < objectives; i++ {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: fmt.Sprint("o", i), Direction: study.Minimize})
	}
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec).(*bkb)
	rng := rand.New(rand.NewPCG(5, 6))
	for range n {
		c, err := spec.Space.Decode([]float64{rng.Float64(), rng.Float64()})
		if err != nil {
			t.Fatal(err)
		}
		u := make([]float64, 2)
		if err := spec.Space.Encode(c, u); err != nil {
			t.Fatal(err)
		}
		l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, value(u, rng)[:objectives]...)})
	}
	l.anchor(p)
	e, err := p.ready(l.S)
	if err != nil || e == nil {
		t.Fatalf("no model: %v", err)
	}
	return l, p, e
}

func wavy(u []float64, rng *rand.Rand) []float64 {
	return []float64{math.Sin(7*u[0]) + u[1]*u[1] + 0.1*rng.NormFloat64(), math.Cos(5 * u[1]), u[0] - u[1]}
}

// TestPendingByDefinition: a pending trial shrinks σ² at its place to σ²ξ²/(σ² + ξ²),
// of every objective and of feasibility, and leaves means alone.
func TestPendingByDefinition(t *testing.T) {
	l, p, _ := worked(t, `{}`, 2, 20, wavy)
	c, err := l.S.Spec().Space.Decode([]float64{0.99, 0.01})
	if err != nil {
		t.Fatal(err)
	}
	l.Do(study.Add{Config: c, Outcome: study.Outcome{State: study.Infeasible}})
	for i := range 8 {
		c, err := l.S.Spec().Space.Decode([]float64{float64(i) / 9, 0.5})
		if err != nil {
			t.Fatal(err)
		}
		l.Do(study.Add{Config: c, Outcome: labtest.Completed(l.S.Spec(), 1, float64(i))})
	}
	l.start(l.propose(p, 1))
	x := l.Coordinates(l.S.Trials() - 1)
	e, err := p.ready(l.S)
	if err != nil || len(e.surfaces) != 3 {
		t.Fatalf("%d surfaces, %v", len(e.surfaces), err)
	}
	row := kernel.NewPoints(1, 2, x)
	for j, q := range p.newAcquisition(e).surfaces {
		mean, was := e.surfaces[j].predict(row)
		now, variance := q.predict(row)
		want := was[0] * q.noise / (was[0] + q.noise)
		if math.Abs(variance[0]-want) > 2*insignificant*q.noise || !close2(now[0], mean[0], 1e-9) {
			t.Errorf("surface %d: %v ± %v, want %v ± %v", j, now[0], variance[0], mean[0], want)
		}
	}
}

// TestRunningReportsMove: what a running trial reports moves what is expected where it
// is, before it has ended, and is forgotten with the acquisition.
func TestRunningReportsMove(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
	report := func(n int, v float64) {
		var all []study.Report
		for s := range int64(8) {
			all = append(all, study.Report{Step: s + 1, Values: []study.NamedValue{{Name: "loss", Value: v + 1/float64(s+1)}}})
		}
		l.Do(study.ReportValues{Trial: n, Epoch: 1, Reports: all})
	}
	for i := range 12 {
		l.start(l.propose(p, 1))
		u := l.Coordinates(i)
		v := math.Pow(u[0]-0.3, 2) + math.Pow(u[1]-0.6, 2)
		report(i, v)
		l.Do(study.Tell{Trial: i, Outcome: labtest.Completed(spec, v+0.125)})
	}
	l.start(l.propose(p, 1))
	row := kernel.NewPoints(1, 2, l.Coordinates(12))
	expected := func() (alone, running float64) {
		e, err := p.ready(l.S)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := e.surfaces[0].predict(row)
		mean, _ := p.newAcquisition(e).surfaces[0].predict(row)
		after, _ := e.surfaces[0].predict(row)
		if before[0] != after[0] {
			t.Error("the engine itself has heard of what runs")
		}
		return before[0], mean[0]
	}
	if alone, running := expected(); alone != running {
		t.Errorf("nothing was reported, and %v became %v", alone, running)
	}
	report(12, 3) // far worse than any
	if alone, running := expected(); running > alone-0.5 {
		t.Errorf("after reports of a failure %v is expected, %v without", running, alone)
	}
}

// TestUsefulWorkersByDefinition: as many of those that run, wait or were chosen as the
// rule 1 + Σσ²/ξ² ≤ 2 allows, and if it allows all, as many more of the last one's
// variance.
func TestUsefulWorkersByDefinition(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		c, err := spec.Space.Decode([]float64{rng.Float64(), rng.Float64()})
		if err != nil {
			t.Fatal(err)
		}
		v, o := rng.NormFloat64(), labtest.Completed(spec, 0)
		o.Metrics[0].Values = []float64{v - 1.5, v + 1.5, v - 1.5, v + 1.5} // so noise is known
		l.Do(study.Add{Config: c, Outcome: o})
	}
	all, tripped := 0, 0
	for range 14 {
		proposal := l.propose(p, 2)
		e := p.engine
		var rows []float64
		for _, q := range p.results.pending {
			rows = append(rows, q.x...)
		}
		for _, g := range proposal.Suggestions {
			x, err := p.results.encode(g.Config)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, x...)
		}
		_, variance := e.surfaces[0].predict(kernel.NewPoints(len(rows)/2, 2, rows))
		sum, want := 0.0, 0
		for want < len(variance) && sum+variance[want]/e.surfaces[0].noise <= 1 {
			sum += variance[want] / e.surfaces[0].noise
			want++
		}
		if want == len(variance) {
			for last := variance[want-1] / e.surfaces[0].noise; sum+last <= 1 && want < 1000; want++ {
				sum += last
			}
			all++
		} else {
			tripped++
		}
		if got := proposal.UsefulWorkers; got < max(want, 1)-1 || got > max(want, 1)+1 { // rounding
			t.Errorf("%d useful workers, want %d", got, want)
		}
		l.start(proposal)
	}
	if all == 0 || tripped == 0 {
		t.Errorf("the rule allowed all %d times, and not all %d times", all, tripped)
	}
}

// TestScalarisation: weights are positive, of sum 1, different for every trial and of
// equal means; the ideal is the best of each objective; and the score is
// min w(u − z) + 0.05 Σ w(u − z).
func TestScalarisation(t *testing.T) {
	_, p, e := worked(t, `{}`, 3, 25, wavy)
	a := p.newAcquisition(e)
	best := []float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for i := range p.results.list {
		for j, m := range p.results.list[i].y {
			best[j] = max(best[j], e.model.Surfaces[j].Target.of(m.value))
		}
	}
	const draws = 3000
	mean, rng, seen := make([]float64, 3), rand.New(rand.NewPCG(1, 1)), make(map[float64]bool)
	for i := range draws {
		w := a.wish(i, rng)
		sum := 0.0
		for j, v := range w.weights {
			if !(v > 0) {
				t.Fatalf("weights %v", w.weights)
			}
			sum, mean[j] = sum+v, mean[j]+v/draws
		}
		seen[w.weights[0]] = true
		if !slices.Equal(w.ideal, best) || math.Abs(sum-1) > 1e-12 {
			t.Fatalf("ideal %v, want %v; weights of sum %v", w.ideal, best, sum)
		}
		u := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		least, all := math.Inf(1), 0.0
		for j := range u {
			least, all = math.Min(least, w.weights[j]*(u[j]-best[j])), all+w.weights[j]*(u[j]-best[j])
		}
		if got := w.chebyshev(u); !close2(got, least+all/20, 1e-12) {
			t.Fatalf("score %v, want %v", got, least+all/20)
		}
	}
	if len(seen) != draws {
		t.Errorf("%d different weights of %d", len(seen), draws)
	}
	for _, v := range mean {
		if math.Abs(v-1.0/3) > 0.02 {
			t.Errorf("mean weights %v", mean)
		}
	}
}

// TestWidths: the width of the bounds is √(c·d·log(2t + 1)) with d active parameters,
// three times that where a suggestion explores, and by theory that of package bandit:
// of the exact rule while all points are inducing, of thesis Theorem 21 when they are
// not. Suggestions bring it with their bounds.
func TestWidths(t *testing.T) {
	racetest.Alone(t)
	for _, c := range []struct {
		options string
		n       int
		times   func(trial int) float64
	}{
		{`{"width": 0.2}`, 24, func(int) float64 { return 1 }},
		{`{"width": 0.2, "exploit_every": 0, "explore_every": 3}`, 24, func(trial int) float64 { return map[bool]float64{true: 3, false: 1}[trial%3 == 1] }},
		// Every two in vain double it, up to eightfold.
		{`{"width": 0.2, "exploit_every": 0, "patience": 2}`, 24, func(trial int) float64 { return math.Pow(2, min(float64((trial-24)/2), 3)) }},
	} {
		l, p, _ := worked(t, c.options, 1, c.n, wavy)
		for range 9 {
			trial := l.S.Trials()
			proposal := l.propose(p, 1)
			for i, g := range proposal.Suggestions {
				want := c.times(trial+i) * math.Sqrt(0.2*2*math.Log(2*float64(trial+i)+1))
				if !close2(g.Beta[0], want, 1e-12) {
					t.Errorf("%s: width %v of trial %d, want %v", c.options, g.Beta[0], trial+i, want)
				}
				if bound := g.Mean[0] - g.Beta[0]*g.StdDev[0]; p.engine.model.Surfaces[0].Target.Power == 0 && !p.engine.model.Surfaces[0].Target.Compressed && !close2(g.Bound[0], bound, 1e-9) {
					t.Errorf("%s: bound %v, want %v", c.options, g.Bound[0], bound)
				}
			}
			l.start(proposal)
			l.Do(study.Tell{Trial: trial, Outcome: labtest.Completed(l.S.Spec(), 0.5)})
		}
	}
	// Several at once: each counts the ones before.
	l, p, _ := worked(t, `{"width": 0.2}`, 1, 24, wavy)
	for i, g := range l.propose(p, 3).Suggestions {
		if want := math.Sqrt(0.2 * 2 * math.Log(2*float64(24+i)+1)); !close2(g.Beta[0], want, 1e-12) {
			t.Errorf("width %v of suggestion %d of 3, want %v", g.Beta[0], i, want)
		}
	}
	for _, n := range []int{10, 12, 60} { // the cap is 16
		_, p, e := worked(t, `{"beta": "theory", "cap": 16}`, 1, n, wavy)
		q, s := e.surfaces[0], e.model.Surfaces[0]
		want := 1 + math.Sqrt(q.gain()+2*math.Log(1/0.1))
		if n > 16 {
			late := float64(len(p.results.list) - e.model.Results)
			want = bandit.Theory{Norm: 1, ByDimension: true}.Beta(bandit.State{
				Step: n + 1, EffectiveDimension: s.Dimension + late, Bound: s.Theta[0], NoiseVariance: s.Noise,
			})
			if exact := 1 + math.Sqrt(q.gain()+2*math.Log(10)); want < exact {
				t.Errorf("the width by the theorem, %v, is below %v of exact posteriors", want, exact)
			}
		}
		if got := p.beta(e, 0, 0); !close2(got, want, 1e-12) {
			t.Errorf("%d results: width by theory %v, want %v", n, got, want)
		}
	}
}

// TestWidthOfWhatIsActive: of conditional parameters the width counts those that were
// active, in the mean over the results that the model was made from.
func TestWidthOfWhatIsActive(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["conditional"]), 4)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"width": 0.2}`}, spec)
	var active []int
	points := must(t, study.Component{Name: Random}, spec)
	const n = 20
	for range n {
		q, err := points.Propose(context.Background(), l.S, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := q.Suggestions[0].Config
		active = append(active, c.Len())
		l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, labtest.Bowl(spec.Space, c))})
	}
	got, sum := l.propose(p, 1).Suggestions[0].Beta[0], 0.0
	of := p.(*bkb).engine.model.Results
	for _, k := range active[:of] {
		sum += float64(k)
	}
	if want := math.Sqrt(0.2 * sum / float64(of) * math.Log(2*n+1)); sum == float64(3*of) || !close2(got, want, 1e-12) {
		t.Errorf("width %v, want %v; %v of %d were active", got, want, sum, 3*of)
	}
}

// TestLeastNoise: the option min_noise is in units of the variance of the results.
func TestLeastNoise(t *testing.T) {
	smooth := func(u []float64, _ *rand.Rand) []float64 { return []float64{1000 * (u[0] + u[1])} }
	_, _, e := worked(t, `{"tail": "keep"}`, 1, 20, smooth)
	_, _, f := worked(t, `{"tail": "keep", "min_noise": 0.3}`, 1, 20, smooth)
	if low, high := e.model.Surfaces[0].Noise, f.model.Surfaces[0].Noise; low > 0.01 || high < 0.299 {
		t.Errorf("noise %v, with a least one of 0.3 %v", low, high)
	}
}

// TestManyPending: of very many pending trials the latest count.
func TestManyPending(t *testing.T) {
	l, p, _ := worked(t, `{}`, 1, 12, wavy)
	enqueue := func(u ...float64) {
		c, err := l.S.Spec().Space.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		l.Do(study.Enqueue{Config: c})
	}
	for range maxPending {
		enqueue(0, 0)
	}
	enqueue(1, 1)
	e, err := p.ready(l.S)
	if err != nil {
		t.Fatal(err)
	}
	row := kernel.NewPoints(1, 2, []float64{1, 1})
	_, before := e.surfaces[0].predict(row)
	_, after := p.newAcquisition(e).surfaces[0].predict(row)
	if after[0] > before[0]/2 {
		t.Errorf("σ² of the latest of %d pending trials is %v, %v without it", maxPending+1, after[0], before[0])
	}
}

// TestExploits: every fourth trial is where the mean is best, by the model that it was
// suggested under; with exploit_every = 0 none is.
func TestExploits(t *testing.T) {
	for options, every := range map[string]int{`{}`: 4, `{"exploit_every": 3}`: 3, `{"exploit_every": 0}`: 0} {
		l, p, _ := worked(t, options, 1, 20, wavy)
		for range 9 {
			trial := l.S.Trials()
			g := l.propose(p, 1).Suggestions[0]
			if want := every > 0 && trial%every == every-1; (g.Phase == PhaseExploit) != want {
				t.Errorf("%s: trial %d is of phase %s", options, trial, g.Phase)
			}
			if g.Phase == PhaseExploit {
				rng, x := rand.New(rand.NewPCG(uint64(trial), 3)), kernel.NewPoints[float64](4000, 2, nil)
				for i := range x.Data() {
					x.Data()[i] = rng.Float64()
				}
				u, err := p.results.encode(g.Config)
				if err != nil {
					t.Fatal(err)
				}
				mean, _ := p.engine.surfaces[0].predict(x)
				if at, _ := p.engine.surfaces[0].predict(kernel.NewPoints(1, 2, u)); at[0] < slices.Max(mean)-1e-6 {
					t.Errorf("%s: trial %d exploits a mean of %v, where there is %v", options, trial, at[0], slices.Max(mean))
				}
			}
			l.start(Proposal{Suggestions: []study.Suggestion{g}})
			u := l.Coordinates(trial)
			l.Do(study.Tell{Trial: trial, Outcome: labtest.Completed(l.S.Spec(), wavy(u, rand.New(rand.NewPCG(1, 1)))[0])})
		}
	}
}

// TestGapByDefinition: the gap is the largest upper bound of a fine grid less the
// largest lower bound of the results, also where a suggestion exploits, where more
// than one is made at once and while trials run, whose outcome nobody knows.
func TestGapByDefinition(t *testing.T) {
	l, p, e := worked(t, `{"tail": "keep", "stop_gap": 1e-9}`, 1, 20, wavy)
	const side = 150
	x := kernel.NewPoints[float64](side*side, 2, nil)
	for i := range side * side {
		x.Row(i)[0], x.Row(i)[1] = float64(i%side)/(side-1), float64(i/side)/(side-1)
	}
	want := func() float64 {
		b := p.beta(e, 0, 0)
		mean, variance := e.surfaces[0].predict(x)
		most, least := math.Inf(-1), math.Inf(-1)
		for i, m := range mean {
			most = max(most, m+b*math.Sqrt(variance[i]))
		}
		for i := range p.results.list {
			m, v := e.surfaces[0].predict(kernel.NewPoints(1, 2, p.results.list[i].x))
			least = max(least, m[0]-b*math.Sqrt(v[0]))
		}
		t := e.model.Surfaces[0].Target
		return t.value(most) - t.value(least)
	}
	diagnosed := func() float64 {
		d, err := p.Diagnose(context.Background(), l.S)
		if err != nil {
			t.Fatal(err)
		}
		return d.Gap
	}
	if got, want := diagnosed(), want(); math.Abs(got/want-1) > 0.01 {
		t.Errorf("gap %v, want %v", got, want)
	}
	for n := 1; n <= 3; n++ {
		if got := l.propose(p, n).Gap; math.Abs(got/want()-1) > 0.01 {
			t.Errorf("%d at once: gap %v, want %v", n, got, want())
		}
	}
	for l.S.Trials()%4 != 3 {
		c, err := l.S.Spec().Space.Decode([]float64{0.5, 0.1 * float64(l.S.Trials()-20)})
		if err != nil {
			t.Fatal(err)
		}
		l.Do(study.Add{Config: c, Outcome: labtest.Completed(l.S.Spec(), 2)})
	}
	for n := 1; n <= 3; n++ {
		if got := l.propose(p, n); got.Suggestions[0].Phase != PhaseExploit || got.Gap != 0 || got.Converged {
			t.Errorf("%d at once, the first of phase %s: gap %v, which nobody has looked for before that was pending", n, got.Suggestions[0].Phase, got.Gap)
		}
	}
	if e = p.engine; e == nil {
		t.Fatal("no model")
	}
	l.start(l.propose(p, 1))
	if got := diagnosed(); math.Abs(got/want()-1) > 0.01 {
		t.Errorf("with trials running: gap %v, want %v", got, want())
	}
	if got := l.propose(p, 1); got.Suggestions[0].Phase != PhaseModel || got.Gap != 0 || got.Converged {
		t.Errorf("with trials running an ask of phase %s says %v, %t", got.Suggestions[0].Phase, got.Gap, got.Converged)
	}
}

// TestThriftByDefinition: scores are log(u − μ*) − p·log c with μ* the best mean of the
// results and c what the model of costs foretells, p = 1 or what is left of the study's
// MaxCost; what is no better than μ* comes after all that is.
func TestThriftByDefinition(t *testing.T) {
	for _, all := range []float64{0, 100} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		spec.MaxCost = all
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"cost": "told"}`}, spec).(*bkb)
		spent := 0.0
		for i := range 14 {
			l.start(l.propose(p, 1))
			u := l.Coordinates(i)
			o := labtest.Completed(spec, math.Pow(u[0]-0.3, 2)+u[1])
			o.Cost = math.Exp(2*u[1] - u[0])
			spent += o.Cost
			l.Do(study.Tell{Trial: i, Outcome: o})
		}
		l.anchor(p)
		e, err := p.ready(l.S)
		if err != nil || e == nil || e.expense == nil {
			t.Fatalf("no model of costs: %v", err)
		}
		reference := math.Inf(-1)
		for i := range p.results.list {
			mean, _ := e.surfaces[0].predict(kernel.NewPoints(1, 2, p.results.list[i].x))
			reference = max(reference, mean[0])
		}
		power := 1.0
		if all > 0 {
			power = 1 - spent/all
		}
		a, rng := p.newAcquisition(e), rand.New(rand.NewPCG(1, 2))
		x := kernel.NewPoints[float64](50, 2, nil)
		bounds := make([]float64, x.Len())
		for i := range bounds {
			x.Row(i)[0], x.Row(i)[1], bounds[i] = rng.Float64(), rng.Float64(), reference+rng.NormFloat64()
		}
		scores := slices.Clone(bounds)
		a.spend().weigh(a, scores, x)
		apart := 0
		for i, u := range bounds {
			mean, _ := e.expense.predict(kernel.NewPoints(1, 2, x.Row(i)))
			cost := e.model.Expense.Target.value(mean[0])
			if math.Abs(cost-(2*x.Row(i)[1]-x.Row(i)[0])) > 0.3 {
				apart++
			}
			if u <= reference {
				if best := slices.Max(scores); scores[i] > best-5 {
					t.Errorf("a bound below the best mean has score %v of %v", scores[i], best)
				}
			} else if want := math.Log(u-reference) - power*cost; !close2(scores[i], want, 1e-9) {
				t.Errorf("score %v, want %v with power %v", scores[i], want, power)
			}
		}
		if apart > 10 {
			t.Errorf("%d of 50 costs are foretold far from what they are", apart)
		}
	}
}

// TestNoiseOfOutcomes: a mean of n values counts with precision n/ξ², one with a told
// standard error with 1/(ξ² + (error·slope)²), and how replicates scatter teaches ξ².
func TestNoiseOfOutcomes(t *testing.T) {
	_, _, e := worked(t, `{}`, 1, 20, wavy)
	s, p := &e.model.Surfaces[0], e.surfaces[0]
	for _, n := range []int{1, 2, 9} {
		if got := p.precision(s.outcome([]float64{0, 0}, measure{value: 0.3, stdErr: math.NaN(), count: n}), 0); !close2(got, float64(n)/s.Noise, 1e-12) {
			t.Errorf("precision %v of %d values, want %v", got, n, float64(n)/s.Noise)
		}
	}
	const h = 1e-6
	slope := (s.Target.of(0.3+h) - s.Target.of(0.3-h)) / (2 * h)
	want := 1 / (s.Noise + math.Pow(0.7*slope, 2))
	if got := p.precision(s.outcome([]float64{0, 0}, measure{value: 0.3, stdErr: 0.7, count: 5}), 0); !close2(got, want, 1e-6) {
		t.Errorf("precision %v with a standard error, want %v", got, want)
	}
	learnt := func(spread float64) float64 {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: `{"tail": "keep"}`}, spec).(*bkb)
		for i := range 30 {
			c, err := spec.Space.Decode([]float64{float64(i) / 29, float64(i*7%30) / 29})
			if err != nil {
				t.Fatal(err)
			}
			o := labtest.Completed(spec, 0)
			m := math.Sin(3 * float64(i) / 29)
			o.Metrics[0].Values = []float64{m - spread, m + spread, m - spread, m + spread}
			l.Do(study.Add{Config: c, Outcome: o})
		}
		l.anchor(p)
		e, err := p.ready(l.S)
		if err != nil {
			t.Fatal(err)
		}
		return e.model.Surfaces[0].Target.deviation(0, math.Sqrt(e.model.Surfaces[0].Noise))
	}
	for _, spread := range []float64{0.05, 0.4} {
		if got, want := learnt(spread), spread*math.Sqrt(4.0/3); got < want/1.4 || got > want*1.4 {
			t.Errorf("noise of standard deviation %v learnt from replicates, want %v", got, want)
		}
	}
}

// TestRecommendLower: a configuration that was measured once, a little better, has the
// better mean; one that was measured often has the better lower bound.
func TestRecommendLower(t *testing.T) {
	recommended := func(options string) float64 {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec).(*bkb)
		add := func(x, y float64, values ...float64) {
			c, err := spec.Space.Decode([]float64{x, y})
			if err != nil {
				t.Fatal(err)
			}
			o := labtest.Completed(spec, 0)
			o.Metrics[0].Values = values
			l.Do(study.Add{Config: c, Outcome: o})
		}
		for i := range 10 {
			add(0.1*float64(i), 0.1*float64(i*3%10), 3, 3.4, 2.6, 3.2, 2.8)
		}
		add(0.95, 0.05, 1.2, 0.8, 1.1, 0.9, 1.2, 0.8, 1, 1, 0.7, 1.3, 1, 1)
		add(0.05, 0.95, 0.6)
		l.anchor(p)
		best, err := p.Recommend(context.Background(), l.S)
		if err != nil || len(best) != 1 {
			t.Fatalf("%v, %v", best, err)
		}
		return l.Coordinates(best[0])[0]
	}
	if x := recommended(`{"width": 2, "recommend": "mean"}`); math.Abs(x-0.05) > 0.01 {
		t.Errorf("by the mean x = %v is recommended", x)
	}
	if x := recommended(`{"width": 2, "recommend": "lower"}`); math.Abs(x-0.95) > 0.01 {
		t.Errorf("by the lower bound x = %v is recommended", x)
	}
}

// TestRecommendPlausible: what was measured decides among the trials whose means are
// within one standard deviation of the best, and a draw that its neighbours make
// implausible does not count.
func TestRecommendPlausible(t *testing.T) {
	for seed := range uint64(6) {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), seed+1)
		l, p := newLab(t, spec), must(t, study.Component{Name: BKB}, spec).(*bkb)
		rng := rand.New(rand.NewPCG(seed, 5))
		noise := []float64{0, 0.3}[seed%2]
		least, lucky := math.Inf(1), -1
		for i := range 40 {
			x := []float64{rng.Float64(), rng.Float64()}
			y := 4*math.Pow(x[0]-0.3, 2) + 4*math.Pow(x[1]-0.6, 2) + noise*rng.NormFloat64()
			if noise > 0 { // two places, again and again: the worse one is the luckier
				x, y = []float64{0.2 + 0.6*float64(i%2), 0.5}, float64(i%2)+noise*rng.NormFloat64()
				if i == 21 {
					y = -1.5
				}
			}
			c, err := spec.Space.Decode(x)
			if err != nil {
				t.Fatal(err)
			}
			l.Do(study.Add{Config: c, Outcome: labtest.Completed(spec, y)})
			if y < least {
				least, lucky = y, i
			}
		}
		l.anchor(p)
		best, err := p.Recommend(context.Background(), l.S)
		if err != nil || len(best) != 1 {
			t.Fatalf("seed %d: %v, %v", seed, best, err)
		}
		if noise == 0 && best[0] != lucky {
			t.Errorf("seed %d: trial %d is recommended, %d was the best measured of a smooth function", seed, best[0], lucky)
		}
		if noise > 0 && best[0]%2 == 1 {
			t.Errorf("seed %d: trial %d is recommended, of the worse place", seed, best[0])
		}
		// By its definition.
		trials, x, measured := p.completed(l.S, true)
		e, err := p.current(l.S)
		if err != nil {
			t.Fatal(err)
		}
		mean, variance := e.surfaces[0].predict(kernel.NewPoints(len(trials), 2, x))
		want, top := -1, slices.Max(mean)
		for i, m := range mean {
			if top-m <= math.Sqrt(variance[i]) && (want < 0 || measured[0][i] > measured[0][want]) {
				want = i
			}
		}
		if best[0] != trials[want] {
			t.Errorf("seed %d: trial %d is recommended, not %d", seed, best[0], trials[want])
		}
	}
}
