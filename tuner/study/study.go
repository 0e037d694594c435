package study

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Study is the state of one study: the fold of its events. The zero Study has
// none and accepts only [Create]. A Study is not safe for concurrent use, but
// every value that it returns stays as it was returned.
type Study struct {
	spec     Spec
	position Position
	created  time.Time
	paused   bool
	finished *Finished

	trials   []*Trial         // by number
	queue    []int            // queued trials, first to be handed out first
	byWorker map[string][]int // running trials of each named worker, ascending
	running  map[int]struct{}
	counts   [Pruned + 1]int // trials by state
	added    int             // trials with OriginAdded
	cost     float64         // told costs, added trials excluded

	attributes Attributes
	anchors    []Anchored // the last two
	requests   map[string]requestRecord
	aging      []requestAge // requests that may be forgotten, oldest first
}

// Replay folds events, which must begin with the study's first, into a Study.
func Replay(events iter.Seq[Event]) (*Study, error) {
	s := new(Study)
	for e := range events {
		if err := s.Apply(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Decide says what cmd does to the study at the time now, and answers it. The
// study is unchanged until the caller applies the events, in order and before
// it decides again. An error means no events, and is one of the types of this
// package.
func (s *Study) Decide(now time.Time, cmd Command) (Reply, []Event, error) {
	now = now.UTC().Round(0)
	var req Request
	if c, ok := cmd.(identified); ok && c.requestID() != "" {
		if err := checkName("request_id", c.requestID()); err != nil {
			return Reply{}, nil, err
		}
		req = Request{ID: c.requestID(), Fingerprint: fingerprint(c)}
		if r, known := s.requests[req.ID]; known {
			if r.fingerprint != req.Fingerprint {
				return Reply{}, nil, &RequestReusedError{ID: req.ID}
			}
			if !s.openRequest(cmd, r) {
				return Reply{Trials: slices.Clone(r.trials), Late: r.late, Replayed: true}, nil, nil
			}
		}
	}
	if _, create := cmd.(Create); !create && s.position == 0 {
		return Reply{}, nil, ErrNotCreated
	}
	reply, bodies, err := cmd.decide(s, now)
	if err != nil {
		return Reply{}, nil, err
	}
	var events []Event
	for _, b := range bodies {
		events = append(events, Event{Time: now, Request: req, Body: b})
	}
	return reply, events, nil
}

// openRequest tells whether a request that had an effect already may have more:
// an ask whose suggestions are still being made, or were cut short by a crash.
func (s *Study) openRequest(cmd Command, r requestRecord) bool {
	switch c := cmd.(type) {
	case Ask:
		return len(r.trials) < c.Count && s.finished == nil && !s.paused
	case Start:
		return len(r.trials) < c.Ask.Count
	default:
		return false
	}
}

// Position is the number of events applied.
func (s *Study) Position() Position { return s.position }

// Spec is what the study was created with.
func (s *Study) Spec() Spec { return s.spec }

// Created is when the study was created.
func (s *Study) Created() time.Time { return s.created }

// Attributes are the study's, those of the Spec included. Do not change them.
func (s *Study) Attributes() Attributes { return s.attributes }

// Cost is the sum of the told costs, without those of added trials.
func (s *Study) Cost() float64 { return s.cost }

// Status is where a study stands in its life.
type Status uint8

// The statuses of a study.
const (
	StatusNone Status = iota // not created
	StatusActive
	StatusPaused
	StatusFinished
)

// String returns the status in lower case.
func (s Status) String() string {
	switch s {
	case StatusNone:
		return "none"
	case StatusActive:
		return "active"
	case StatusPaused:
		return "paused"
	case StatusFinished:
		return "finished"
	default:
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
}

// Status says where the study stands; with [StatusFinished], how says why.
func (s *Study) Status() (status Status, how Finished) {
	switch {
	case s.position == 0:
		return StatusNone, Finished{}
	case s.finished != nil:
		return StatusFinished, *s.finished
	case s.paused:
		return StatusPaused, Finished{}
	default:
		return StatusActive, Finished{}
	}
}

// Trials is the number of trials, of whatever state and origin.
func (s *Study) Trials() int { return len(s.trials) }

// Count is the number of trials in a state.
func (s *Study) Count(state TrialState) int {
	if state > Pruned {
		return 0
	}
	return s.counts[state]
}

// Trial returns trial n as it stands; ok is false if there is none.
func (s *Study) Trial(n int) (t Trial, ok bool) {
	if n < 0 || n >= len(s.trials) {
		return Trial{}, false
	}
	return *s.trials[n], true
}

// All yields the trials from number first on, in order.
func (s *Study) All(first int) iter.Seq[Trial] {
	return func(yield func(Trial) bool) {
		for n := max(first, 0); n < len(s.trials); n++ {
			if !yield(*s.trials[n]) {
				return
			}
		}
	}
}

// Lease is a running trial's.
type Lease struct {
	Trial    int
	Epoch    int
	Worker   string
	Deadline time.Time
}

// Leases returns those of all running trials, by trial number.
func (s *Study) Leases() []Lease {
	leases := make([]Lease, 0, len(s.running))
	for n := range s.running {
		t := s.trials[n]
		leases = append(leases, Lease{n, t.Epoch, t.Worker, t.Deadline})
	}
	slices.SortFunc(leases, func(a, b Lease) int { return cmp.Compare(a.Trial, b.Trial) })
	return leases
}

// Overdue returns the leases whose stored deadline is not after now, by trial
// number, for a caller that goes by the wall clock.
func (s *Study) Overdue(now time.Time) []Lease {
	return slices.DeleteFunc(s.Leases(), func(l Lease) bool { return l.Deadline.After(now) })
}

// TimeOver tells whether the study's Timeout has passed at the time now. Asks
// are refused from then on; a caller that sees it first records it with a
// [Finish].
func (s *Study) TimeOver(now time.Time) bool {
	return s.spec.Timeout > 0 && now.Sub(s.created) >= s.spec.Timeout
}

// Anchor returns the model event that is in effect for suggestions made at
// position p; ok is false if there is none.
func (s *Study) Anchor(p Position) (a Anchored, ok bool) {
	for _, a := range slices.Backward(s.anchors) {
		if a.Effective <= p {
			return a, true
		}
	}
	return Anchored{}, false
}

// trialBudget is how many more trials may be made; the error says why none may.
func (s *Study) trialBudget() int {
	room := MaxTrials - len(s.trials)
	if s.spec.MaxTrials > 0 {
		room = min(room, s.spec.MaxTrials-(len(s.trials)-s.added))
	}
	return max(room, 0)
}

func (s *Study) budgetError() error {
	e := &BudgetError{MaxTrials: MaxTrials, Running: len(s.running)}
	if s.spec.MaxTrials > 0 {
		e.MaxTrials = s.spec.MaxTrials
	}
	for n := range s.running {
		if d := s.trials[n].Deadline; e.NextExpiry.IsZero() || d.Before(e.NextExpiry) {
			e.NextExpiry = d
		}
	}
	return e
}

// spaceText is the space's canonical JSON; empty for none.
func spaceText(sp *space.Space) string {
	if sp == nil {
		return ""
	}
	text, err := sp.MarshalJSON()
	if err != nil {
		panic("study: a valid space does not marshal: " + err.Error())
	}
	return string(text)
}
