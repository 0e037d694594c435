package papers

import (
	"errors"
	"testing"

	"github.com/bkbtuner/bkb/learners"
)

// This is a scaled-down version of Corollaries 3.2, 3.6 and 3.8. The error falls with T
// for all rules, at least half as fast as their bounds. The experiment has more sizes.
func TestOnlineRates(t *testing.T) {
	for _, rule := range []onlineRule{fixedSteps, decayingSteps, regularisedSteps} {
		r, err := onlineStudy{Rule: rule, Sizes: []int{40, 400}, Noise: 0.3, Repetitions: 6, Seed: 1}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: error %.3g at T = %v: T^%.2f, theory T^%.2f", rule, r.Error, r.Sizes, r.Slope, r.Theory)
		if r.Slope > r.Theory/2 {
			t.Errorf("%s: the error falls as T^%.2f, theory T^%.2f", rule, r.Slope, r.Theory)
		}
	}
}

func TestOnlineStudyRefuses(t *testing.T) {
	var e *learners.ParameterError
	for _, s := range []onlineStudy{{Rule: fixedSteps}, {Rule: fixedSteps, Sizes: []int{10, 5}}, {Rule: "best", Sizes: []int{5, 10}}} {
		if _, err := s.Run(t.Context()); !errors.As(err, &e) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
