package engine

import (
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// view returns a study without its digest.
func view(name string, id store.StudyID, s *study.Study) tuner.Study {
	status, how := s.Status()
	v := tuner.Study{
		Name: name, ID: id, Spec: s.Spec(), Status: status, Finished: how, Created: s.Created(),
		Position: s.Position(), Counts: make(map[study.TrialState]int), Trials: s.Trials(), Added: s.Added(), Cost: s.Cost(), Attributes: s.Attributes(),
	}
	for state := study.Queued; state <= study.Pruned; state++ {
		if n := s.Count(state); n > 0 {
			v.Counts[state] = n
		}
	}
	return v
}
