package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The sum of squares and the degrees of freedom are those of all replicates of each
// configuration, however they were told.
func TestRepeatsByDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var r Repeats
	values := make(map[uint64][]float64)
	for range 60 {
		at, n := rng.Uint64N(20), 1+rng.IntN(3)
		m := Measure{Count: n, StdErr: math.NaN()}
		var told []float64
		for range n {
			told = append(told, rng.NormFloat64())
			m.Value += told[len(told)-1] / float64(n)
		}
		for _, v := range told {
			m.Within += (v - m.Value) * (v - m.Value)
		}
		values[at] = append(values[at], told...)
		r.add(at, m)
	}
	freedom, within := 0, 0.0
	for _, v := range values {
		mean := 0.0
		for _, y := range v {
			mean += y / float64(len(v))
		}
		for _, y := range v {
			within += (y - mean) * (y - mean)
		}
		freedom += len(v) - 1
	}
	if r.Freedom != freedom || math.Abs(r.Within-within) > 1e-9*within {
		t.Errorf("%d degrees of freedom and %v, want %d and %v", r.Freedom, r.Within, freedom, within)
	}
	if most := r.Most(); most < math.Sqrt(within/float64(freedom)) || most > 2 {
		t.Errorf("the noise is at most %v", most)
	}
	if most := (&Repeats{}).Most(); !math.IsInf(most, 1) {
		t.Errorf("without repetitions the noise is at most %v", most)
	}
	exact := Repeats{Freedom: 1}
	if most := exact.Most(); most != 0 {
		t.Errorf("equal repetitions allow noise of %v", most)
	}
	told := Repeats{}
	told.add(1, Measure{Value: 1, Count: 4, StdErr: 0.5})
	if told.Freedom != 1 || told.Within != 1 {
		t.Errorf("a told standard error gives %+v", told)
	}
	told.add(2, Measure{Value: math.Inf(1), StdErr: math.NaN()})
	told.add(2, Measure{Value: 1, StdErr: math.NaN()})
	if told.Freedom != 1 {
		t.Errorf("an infinity was compared: %+v", told)
	}
}

// The values of pruned trials are no repetitions, because they were told before the end.
func TestPrunedTrialsAreNoRepetitions(t *testing.T) {
	l, _ := worked(t, nil, 1, 10, func(u []float64, _ *rand.Rand) []float64 { return []float64{u[0]} })
	for _, state := range []study.TrialState{study.Completed, study.Pruned, study.Pruned} {
		n := l.run(0.25, 0.75)
		o := labtest.Completed(l.S.Spec(), 0.5)
		o.State = state
		l.Do(study.Tell{Trial: n, Outcome: o})
	}
	e := l.ready()
	if e.Results.Repeats.Freedom != 0 || NewPool(l.S, nil, nil).Repeats.Freedom != 0 {
		t.Errorf("two pruned trials count as %d and %d repetitions", e.Results.Repeats.Freedom, NewPool(l.S, nil, nil).Repeats.Freedom)
	}
}
