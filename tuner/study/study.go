package study

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Study is the state of one study, computed from its events. The zero Study has no
// events and accepts only [Create]. A Study is not safe for concurrent use, but the
// values that it returns do not change.
type Study struct {
	View
	queue    []int                // queued trials in the order to hand them out
	byWorker map[string][]int     // running trials of each named worker, ascending
	users    map[string][]string  // for each worker name, its callers, see Users
	holders  map[leaseKey]holding // of leases before the last one, and of those with several callers
	running  map[int]struct{}
	requests map[requestKey]requestRecord
	callers  map[string]uint32       // numbers from 1 of the callers of requests
	several  map[requestKey][]handed // trials of requests after the first
	aging    []requestAge            // requests whose ids may be forgotten, oldest first
}

// View is the readable state of a study at one position of its log. The view of a [Study] changes
// with it. The one that [Study.Snapshot] returns never changes and may be read concurrently.
type View struct {
	spec       Spec
	position   Position
	created    time.Time
	paused     bool
	finished   *Finished
	trials     table
	counts     [Pruned + 1]int      // trials by state
	origins    [OriginAdded + 1]int // trials by origin
	cancelled  int                  // failed(cancelled) trials, without added ones
	cost       float64              // sum of told costs, without added trials
	attributes Attributes
	anchors    []Anchored // the last two
	late       []lateAt   // in order of the log, append-only
}

type lateAt struct {
	trial, index int
	position     Position
}

// Snapshot returns the current state of the study. It costs O(trials/256).
func (s *Study) Snapshot() *View {
	v := s.View
	v.trials = s.trials.share()
	return &v
}

