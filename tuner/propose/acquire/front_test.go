package acquire

import (
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
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

// The gain is that over the means of the best results and of pending trials. The reference is worse
// than the best results in each objective, and no worse than the worst result and a tenth of the range.
// It is nearer the longer the front is.
func TestVolume(t *testing.T) {
	l, e := worked(t, nil, 3, 25, labtest.Wavy)
	l.Start(l.propose(1).Suggestions...)
	a := l.ahead()
	at := func(u float64, x []float64) float64 {
		mean, none := make([][]float64, 3), slices.Repeat([][]float64{{0}}, 3)
		for j := range mean {
			mean[j] = a.outlook.Means(j, row(x...))
		}
		return a.volume(u).LogGain(mean, none)[0]
	}
	for _, i := range a.eliteOf(e) {
		if got := at(0, e.Results.List[i].X); got > -100 {
			t.Errorf("best result %d would gain exp %v", i, got)
		}
	}
	if got := at(0.5, e.Results.Pending[0].X); got > -100 {
		t.Errorf("the pending trial would gain exp %v again", got)
	}
	// A point that is best in one objective and as bad as the worst in the others gains with a far
	// reference only.
	x := kernel.NewPoints[float64](1, 2, nil)
	mean, none := make([][]float64, 3), slices.Repeat([][]float64{{0}}, 3)
	for j := range mean {
		mean[j] = []float64{math.Inf(1)}
		for i := range e.Results.List {
			copy(x.Row(0), e.Results.List[i].X)
			mean[j][0] = min(mean[j][0], e.Event.Surfaces[j].Target.Of(e.Results.List[i].Y[j].Value))
		}
	}
	mean[0][0] = 10
	last := math.Inf(-1)
	for _, u := range []float64{0, 0.9, 0.99, 0.999, 1} {
		got := a.volume(u).LogGain(mean, none)[0]
		if got < last {
			t.Errorf("share of %v: %v, less than %v with a nearer reference", u, got, last)
		}
		last = got
	}
	if first := a.volume(0).LogGain(mean, none)[0]; first > -700 || last < -100 {
		t.Errorf("log gains %v with a near and %v with a far reference", first, last)
	}
}

// Until a result keeps the limits, suggestions look for one that does, with any number of objectives,
// and suggestions of one batch differ.
func TestVolumeWithoutFeasibleResults(t *testing.T) {
	l, e := worked(t, func(m *model.Options, _ *Options) {
		m.Constraints = model.ReadConstraints(study.ReadOptions("o", `{"constraints": {"o0": {"max": -1e6}}}`))
	}, 2, 12, labtest.Wavy)
	a := l.ahead()
	if len(a.eliteOf(e)) != 0 || len(a.volume(0.5).LogGain([][]float64{{9}, {9}}, [][]float64{{1}, {1}})) != 1 {
		t.Fatal("some results are feasible")
	}
	if got := a.volume(0.5).LogGain([][]float64{{9}, {9}}, [][]float64{{1}, {1}})[0]; got < 0 {
		t.Errorf("a point better than all results gains exp %v", got)
	}
	p := l.propose(4).Suggestions
	for i := range p {
		for k := range i {
			if p[i].Config.Equal(p[k].Config) {
				t.Errorf("suggestions %d and %d are both %v", k, i, p[i].Config)
			}
		}
	}
}
