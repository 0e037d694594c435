package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// observeCommit reports stored events.
func observeCommit(o *tuner.Observer, events []study.Event, took time.Duration) {
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

// observeModel reports a model event.
func observeModel(o *tuner.Observer, took time.Duration, a study.Anchor) {
	if o.Refitted != nil {
		o.Refitted(took, propose.InducingPointsOf(a))
	}
}

// Loaded returns the studies in memory in no order. Studies with running trials are in memory
// once a worker has called since the start.
func (t *Engine) Loaded() []tuner.Study {
	t.mu.Lock()
	held := slices.Collect(maps.Values(t.inUse))
	t.mu.Unlock()
	out := make([]tuner.Study, 0, len(held))
	for _, a := range held {
		if s, ok := a.Peek(t.options.Now()); ok {
			out = append(out, s)
		}
	}
	return out
}
