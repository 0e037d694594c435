// Package view has the answers of a service that follow from a study: its status, trials,
// columns, the best trials, predictions, importances, and what a watcher sees of an event.
// It has no I/O and no clock. A digest and a summary make lists quick, which then need
// neither the trials of a study nor its model.
package view

import (
	"maps"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Status returns a study without its digest.
func Status(name string, id store.StudyID, s *study.Study) tuner.Study {
	status, how := s.Status()
	v := tuner.Study{
		Name: name, ID: id, Spec: s.Spec(), Status: status, Finished: how, Created: s.Created(),
		Position: s.Position(), Counts: make(map[study.TrialState]int), Trials: s.Trials(), Added: s.Added(), Counted: s.Counted(), Cost: s.Cost(), Attributes: s.Attributes(),
	}
	for state := study.Queued; state <= study.Pruned; state++ {
		if n := s.Count(state); n > 0 {
			v.Counts[state] = n
		}
	}
	return v
}

// List returns a study for lists.
func List(name string, id store.StudyID, s *study.Study, d Digest) Listed {
	return Listed{Status(name, id, s), d}
}

// Listed is a study as a list shows it, with the digest at its position.
type Listed struct {
	Study  tuner.Study
	Digest Digest
}

// Show returns the study under its name at a time.
func (g Listed) Show(name string, now time.Time) tuner.Study {
	s := g.Study
	s.Name, s.Counts = name, maps.Clone(s.Counts)
	g.Digest.show(&s, now)
	return s
}

// Reports returns up to limit reports of a trial, starting at index first. more reports
// that there are others.
func Reports(trial study.Trial, first, limit int) (reports []study.Report, more bool) {
	if limit <= 0 || limit > tuner.MaxReportPage {
		limit = tuner.MaxReportPage
	}
	n := len(trial.Reports)
	first = min(max(first, 0), n)
	end := min(first+limit, n)
	return trial.Reports[first:end:end], end < n
}

// Trials returns the trials that match a filter.
func Trials(v *study.View, f tuner.Filter) (trials []study.Trial, more bool) {
	if f.Limit <= 0 || f.Limit > tuner.MaxPage {
		f.Limit = tuner.MaxPage
	}
	for trial := range v.All(f.First) {
		if !matches(f, trial) {
			continue
		}
		if len(trials) == f.Limit {
			return trials, true
		}
		if !f.Reports {
			trial = trial.WithoutReports()
		}
		trials = append(trials, trial)
	}
	return trials, false
}

func matches(f tuner.Filter, t study.Trial) bool {
	if f.Worker != "" && t.Worker != f.Worker {
		return false
	}
	return len(f.States) == 0 || slices.Contains(f.States, t.State)
}

// added returns the reports that an event added.
func added(e study.Event) []study.Report {
	switch b := e.Body.(type) {
	case study.Reported:
		return b.Reports
	case study.Added:
		return b.Reports
	default:
		return nil
	}
}

// Event describes a stored event.
func Event(id store.StudyID, r store.Record, v *study.View) tuner.Event {
	h := tuner.Event{Study: id, Position: r.Position, Time: r.Event.Time, Caller: r.Event.Caller}
	h.Status, _ = v.Status()
	h.Kind = Kind(r.Event.Body)
	if n, ok := r.Event.Trial(); ok {
		t, _ := v.Trial(n)
		t.Reports = added(r.Event)
		h.Trial = &t
	}
	return h
}

// Kind names an event.
func Kind(b study.Body) string {
	switch b.(type) {
	case study.Created:
		return "created"
	case study.Paused:
		return "paused"
	case study.Resumed:
		return "resumed"
	case study.Finished:
		return "finished"
	case study.Raised:
		return "raised"
	case study.Enqueued:
		return "enqueued"
	case study.Started:
		return "started"
	case study.Extended:
		return "extended"
	case study.Reported:
		return "reported"
	case study.Expired:
		return "expired"
	case study.Told:
		return "told"
	case study.ToldLate:
		return "told-late"
	case study.Added:
		return "added"
	case study.Attributed:
		return "attributed"
	case study.Anchored:
		return "anchored"
	}
	return ""
}

// Size returns about how many bytes an event takes in a store. It is exact
// enough to keep commits well below the store's limits.
func Size(e study.Event) int {
	const rest = 200
	switch b := e.Body.(type) {
	case study.Started:
		if b.Suggestion != nil {
			return rest + configSize(b.Suggestion.Config)
		}
	case study.Enqueued:
		return rest + configSize(b.Config) + attributesSize(b.Attributes)
	case study.Reported:
		return rest + reportsSize(b.Reports)
	case study.Told:
		return rest + outcomeSize(b.Outcome)
	case study.ToldLate:
		return rest + outcomeSize(b.Outcome)
	case study.Added:
		return rest + configSize(b.Config) + reportsSize(b.Reports) + outcomeSize(b.Outcome) + attributesSize(b.Attributes)
	case study.Attributed:
		return rest + attributesSize(b.Attributes)
	case study.Anchored:
		return rest + len(b.Model)
	}
	return rest
}

// SizeOfEvent returns about how many bytes an event takes on its way to a watcher.
func SizeOfEvent(h tuner.Event) int {
	const rest = 300
	if h.Trial == nil {
		return rest
	}
	t := h.Trial
	size := rest + configSize(t.Config) + reportsSize(t.Reports) + outcomeSize(t.Outcome) + attributesSize(t.Attributes)
	for _, l := range t.Late {
		size += outcomeSize(l.Outcome)
	}
	return size
}

func configSize(c space.Config) (size int) {
	for name, v := range c.All() {
		text, _ := v.AsString()
		size += len(name) + len(text) + 12
	}
	return size
}

func reportsSize(reports []study.Report) (size int) {
	for _, r := range reports {
		size += 20
		for _, v := range r.Values {
			size += len(v.Name) + 12
		}
	}
	return size
}

func outcomeSize(o study.Outcome) int {
	size := len(o.Message) + attributesSize(o.Attributes)
	for _, m := range o.Metrics {
		size += len(m.Name) + 8*len(m.Values) + 20
	}
	return size
}

func attributesSize(a study.Attributes) (size int) {
	for k, v := range a {
		size += len(k) + len(v) + 6
	}
	return size
}
