package actor

import (
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// ObserveCommit reports stored events.
func ObserveCommit(o *tuner.Observer, events []study.Event, took time.Duration) {
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
		o.Stored(view.Kind(e.Body), phase)
	}
}

// observeModel reports a model event.
func observeModel(o *tuner.Observer, took time.Duration, a study.Anchor) {
	if o.Refitted != nil {
		o.Refitted(took, propose.InducingPointsOf(a))
	}
}
