package acquire

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A study whose outcomes are where they were predicted ends by stop_gap. One whose outcomes
// are far outside their intervals does not, its bounds are wider, and a diagnosis says so.
func TestStopGapNeedsCoverage(t *testing.T) {
	const n = 12
	for _, c := range []struct {
		name  string
		wrong float64 // distance of outcomes from predictions
		poor  bool
	}{{"as predicted", 0.01, false}, {"far off", 20, true}} {
		rng := rand.New(rand.NewPCG(1, 2))
		l, _ := worked(t, func(_ *model.Options, o *Options) { o.StopGap, o.StopAfter = 1e9, 8 }, 1, n, labtest.Wavy)
		for range 30 {
			p := l.propose(1)
			l.Start(p.Suggestions...)
			y := p.Suggestions[0].Mean[0] + math.Copysign(c.wrong*math.Hypot(p.Suggestions[0].StdDev[0], l.at().Noise()), rng.NormFloat64())
			l.Do(study.Tell{Trial: l.S.Trials() - 1, Outcome: labtest.Completed(l.S.Spec(), y)})
		}
		made, e := l.propose(1), l.at()
		if made.Gap <= 0 {
			t.Errorf("%s: the gap is %v", c.name, made.Gap)
		}
		if made.Converged == c.poor || e.Calibration.Poor() != c.poor {
			t.Errorf("%s: the study ends: %t, coverage is poor: %t", c.name, made.Converged, e.Calibration.Poor())
		}
		d := l.chooser.Diagnose(e, l.S.Trials())
		if d.Predicted < 25 || (float64(d.Covered) < 0.85*float64(d.Predicted)) != c.poor || (d.Calibration > 1) != c.poor {
			t.Errorf("%s: %d of %d covered, calibration %v", c.name, d.Covered, d.Predicted, d.Calibration)
		}
		text := strings.Join(d.Warnings, "\n")
		if strings.Contains(text, "overconfident") != c.poor || strings.Contains(text, "stop_gap does not end") != c.poor {
			t.Errorf("%s: warnings %q", c.name, text)
		}
	}
}

// Suggestions after constant outcomes show an uncertain mean.
func TestConstantOutcomesAreUncertain(t *testing.T) {
	l, _ := worked(t, nil, 1, 12, func([]float64, *rand.Rand) []float64 { return []float64{3} })
	if p := l.propose(1); !(p.Suggestions[0].StdDev[0] > 0) || p.Noise[0] != 0 {
		t.Errorf("a mean of %v ± %v with noise %v", p.Suggestions[0].Mean, p.Suggestions[0].StdDev, p.Noise)
	}
}
