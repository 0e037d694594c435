package acquire

import (
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A study of two objectives keeps all of a long front, and no result that another dominates.
func TestLongFront(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 2)
	spec.Objectives = []study.Objective{{Name: "a", Direction: study.Minimize}, {Name: "b", Direction: study.Minimize}}
	l := newSubject(t, spec, func(m *model.Options, _ *Options) { m.Cap = 16 })
	const n = 140
	var want []int
	for i := range n {
		x, behind := float64(i*37%n)/n, float64(i%7/6)
		l.Do(study.Add{Config: l.Decode(x, 0.5), Outcome: labtest.Completed(spec, x+behind, (1-x)*(1-x)+behind)})
		if behind == 0 {
			want = append(want, i)
		}
	}
	l.Start(l.propose(1).Suggestions...)
	if members := slices.Sorted(slices.Values(l.ahead().elite.ranked)); !slices.Equal(members, want) {
		t.Fatalf("%d on the front: %v, want %v", len(members), members, want)
	}
}
