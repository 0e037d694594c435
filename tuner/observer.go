package tuner

import (
	"time"
)

// Observer receives what happens in a [engine.Engine], for metrics. Functions that are nil are not
// called. They are called from several goroutines and must return quickly.
type Observer struct {
	// Stored is called for every stored event with its kind, as in [Event], and with
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
