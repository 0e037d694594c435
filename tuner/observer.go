package tuner

import (
	"time"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Observer receives what happens in a [Tuner], for metrics. Functions that are nil are not
// called. They are called from several goroutines and must return quickly.
type Observer struct {
	// Stored is called for every stored event with its kind, as in [Happening], and with
	// the phase of the suggestion if it started a new trial.
	Stored func(kind, phase string)
	// Proposed is called after new suggestions were made for an ask, with the time that the
	// ask waited for them. prepared reports that they had been made before.
	Proposed func(took time.Duration, prepared bool)
	// Refitted is called after a model event was made, with the time that it took and the
	// number of inducing points of the first objective.
	Refitted func(took time.Duration, inducingPoints int)
	// Committed is called after every commit to the store.
	Committed func(took time.Duration, events int)
}

// stored reports stored events.
func (o *Observer) stored(events []study.Event, took time.Duration) {
	if o.Committed != nil {
		o.Committed(took, len(events))
	}
	if o.Stored == nil {
		return
	}
	for _, e := range events {
		phase := ""
		if b, ok := e.Body.(study.Started); ok && b.Suggestion != nil {
			phase = b.Suggestion.Phase
		}
		o.Stored(kindOf(e.Body), phase)
	}
}

// refitted reports a model event.
func (o *Observer) refitted(took time.Duration, a study.Anchor) {
	if o.Refitted != nil {
		o.Refitted(took, propose.InducingPointsOf(a))
	}
}

// Loaded returns the studies in memory in no order. Studies with running trials are in memory
// once a worker has called since the start.
func (t *Tuner) Loaded() []Study {
	t.mu.Lock()
	desks := make([]*desk, 0, len(t.desks))
	for _, d := range t.desks {
		desks = append(desks, d)
	}
	t.mu.Unlock()
	now := t.options.Now()
	out := make([]Study, 0, len(desks))
	for _, d := range desks {
		select {
		case <-d.loaded:
		default:
			continue
		}
		if d.loadErr != nil {
			continue
		}
		d.log.mu.Lock()
		if d.log.live != nil {
			out = append(out, d.log.live.view(d.name, d.id, now))
		}
		d.log.mu.Unlock()
	}
	return out
}
