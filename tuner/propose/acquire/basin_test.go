package acquire

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A far suggestion improves on the best result that keeps the limits, although those that
// break them are far better here. As long as none keeps them, nothing is far.
func TestFarImprovesWithinLimits(t *testing.T) {
	for _, c := range []struct {
		limit string
		kept  bool
	}{{`{"constraints": {"latency": {"max": 0.5}}}`, true}, {`{"constraints": {"latency": {"max": -1}}}`, false}} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 3)
		s := newSubject(t, spec, func(m *model.Options, _ *Options) {
			m.Far, m.Constraints = true, model.ReadConstraints(study.ReadOptions("proposer.options", c.limit))
		})
		for i := range farModelFrom {
			u := []float64{math.Mod(float64(i)*0.618, 1), (float64(i) + 0.5) / farModelFrom}
			if i >= farModelFrom-5 { // without an improvement
				u = []float64{0.01 * float64(i-farModelFrom+5), 0}
			}
			o := labtest.Completed(spec, -4*u[0]-u[1])
			o.Metrics = append([]study.Metric{{Name: "latency", Values: []float64{u[0]}}}, o.Metrics...)
			s.Do(study.Add{Config: s.Decode(u...), Outcome: o})
		}
		s.anchor()
		a := s.ahead()
		if a.engine.Far() == nil {
			t.Fatal("no far model")
		}
		w := a.survey(0)
		w.pool.Mean = slices.Repeat([]float64{-100}, len(w.pool.X)) // the bound has nothing to gain
		if got := a.gainsNothing(w); got != c.kept {
			t.Errorf("%s: a far search: %t, want %t", c.limit, got, c.kept)
		}
		if !c.kept {
			continue
		}
		f := a.newBasin()
		want := math.Inf(-1)
		for _, r := range a.engine.Results.List {
			if r.Feasible {
				want = max(want, a.engine.Far().Means(0, row(r.X...))[0])
			}
		}
		if math.Abs(f.best-want) > 1e-9 {
			t.Errorf("a far suggestion improves on %v, and the best that keeps the limit is %v", f.best, want)
		}
		if slices.ContainsFunc(f.parents, func(x []float64) bool { return x[0] > 0.5 }) {
			t.Errorf("a parent breaks the limit: %v", f.parents)
		}
	}
}

// Within a branch a far suggestion improves on the best result of the branch that keeps the
// limits, although others of it that break them are far better. In a branch where none keeps
// them, it improves on the best of all.
func TestFarImprovesWithinLimitsOfBranch(t *testing.T) {
	sp := labtest.Parse(t, `{"kind": {"type": "categorical", "values": ["a", "b", "c"]}, "s": {"type": "float", "low": 0, "high": 1},
		"a0": {"type": "float", "low": 0, "high": 1, "when": {"kind": "a"}}, "b0": {"type": "float", "low": 0, "high": 1, "when": {"kind": "b"}}}`)
	spec := labtest.SpecOf(sp, 3)
	s := newSubject(t, spec, func(m *model.Options, _ *Options) {
		m.Far, m.Constraints = true, model.ReadConstraints(study.ReadOptions("proposer.options", `{"constraints": {"latency": {"max": 0.5}}}`))
	})
	kind, _ := sp.Coordinate("kind")
	along, _ := sp.Coordinate("s")
	for i := range farModelFrom {
		u := []float64{math.Mod(float64(i)*0.618, 1), math.Mod(float64(i)*0.755, 1), math.Mod(float64(i)*0.57, 1), math.Mod(float64(i)*0.43, 1)}
		u[kind] = (float64(i%3) + 0.5) / 3
		o := labtest.Completed(spec, -4*u[along]+3*math.Floor(u[kind]*3))
		o.Metrics = append([]study.Metric{{Name: "latency", Values: []float64{u[along]}}}, o.Metrics...)
		if i%3 == 2 {
			o.Metrics[0].Values[0]++
		}
		s.Do(study.Add{Config: s.Decode(u...), Outcome: o})
	}
	s.anchor()
	a := s.ahead()
	for k, name := range []string{"a", "b", "c"} {
		f := a.newBasin()
		if f == nil {
			t.Fatal("no far search")
		}
		all := f.best
		b := &box{low: make([]float64, sp.Dim()), high: slices.Repeat([]float64{1}, sp.Dim())}
		b.low[kind] = (float64(k) + 0.5) / 3
		b.high[kind] = b.low[kind]
		f.restrict(b)
		want, broken := math.Inf(-1), math.Inf(-1)
		for _, m := range a.eliteOf(a.engine) {
			if x := a.engine.Results.List[m].X; f.sameBranch(x, b) {
				want = max(want, a.engine.Far().Means(0, row(x...))[0])
			}
		}
		for _, r := range a.engine.Results.List {
			if !r.Feasible && f.sameBranch(r.X, b) {
				broken = max(broken, a.engine.Far().Means(0, row(r.X...))[0])
			}
		}
		if name == "c" {
			want = all
		} else if !(broken > want+0.1) {
			t.Fatalf("branch %s: %v is not better than %v", name, broken, want)
		}
		if math.Abs(f.best-want) > 1e-9 {
			t.Errorf("branch %s: a far suggestion improves on %v, want %v", name, f.best, want)
		}
	}
}

// farModelFrom is enough results for a model event with a far model.
const farModelFrom = 60
