package acquire

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// bowlWithOutlier returns an exact study with its best trial, after which the optimum itself
// was measured as 1e30.
func bowlWithOutlier(t *testing.T, tweak func(m *model.Options, o *Options)) (s *subject, best int) {
	t.Helper()
	s = newSubject(t, labtest.SpecOf(labtest.Parse(t, labtest.Square), 3), tweak)
	least := 2.0
	s.Scatter(40, func(u []float64, _ *rand.Rand) []float64 {
		y := (u[0]-0.4)*(u[0]-0.4) + (u[1]-0.6)*(u[1]-0.6)
		if y < least {
			best, least = s.S.Trials(), y
		}
		return []float64{y}
	})
	s.Do(study.Add{Config: s.Decode(0.4, 0.6), Outcome: labtest.Completed(s.S.Spec(), 1e30)})
	s.anchor()
	if got := s.at().Outliers; !slices.Equal(got, []int{40}) {
		t.Fatalf("outliers %v, want [40]", got)
	}
	return s, best
}

// An outlier is not recommended, although the model expects the best value at its place.
func TestOutliersAreNotRecommended(t *testing.T) {
	s, best := bowlWithOutlier(t, nil)
	if d := s.chooser.Diagnose(s.at(), 0); d.Outliers != 1 || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "1 result as an outlier") {
		t.Errorf("%d outliers, warnings %q", d.Outliers, d.Warnings)
	}
	if got := s.recommended(); !slices.Equal(got, []int{best}) {
		t.Errorf("recommended %v, and the best is %d", got, best)
	}
	// One trial keeps the limit, and it is an outlier.
	s, _ = bowlWithOutlier(t, func(m *model.Options, _ *Options) {
		m.Constraints = model.ReadConstraints(study.ReadOptions("proposer.options", `{"constraints": {"loss": {"min": 1e29}}}`))
	})
	if got := s.recommended(); !slices.Equal(got, []int{40}) {
		t.Errorf("recommended %v, want the one trial that keeps the limit", got)
	}
}

// An outlier says nothing about the noise of repeated measurements, and does not count in the
// mean with a late result.
func TestOutliersAmongRepetitions(t *testing.T) {
	s, _ := bowlWithOutlier(t, nil)
	s.Do(study.Add{Config: s.Decode(0.4, 0.6), Outcome: labtest.Completed(s.S.Spec(), 0)})
	s.Do(study.Add{Config: s.Decode(0.4, 0.6), Outcome: labtest.Completed(s.S.Spec(), 1e-6)})
	e := s.at()
	repeats := model.NewPool(s.S, nil, e.LeavesOut()).Repeats
	if all := e.Results.Repeats; repeats.Freedom != 1 || repeats.Most() > 1e-4 || all.Freedom != 2 || all.Most() < 1e20 {
		t.Errorf("noise at most %v with %d repetitions, and with outliers %v with %d", repeats.Most(), repeats.Freedom, all.Most(), all.Freedom)
	}
	if got := s.recommended(); !slices.Equal(got, []int{41}) {
		t.Errorf("recommended %v, want [41]", got)
	}

	n := s.Do(study.Enqueue{Config: s.Decode(0.41, 0.6)}).Trials[0]
	s.Do(study.Ask{Count: 1})
	s.Do(study.Expire{Trial: n, Epoch: 1})
	s.Do(study.Ask{Count: 1})
	s.Do(study.Tell{Trial: n, Epoch: 1, Outcome: labtest.Completed(s.S.Spec(), 1e30)})
	s.Do(study.Tell{Trial: n, Outcome: labtest.Completed(s.S.Spec(), 1e-4)})
	e = s.at()
	list := model.NewPool(s.S, nil, e.LeavesOut()).List
	at := slices.IndexFunc(list, func(p model.Pooled) bool { return p.Trial == n })
	if len(e.Outliers) != 2 || at < 0 || list[at].Values[0] != -1e-4 {
		t.Errorf("outliers %v, configurations %+v", e.Outliers, list)
	}
}
