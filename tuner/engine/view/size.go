package view

import (
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
