package acquire

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A study of two objectives has more results on its front than are kept. Both ends of the
// front stay among the parents, and so does the ideal that they give, though they came
// first.
func TestLongFront(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
	spec.Objectives = []study.Objective{{Name: "a", Direction: study.Minimize}, {Name: "b", Direction: study.Minimize}}
	l := newSubject(t, spec, func(m *model.Options, _ *Options) { m.Cap = 16 })
	const n = 140
	for i := range n {
		x := float64(i) / n
		switch i {
		case 0:
			x = 0
		case 1:
			x = 1
		}
		l.Do(study.Add{Config: l.Decode(x, 0.5), Outcome: labtest.Completed(spec, x, (1-x)*(1-x))})
	}
	l.Start(l.propose(1).Suggestions...)
	members := l.ahead().elite.members
	if len(members) >= frontMost || !slices.Contains(members, 0) || !slices.Contains(members, 1) {
		t.Fatalf("%d on the front: %v", len(members), members)
	}
	widest, last := 0.0, math.Inf(-1)
	xs := make([]float64, 0, len(members))
	for _, m := range members {
		xs = append(xs, l.model.Results.List[m].X[0])
	}
	for _, x := range slices.Sorted(slices.Values(xs)) {
		widest, last = max(widest, x-last), x
		if math.IsInf(widest, 1) {
			widest = 0
		}
	}
	if widest > 0.1 {
		t.Errorf("there is a gap of %v in the front", widest)
	}
}
