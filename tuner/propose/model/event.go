package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// modelVersion is the version of the encoding of model events. A change of the encoding, or of
// what follows from an event, needs a new one, so that the log explains every suggestion.
const modelVersion = 1

// Event is the content of a model event. It is all that does not follow from the study's
// results alone.
type Event struct {
	Version int `json:"version"`
	Results int `json:"results"` // number of results that the model was made from
	Fitted  int `json:"fitted"`  // number of results that its hyper-parameters were fitted to
	// Active is the mean number of active coordinates.
	Active float64 `json:"active"`
	// Surfaces are one for each objective, then that of success if there have been failures.
	Surfaces []Surface `json:"surfaces"`
	// Explained is the gain of the model of success over a constant rate, where it is among
	// the surfaces (see [Engine.Blames]).
	Explained float64 `json:"explained,omitempty"`
	// Limited are the models of the metrics with a limit, in the order of the constraints.
	// It is nil for a metric that is known of fewer than two results.
	Limited []*Surface `json:"limited,omitempty"`
	// Outliers are not among the data of Surfaces[0] and Far.
	Outliers *Outliers `json:"outliers,omitempty"`
	// Far is a model of the one objective for other basins than that of the incumbent.
	Far *Surface `json:"far,omitempty"`
	// Expense is the model of the logarithm of the cost.
	Expense *Surface `json:"expense,omitempty"`
}

// failuresInRow is how many failures in a row make a model event due. The hyper-parameters of the
// event before may not explain them, and each one costs a trial. If that event was made after as
// many, the next one needs at least a share of the results, as regular ones do in long studies.
const failuresInRow = 4

// blind reports whether there are failures among later results and no model of success, or
// many failures in a row.
func (e *Event) blind(list []Result, objectives int) bool {
	if e.Results == 0 || len(list) <= e.Results { // there is no model, or nothing new
		return false
	}
	later := list[e.Results:]
	if len(e.Surfaces) == objectives {
		return slices.ContainsFunc(later, func(r Result) bool { return r.Failed })
	}
	needed := failuresInRow
	if failed(list[:e.Results], failuresInRow) {
		needed = max(needed, e.Results/stepShare)
	}
	return failed(later, needed)
}

// failed reports whether the last n results are failures.
func failed(list []Result, n int) bool {
	return len(list) >= n && !slices.ContainsFunc(list[len(list)-n:], func(r Result) bool { return !r.Failed })
}

// Decode reads the content of a model event.
func Decode(text []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("a model event: %w", err)
	}
	switch {
	case e.Version > modelVersion:
		return e, fmt.Errorf("a model event of version %d, but this program knows versions up to %d; upgrade it", e.Version, modelVersion)
	case e.Version < modelVersion:
		return e, fmt.Errorf("a model event of version %d, but versions begin at %d", e.Version, modelVersion)
	}
	return e, nil
}

// inEffect returns the content of the model event that is in effect at the end of v, and the event
// itself. If there is none, ok is false.
func (m *Model) inEffect(v View) (e Event, a study.Anchored, ok bool, err error) {
	if a, ok = v.Anchor(v.Position()); !ok {
		return e, a, false, nil
	}
	if m.engine != nil && bytes.Equal(m.engine.text, a.Model) {
		return m.engine.Event, a, true, nil
	}
	e, err = Decode(a.Model)
	return e, a, true, err
}

// Schedule of model events, in results.
const (
	maxStep   = 512 // while there are no more than maxStep·stepShare results
	stepShare = 64  // later the step is this fraction of the results
	fitRatio  = 1.2 // growth between fits
)

// step returns how many results after a model event the next one is due. It also bounds the
// number of results that a restart replays. For long histories it grows with the results,
// as the cost of a model event does.
func step(results int) int {
	return min(max(results/5, 2), max(maxStep, results/stepShare))
}

// lag returns how many more results there may be before the event must be in the log.
func lag(results int) int {
	if results < 128 {
		return 0
	}
	return min(results/64, 16)
}

// milestone returns the number of results that the model event due after the list is made
// from, or 0 if none is due. The event before was made from last results, 0 for none, and
// start is as for first.
func milestone(last int, list []Result, start int) int {
	c, n := 0, len(list)
	if last == 0 {
		if c = first(list, start); c == 0 {
			return 0
		}
	} else if c = last + step(last); c+lag(c) > n {
		return 0
	}
	for c+step(c)+lag(c+step(c)) <= n {
		c += step(c)
	}
	return c
}

// leastMeasured is how many measured results a model needs.
const leastMeasured = 2

// first returns the number of results from which the first model is made. It is at least
// start, with at least two measured ones. It is 0 if there are not that many.
func first(list []Result, start int) int {
	measured := 0
	for i, r := range list {
		if r.Y != nil {
			measured++
		}
		if i+1 >= start && measured >= leastMeasured {
			return i + 1
		}
	}
	return 0
}
