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
			if i >= farModelFrom-leastStuck { // without an improvement
				u = []float64{0.01 * float64(i-farModelFrom+leastStuck), 0}
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
		if d := s.chooser.Diagnose(a.engine, 0); d.Stuck != c.kept || d.Idle < leastStuck {
			t.Errorf("%s: stuck %t after %d results, want %t", c.limit, d.Stuck, d.Idle, c.kept)
		}
		f := a.newFar()
		if (f != nil) != c.kept {
			t.Errorf("%s: a far search: %t, want %t", c.limit, f != nil, c.kept)
		}
		if f == nil {
			continue
		}
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

// farModelFrom is enough results for a model event with a far model.
const farModelFrom = 60
