package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// modelVersion is the version of the encoding of model events. Version 2 has Knee of target
// and Spread of fidelity. A program that knows only version 1 would ignore them and suggest
// differently, while this program reads an event of version 1 as one without them. From
// version 3 on, late results are results, both of the model and of suggestions while the
// event is in effect. With versions 1 and 2 they are not, as when those events were made.
// From version 4 on, observations of one input are one point, whose residual counts once.
// Samplers of package sketch, which the event names, draw the inducing points. From version
// 5 on, suggestions repeat the best trial to learn whether there is noise, and keep a
// distance from pending trials. There may be a far model and outliers. Metrics with a limit
// have surfaces of their own, and the surface of feasibility is about failures only. From
// version 6 on, a slope of bad values has no outliers, pruned trials are no repetitions, and
// standard errors of a metric with a limit are those of its target. Failures count as far as
// parameters explain them, and the first one and several in a row make a model event due.
// Spaces with few coordinates have a far model, far suggestions improve on the best of their
// branch, standard deviations shown may be narrower than the model's, suggestions that
// exploit may be closer to pending trials, and an evolution strategy makes some. No suggestion
// of a model is the same as a trial up to rounding. From version 7 on, suggestions that exploit may
// come from a quadratic. From version 8 on, a quadratic may also be used where parameters explain
// failures, and where these or limits are modelled, the other suggestions of every second trial may
// be closer to pending trials, too. So the log explains every suggestion.
const (
	modelVersion   = 8
	gatherVersion  = 8
	besideVersion  = 8
	bendVersion    = 7
	slopeVersion   = 6
	metricVersion  = 6
	prunedVersion  = 6
	blameVersion   = 6
	branchVersion  = 6
	narrowVersion  = 6
	farTooVersion  = 6
	closeVersion   = 6
	evolveVersion  = 6
	sameVersion    = 6
	limitedVersion = 5
	repeatVersion  = 5
	farVersion     = 5
	outlierVersion = 5
	spacedVersion  = 5
	mergedVersion  = 4
	lateVersion    = 3
	firstVersion   = 1
)

// Event is the content of a model event. It is all that does not follow from the study's
// results alone.
type Event struct {
	Version int `json:"version"`
	Results int `json:"results"` // number of results that the model was made from
	Fitted  int `json:"fitted"`  // number of results that its hyper-parameters were fitted to
	// Active is the mean number of active coordinates.
	Active float64 `json:"active"`
	// Surfaces are one for each objective, then that of feasibility if there have been
	// infeasible trials.
	Surfaces []Surface `json:"surfaces"`
	// Explained is the gain of the model of success over a constant rate, where it is among
	// the surfaces (see [Engine.Blames]). It is nil up to version 5.
	Explained *float64 `json:"explained,omitempty"`
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

// deaf reports whether there is a model and late results do not count while it is in
// effect.
func (e *Event) deaf() bool { return e.Version > 0 && e.Version < lateVersion }

// failuresInRow is how many failures in a row make a model event due. The hyper-parameters of
// the event before may not explain them, and each one costs a trial. If that event was made
// after as many, the next one needs at least a share of the results, as regular ones do in long
// studies.
const failuresInRow = 4

// blind reports whether there are failures among later results and no model of success, or
// many failures in a row.
func (e *Event) blind(list []Result, objectives int) bool {
	if e.Version < blameVersion || len(list) <= e.Results {
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

// limited reports whether metrics with a limit are modelled while the event is in effect.
func (e *Event) limited() bool { return len(e.Limited) > 0 }

// apart reports whether observations of equal inputs are separate points while the event is
// in effect.
func (e *Event) apart() bool { return e.Version < mergedVersion }

// Repeats reports whether suggestions may repeat the best trial while the event is in
// effect.
func (e *Event) Repeats() bool { return e.Version >= repeatVersion }

// Spaces reports whether suggestions keep a distance from pending trials while the event is
// in effect.
func (e *Event) Spaces() bool { return e.Version >= spacedVersion }

// Closes reports whether that distance is less for suggestions that exploit where the best
// results are close to each other, while the event is in effect.
func (e *Event) Closes() bool { return e.Version >= closeVersion }

// Evolves reports whether an evolution strategy may make suggestions while the event is in effect.
func (e *Event) Evolves() bool { return e.Version >= evolveVersion }

// Bends reports whether suggestions that exploit may come from a quadratic while the event is in
// effect.
func (e *Event) Bends() bool { return e.Version >= bendVersion }

// BendsBeside reports whether that is also so where parameters explain failures, while the event is
// in effect.
func (e *Event) BendsBeside() bool { return e.Version >= besideVersion }

// Gathers reports whether the distance from pending trials is also less for the other suggestions of
// every second trial, where failures or limits are modelled, while the event is in effect.
func (e *Event) Gathers() bool { return e.Version >= gatherVersion }

// Differs reports whether all suggestions skip configurations that are the same as a trial up to
// rounding while the event is in effect. Before, only those that exploit without noise did.
func (e *Event) Differs() bool { return e.Version >= sameVersion }

// Branches reports whether far suggestions improve on the best of their branch while the event
// is in effect.
func (e *Event) Branches() bool { return e.Version >= branchVersion }

// Narrows reports whether the standard deviations that suggestions show are at most those of
// an outcome while the event is in effect, if intervals have been too wide.
func (e *Event) Narrows() bool { return e.Version >= narrowVersion }

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

// inEffect returns the content of the model event that is in effect at the end of v. If
// there is none, ok is false.
func inEffect(v View) (e Event, ok bool, err error) {
	a, ok := v.Anchor(v.Position())
	if !ok {
		return Event{}, false, nil
	}
	e, err = Decode(a.Model)
	return e, true, err
}
