package acquire

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A lead that the model does not explain is luck where repetitions differ by as much, and
// merit where they do not. Without repetitions the model decides. A study says with the
// option that its outcomes are exact.
func TestRepetitionsDecideBetweenLuckAndMerit(t *testing.T) {
	for _, c := range []struct {
		name   string
		differ []float64 // between two results of one configuration
		exact  bool
		merit  bool
	}{
		{name: "no repetitions"},
		{name: "exact option", exact: true, merit: true},
		{name: "equal repetition", differ: []float64{0}, merit: true},
		{name: "close repetitions", differ: []float64{0.01, -0.01}, merit: true},
		{name: "repetitions apart", differ: []float64{0.7, -0.6}},
	} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Square), 7)
		s := newSubject(t, spec, func(_ *model.Options, o *Options) { o.Exact = c.exact })
		s.Scatter(40, func(u []float64, rng *rand.Rand) []float64 { return []float64{4*u[0] + 0.5*rng.NormFloat64()} })
		lucky := s.S.Trials()
		s.Do(study.Add{Config: s.Decode(0.5, 0.5), Outcome: labtest.Completed(spec, -2)})
		for i, d := range c.differ {
			at := s.Decode(0.2, 0.1+0.2*float64(i))
			s.Do(study.Add{Config: at, Outcome: labtest.Completed(spec, 0.8)})
			s.Do(study.Add{Config: at, Outcome: labtest.Completed(spec, 0.8+d)})
		}
		s.anchor()
		if got := s.recommended(); slices.Equal(got, []int{lucky}) != c.merit {
			t.Errorf("%s: recommended %v, and the best measured is %d", c.name, got, lucky)
		}
	}
}

// The best trial is repeated once from firstRepeat results on, one at a time, and never
// if the options exclude it.
func TestRepetition(t *testing.T) {
	for _, c := range []struct {
		name  string
		tweak func(o *Options)
		n     int
		want  bool
	}{
		{name: "due", n: 20, want: true},
		{name: "few results", n: 19},
		{name: "excluded", n: 20, tweak: func(o *Options) { o.Repeat = false }},
	} {
		l, e := worked(t, func(_ *model.Options, o *Options) {
			if o.Repeat = true; c.tweak != nil {
				c.tweak(o)
			}
		}, 1, c.n, func(u []float64, rng *rand.Rand) []float64 { return []float64{u[0] + 2*rng.NormFloat64()} })
		e.Event.Surfaces[0].Noise = 0.5
		a := l.ahead()
		x, err := a.repetition(new(turn))
		if (x != nil) != c.want || err != nil {
			t.Errorf("%s: repeats %v, %v", c.name, x, err)
		}
		if x == nil {
			continue
		}
		best := a.engine.Results.List[a.elite.ranked[0]]
		for _, r := range a.engine.Results.List {
			if r.Y[0].Value > best.Y[0].Value {
				t.Errorf("%s: repeats a trial of %v, and one has %v", c.name, best.Y[0].Value, r.Y[0].Value)
			}
		}
		if !slices.Equal(x, best.X) {
			t.Errorf("%s: repeats %v, want %v", c.name, x, best.X)
		}
		a.chosen = append(a.chosen, x)
		if x, _ := a.repetition(new(turn)); x != nil {
			t.Errorf("%s: repeats it twice at once", c.name)
		}
	}
}
