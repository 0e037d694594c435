package view

import (
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
