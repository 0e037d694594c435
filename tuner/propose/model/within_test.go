package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// The leave-one-out error is that of models without each result in turn, and no outcome of a
// young model has a smaller standard deviation, in the units of an affine target.
func TestLeaveOneOutByDefinition(t *testing.T) {
	for seed := range uint64(6) {
		n := 5 + int(seed)
		l, _ := worked(t, nil, 1, n, func(u []float64, rng *rand.Rand) []float64 {
			return []float64{math.Sin(7*u[0]) + u[1] + float64(seed)*rng.NormFloat64()/4}
		})
		l.anchor()
		e := l.ready()
		s, list := &e.Event.Surfaces[0], e.Results.List[:e.Event.Results]
		k, err := s.kernel(l.S.Spec().Space)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i := range list {
			var x, y []float64
			for j := range list {
				if j != i {
					x, y = append(x, list[j].X...), append(y, s.Target.Of(list[j].Y[0].Value))
				}
			}
			g, err := gp.NewExact(k, gp.Data{X: kernel.NewPoints(len(y), 2, x), Y: y}, gp.Options{NoiseVariance: s.Noise, Mean: s.Mean})
			if err != nil {
				t.Fatal(err)
			}
			mean, _, err := g.Predict(kernel.NewPoints(1, 2, list[i].X))
			if err != nil {
				t.Fatal(err)
			}
			d := mean[0] - s.Target.Of(list[i].Y[0].Value)
			sum += d * d
		}
		if want := math.Sqrt(sum / float64(len(list))); !close2(e.within, want, 1e-6) {
			t.Errorf("seed %d: the error is %v, want %v", seed, e.within, want)
		}
		if s.Target.Power > 0 {
			continue
		}
		for _, r := range list {
			if sd := e.Past().Outcome(r.X); sd < s.Target.Deviation(0, e.within)*(1-1e-9) {
				t.Errorf("seed %d: an outcome has the standard deviation %v at %v, and errors were %v", seed, sd, r.X, s.Target.Deviation(0, e.within))
			}
		}
	}
}

// Means of a metric that was never negative are not negative, and those of others may be. The
// bound of a suggestion stays as far from the mean.
func TestNothingNegativeIsPredicted(t *testing.T) {
	for _, shift := range []float64{0, -1} {
		l, _ := worked(t, nil, 1, 12, func(u []float64, _ *rand.Rand) []float64 { return []float64{u[0]*u[0]*u[0] + shift} })
		l.anchor()
		e := l.ready()
		least := math.Inf(1)
		for i := range 101 {
			x := []float64{float64(i) / 100, 0.5}
			p, bound := e.Past().Explain(x, []float64{2})
			frozen := e.Freeze().At(kernel.NewPoints(1, 2, x))[0].Mean[0]
			m, v := e.Past().Predict(0, kernel.NewPoints(1, 2, x))
			if raw := e.Show(0, m[0]); shift < 0 && (p.Mean[0] != raw || frozen != raw) || shift == 0 && (p.Mean[0] != max(raw, 0) || frozen != p.Mean[0]) {
				t.Errorf("shift %v: predicted %v and %v, and the model has %v", shift, p.Mean[0], frozen, raw)
			}
			want := e.Show(0, m[0]) - e.Show(0, m[0]+2*math.Sqrt(v[0]))
			if !close2(p.Mean[0]-bound[0], want, 1e-9) {
				t.Errorf("shift %v: the bound is %v from the mean, want %v", shift, p.Mean[0]-bound[0], want)
			}
			least = min(least, e.Show(0, m[0]))
		}
		if least >= 0 {
			t.Errorf("shift %v: the model has no negative mean, so that the test says nothing", shift)
		}
	}
}
