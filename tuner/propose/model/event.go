package model

import (
	"encoding/json"
	"fmt"
)

// modelVersion is that of the encoding of model events. Version 2 has Knee of target
// and Spread of fidelity, which a program that knows version 1 alone would pass over
// and suggest otherwise; here an event of version 1 is one without them. From version
// 3 on late results are results, of the model and of suggestions while it is in effect;
// with one of version 2 or 1 they are not, as they were not when it was made. From
// version 4 on observations of one input are one point, whose residual counts once, and
// inducing points are drawn by samplers of package sketch, which the event names. So the
// log tells of each suggestion what it was made from.
const (
	modelVersion  = 4
	mergedVersion = 4
	lateVersion   = 3
	firstVersion  = 1
)

// Event is the content of a model event: all that does not follow from the study's
// results alone.
type Event struct {
	Version int `json:"version"`
	Results int `json:"results"` // the model was made from so many
	Fitted  int `json:"fitted"`  // and its hyper-parameters from so many
	// Active is the mean number of active coordinates.
	Active float64 `json:"active"`
	// Surfaces are one for each objective, then that of feasibility if there
	// have been infeasible trials.
	Surfaces []Surface `json:"surfaces"`
	// Expense is the model of the logarithm of the cost.
	Expense *Surface `json:"expense,omitempty"`
}

// deaf tells whether there is a model and late results do not count while it is in
// effect.
func (e *Event) deaf() bool { return e.Version > 0 && e.Version < lateVersion }

// apart tells whether observations of equal inputs are points of their own while the
// event is in effect.
func (e *Event) apart() bool { return e.Version < mergedVersion }

// Decode reads the content of a model event.
func Decode(text []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("a model event: %w", err)
	}
	if e.Version < firstVersion || e.Version > modelVersion {
		return e, fmt.Errorf("a model event of version %d, this program knows %d to %d", e.Version, firstVersion, modelVersion)
	}
	return e, nil
}

// inEffect is the content of the model event that is in effect at the end of v; ok is
// false if there is none.
func inEffect(v View) (e Event, ok bool, err error) {
	a, ok := v.Anchor(v.Position())
	if !ok {
		return Event{}, false, nil
	}
	e, err = Decode(a.Model)
	return e, true, err
}
