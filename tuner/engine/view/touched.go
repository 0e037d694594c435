package view

import (
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// maxTouched is how many of the last events a study in memory knows the trials of.
const maxTouched = 20_000

// Touched has the trials of the last events of a study, so that a page that follows it
// need not read its log again.
type Touched struct {
	position study.Position // of the last event
	trials   []int32        // of the event at each position, by its remainder, or NoTrial
}

// Observe notes the next event.
func (t *Touched) Observe(e study.Event) {
	n, ok := e.Trial()
	if !ok {
		n = tuner.NoTrial
	}
	if i := int(t.position % maxTouched); i == len(t.trials) {
		t.trials = append(t.trials, int32(n))
	} else {
		t.trials[i] = int32(n)
	}
	t.position++
}

// Between returns the trials of the events after one position and up to another. A trial
// may be there several times. ok is false if not all of these events are known.
func (t *Touched) Between(after, upTo study.Position) (trials []int32, ok bool) {
	if after > upTo || upTo > t.position || t.position-after > study.Position(len(t.trials)) {
		return nil, false
	}
	for p := after; p < upTo; p++ {
		if n := t.trials[p%maxTouched]; n != tuner.NoTrial {
			trials = append(trials, n)
		}
	}
	return trials, true
}
