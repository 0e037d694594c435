package view

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestTouched compares the trials of the last events with a list of all events.
func TestTouched(t *testing.T) {
	var got Touched
	var all []int32
	rng := rand.New(rand.NewPCG(5, 1))
	whole, partial := 0, 0
	for range 2*maxTouched + 77 {
		e := study.Event{Body: study.Told{Trial: rng.IntN(9)}}
		if rng.IntN(5) == 0 {
			e.Body = study.Paused{}
		}
		n, ok := e.Trial()
		if !ok {
			n = tuner.NoTrial
		}
		got.Observe(e)
		all = append(all, int32(n))
		if rng.IntN(100) > 0 {
			continue
		}
		after := rng.IntN(len(all) + 2)
		upTo := after + rng.IntN(len(all)+2) - 1
		trials, ok := got.Between(study.Position(after), study.Position(upTo))
		known := after <= upTo && upTo <= len(all) && len(all)-after <= maxTouched
		if ok != known {
			t.Fatalf("between %d and %d of %d: ok is %v", after, upTo, len(all), ok)
		}
		if !ok {
			whole++
			continue
		}
		partial++
		want := slices.DeleteFunc(slices.Clone(all[after:upTo]), func(n int32) bool { return n == tuner.NoTrial })
		if !slices.Equal(trials, want) {
			t.Fatalf("between %d and %d: %v, want %v", after, upTo, trials, want)
		}
	}
	if whole < 50 || partial < 50 {
		t.Errorf("%d questions were refused and %d answered", whole, partial)
	}
}
