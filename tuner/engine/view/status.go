// Package view has the answers of a service that follow from a study: its status, trials,
// columns, the best trials, predictions, importances, and what a watcher sees of an event.
// It has no I/O and no clock. A digest and a summary make lists quick, which then need
// neither the trials of a study nor its model.
package view

import (
	"maps"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
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
