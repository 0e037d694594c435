package prune

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// streak counts the trials that were stopped since the last one completed. After most of them the
// oldest running trial runs to its end. A model of outcomes thus learns how good the place is at
// which it suggests trials, and the rule gets a new completed trial to compare with.
type streak struct {
	most      int // 0 for no limit
	completed study.Position
	stopped   []study.Position // after completed
	running   map[int]struct{}
}

// usualStreak is the default of the option max_streak.
const usualStreak = 4

func readStreak(o *study.Options) streak {
	return streak{most: int(o.Whole("max_streak", usualStreak, 0, study.MaxTrials)), running: make(map[int]struct{})}
}

func (s *streak) begin(trial int) { s.running[trial] = struct{}{} }

func (s *streak) withdraw(trial int) { delete(s.running, trial) }

func (s *streak) finish(t *study.Trial) {
	delete(s.running, t.Number)
	end := t.EndPosition()
	if t.State == study.Pruned && end > s.completed {
		s.stopped = append(s.stopped, end)
	}
	if t.State == study.Completed && end > s.completed {
		s.completed = end
		s.stopped = slices.DeleteFunc(s.stopped, func(p study.Position) bool { return p < end })
	}
}

// spares reports whether a running trial runs to its end whatever the rule says.
func (s *streak) spares(trial int) bool {
	if s.most == 0 || len(s.stopped) < s.most {
		return false
	}
	oldest := slices.Min(slices.Collect(maps.Keys(s.running)))
	return trial == oldest
}

// mercy is the verdict on a trial that the rule would stop.
func (s *streak) mercy() Verdict {
	return Verdict{Reason: fmt.Sprintf("it runs to its end, because the last %d trials that ended were stopped", len(s.stopped))}
}