// Replay applies events to a new Study. They must begin with the study's first event.
func Replay(events iter.Seq[Event]) (*Study, error) {
	s := new(Study)
	for e := range events {
		if err := s.Apply(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Decide returns the effect of cmd on the study at the time now, and the reply. The
// study does not change until the caller applies the events, in order and before the
// next Decide. An error is one of the types of this package and comes without events.
func (s *Study) Decide(now time.Time, cmd Command) (Reply, []Event, error) {
	now = now.UTC().Round(0)
	var req Request
	if id := requestID(cmd); id != "" {
		if err := checkName("request_id", id); err != nil {
			return Reply{}, nil, err
		}
		req = Request{ID: id, Fingerprint: fingerprint(cmd)}
		if r, known := s.recall(req.ID); known {
			if r.fingerprint != req.Fingerprint {
				return Reply{}, nil, &RequestReusedError{ID: req.ID}
			}
			if !s.openRequest(now, cmd, req.ID, r) {
				reply := s.answered(req.ID, r)
				reply.Replayed = true
				return reply, nil, nil
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
	switch c := cmd.(type) {
	case Ask:
		req.Answer = len(reply.Trials) + reply.Missing
	case Start:
		req.Answer = c.Answer
	}
	var events []Event
	for _, b := range bodies {
		events = append(events, Event{Time: now, Request: req, Body: b})
	}
	return reply, events, nil
}

// openRequest tells whether more events of a request are to come. That is so for an ask
// whose suggestions are still being made or were interrupted by a crash. Once the study
// hands out no more trials, the answer ends with those made so far.
func (s *Study) openRequest(now time.Time, cmd Command, id string, r requestRecord) bool {
	switch cmd.(type) {
	case Ask, Start:
		return max(1, s.handedOut(keyOf(id), r)) < int(r.answer) && s.finished == nil && !s.TimeOver(now)
	default:
		return false
	}
}

// Position returns the number of events applied.
func (v *View) Position() Position { return v.position }

// Spec returns the settings of the study, with its present limits.
func (v *View) Spec() Spec { return v.spec }

// Created returns the time of the study's creation.
func (v *View) Created() time.Time { return v.created }

// Attributes returns the study's attributes, including those of the Spec. Do not change them.
func (v *View) Attributes() Attributes { return v.attributes }

// Cost returns the sum of the told costs, without those of added trials.
func (v *View) Cost() float64 { return v.cost }

// Status is the stage of a study's life.
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
	return named("Status", uint8(s), []string{StatusNone: "none", StatusActive: "active", StatusPaused: "paused", StatusFinished: "finished"})
}

// Status returns the status of the study. With [StatusFinished], how gives the reason.
func (v *View) Status() (status Status, how Finished) {
	switch {
	case v.position == 0:
		return StatusNone, Finished{}
	case v.finished != nil:
		return StatusFinished, *v.finished
	case v.paused:
		return StatusPaused, Finished{}
	default:
		return StatusActive, Finished{}
	}
}

// Trials returns the number of trials of all states and origins.
func (v *View) Trials() int { return v.trials.n }

// Count returns the number of trials in a state.
func (v *View) Count(state TrialState) int {
	if state > Pruned {
		return 0
	}
	return v.counts[state]
}

// Added returns the number of trials that were run elsewhere and added.
func (v *View) Added() int { return v.origins[OriginAdded] }

// Trial returns the current state of trial n. ok is false if there is none.
func (v *View) Trial(n int) (t Trial, ok bool) {
	if n < 0 || n >= v.trials.n {
		return Trial{}, false
	}
	return *v.trials.at(n), true
}

// All yields the trials from number first on, in order.
func (v *View) All(first int) iter.Seq[Trial] {
	return func(yield func(Trial) bool) {
		for n := max(first, 0); n < v.trials.n; n++ {
			if !yield(*v.trials.at(n)) {
				return
			}
		}
	}
}

// Changed yields the numbers of the trials of v that are new or different since an earlier
// snapshot, in order. Both must be snapshots. A nil or unrelated one yields all trials. It
// costs far less than comparing them.
func (v *View) Changed(since *View) iter.Seq[int] {
	if since == nil {
		return v.trials.changed(nil)
	}
	return v.trials.changed(&since.trials)
}

// LateResults returns the number of late results.
func (v *View) LateResults() int { return len(v.late) }

// Late yields the late results from number first on, in the order of the log.
func (v *View) Late(first int) iter.Seq[Late] {
	return func(yield func(Late) bool) {
		for _, l := range v.late[min(max(first, 0), len(v.late)):] {
			if !yield(Late{l.trial, l.position, v.trials.at(l.trial).Late[l.index]}) {
				return
			}
		}
	}
}

// Users returns the callers that were handed trials under a worker's name. The one that
// started a trial last is first. A caller is empty if unknown. A new name has none.
func (s *Study) Users(worker string) []string { return s.users[worker] }

// RunningOf returns the running trials of a named worker, in order. Do not change them.
func (s *Study) RunningOf(worker string) []int { return s.byWorker[worker] }

type leaseKey struct{ trial, epoch int }

// holding says to whom the trial of a lease was handed.
type holding struct {
	worker  string
	callers []string // the first one started it
}

// Holders returns the worker of a lease, the caller that started it and those that it was handed
// to later, in order. Epoch 0 is the last lease. A caller is empty if unknown.
func (s *Study) Holders(t *Trial, epoch int) (worker string, callers []string) {
	if epoch == 0 {
		epoch = t.Epoch
	}
	if h, ok := s.holders[leaseKey{t.Number, epoch}]; ok {
		return h.worker, h.callers
	}
	if epoch == t.Epoch {
		return t.Worker, []string{t.holder}
	}
	return "", nil
}

// startedBy notes the caller that started the last lease of a trial.
func (s *Study) startedBy(t *Trial, caller string) {
	if users := s.users[t.Worker]; t.Worker != "" && (len(users) == 0 || users[0] != caller) {
		rest := slices.DeleteFunc(slices.Clone(users), func(c string) bool { return c == caller })
		s.users[t.Worker] = append([]string{caller}, rest...)
	}
}

// handedTo notes that a running trial was handed to another caller, or extended by it.
// Earlier callers stay before it, so that it gets nothing from one that is in force.
func (s *Study) handedTo(t *Trial, caller string) {
	worker, callers := s.Holders(t, t.Epoch)
	if !slices.Contains(callers, caller) {
		s.holders[leaseKey{t.Number, t.Epoch}] = holding{worker, append(slices.Clip(callers), caller)}
	}
	if users := s.users[worker]; worker != "" && !slices.Contains(users, caller) {
		s.users[worker] = append(slices.Clip(users), caller)
	}
}

// Lease is the lease of a running trial.
type Lease struct {
	Trial    int
	Epoch    int
	Worker   string
	Deadline time.Time
}

// Leases returns the leases of all running trials, by trial number.
func (s *Study) Leases() []Lease {
	leases := make([]Lease, 0, len(s.running))
	for n := range s.running {
		t := s.trials.at(n)
		leases = append(leases, Lease{n, t.Epoch, t.Worker, t.Deadline})
	}
	slices.SortFunc(leases, func(a, b Lease) int { return cmp.Compare(a.Trial, b.Trial) })
	return leases
}

// Overdue returns the leases whose stored deadline is not after now, by trial number.
// It is for callers that use the wall clock.
func (s *Study) Overdue(now time.Time) []Lease {
	return slices.DeleteFunc(s.Leases(), func(l Lease) bool { return l.Deadline.After(now) })
}

// TimeOver tells whether the study's Timeout has passed at the time now. Asks are
// refused from then on. The first caller that sees it records it with a [Finish].
func (v *View) TimeOver(now time.Time) bool {
	return v.spec.Timeout > 0 && now.Sub(v.created) >= v.spec.Timeout
}

// Anchor returns the model event in effect for suggestions made at position p. ok is
// false if there is none.
func (v *View) Anchor(p Position) (a Anchored, ok bool) {
	for _, a := range slices.Backward(v.anchors) {
		if a.Effective <= p {
			return a, true
		}
	}
	return Anchored{}, false
}

// NextExpiry returns the earliest deadline among the running trials that have retries
// left. It is zero if there is none.
func (s *Study) NextExpiry() time.Time {
	var next time.Time
	for n := range s.running {
		t := s.trials.at(n)
		if t.Expiries < s.spec.MaxRetries && (next.IsZero() || t.Deadline.Before(next)) {
			next = t.Deadline
		}
	}
	return next
}

// Answered returns the number of trials in the answer to the ask with this request id.
// ok is false if there was none.
func (s *Study) Answered(requestID string) (n int, ok bool) {
	if requestID == "" {
		return 0, false
	}
	r, known := s.recall(requestID)
	return int(r.answer), known && r.answer > 0
}

// Counted returns the number of trials that count towards MaxTrials. Those that were added
// or cancelled do not.
func (v *View) Counted() int { return v.trials.n - v.origins[OriginAdded] - v.cancelled }

func (s *Study) trialBudget() int {
	room := MaxTrials - s.trials.n
	if s.spec.MaxTrials > 0 {
		room = min(room, s.spec.MaxTrials-s.Counted())
	}
	return max(room, 0)
}

func (s *Study) budgetError() error {
	e := &BudgetError{MaxTrials: MaxTrials}
	if s.spec.MaxTrials > 0 {
		e.MaxTrials = s.spec.MaxTrials
	}
	return e
}

// spaceText returns the space's canonical JSON, empty for none.
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
