package study

import (
	"fmt"
	"maps"
	"slices"
)

// Apply folds the next event into the study. An event that no command could have caused
// means that the log is damaged. Apply refuses it and leaves the study unchanged. It
// does not repeat the checks of content that Decide made.
func (s *Study) Apply(e Event) error {
	if err := s.apply(e); err != nil {
		return fmt.Errorf("event %d (%T): %w", s.position+1, e.Body, err)
	}
	s.position++
	s.remember(e)
	return nil
}

func (s *Study) apply(e Event) error {
	if _, ok := e.Body.(Created); !ok && s.position == 0 {
		return ErrNotCreated
	}
	switch b := e.Body.(type) {
	case Created:
		return s.applyCreated(e, b)
	case Paused:
		return s.applyPause(true)
	case Resumed:
		return s.applyPause(false)
	case Finished:
		if s.finished != nil {
			return fmt.Errorf("the study has already finished")
		}
		s.finished = &b
		return nil
	case Raised:
		return s.applyRaised(e, b)
	case Enqueued:
		return s.applyEnqueued(e, b)
	case Started:
		return s.applyStarted(e, b)
	case Extended:
		return s.applyExtended(e, b)
	case Reported:
		return s.applyReported(e, b)
	case Expired:
		return s.applyExpired(e, b)
	case Told:
		return s.applyTold(e, b)
	case ToldLate:
		return s.applyToldLate(e, b)
	case Added:
		return s.applyAdded(e, b)
	case Attributed:
		return s.applyAttributed(b)
	case Anchored:
		s.anchors = append(slices.Clone(s.anchors[max(0, len(s.anchors)-1):]), b)
		return nil
	default:
		return fmt.Errorf("the kind of event is unknown")
	}
}

func (s *Study) applyCreated(e Event, b Created) error {
	if s.position != 0 {
		return ErrExists
	}
	if b.Spec.Space == nil {
		return fmt.Errorf("the study has no search space")
	}
	*s = Study{
		View:     View{spec: b.Spec, created: e.Time, attributes: b.Spec.Attributes},
		byWorker: make(map[string][]int),
		users:    make(map[string][]string),
		holders:  make(map[leaseKey]holding),
		running:  make(map[int]struct{}),
		requests: make(map[requestKey]requestRecord),
		callers:  make(map[string]uint32),
		several:  make(map[requestKey][]handed),
	}
	return nil
}

func (s *Study) applyPause(paused bool) error {
	if s.finished != nil || s.paused == paused {
		return fmt.Errorf("the study has finished or is already in this state")
	}
	s.paused = paused
	return nil
}

// applyRaised also ends the answers of asks that were cut short before, as their repetition
// has shown since the study handed out no more trials.
func (s *Study) applyRaised(e Event, b Raised) error {
	if b.MaxTrials < s.spec.MaxTrials || b.Timeout < s.spec.Timeout || !(b.MaxCost >= s.spec.MaxCost) {
		return fmt.Errorf("a limit of the study becomes lower")
	}
	for key, r := range s.requests {
		if n := max(1, s.handedOut(key, r)); int(r.answer) > n && (s.finished != nil || s.TimeOver(e.Time)) {
			r.answer = int32(n)
			s.requests[key] = r
		}
	}
	s.spec.MaxTrials, s.spec.Timeout, s.spec.MaxCost = b.MaxTrials, b.Timeout, b.MaxCost
	s.finished = nil
	return nil
}

func (s *Study) applyEnqueued(e Event, b Enqueued) error {
	if err := s.checkNext(b.Trial); err != nil {
		return err
	}
	s.put(Trial{
		Number: b.Trial, State: Queued, Config: b.Config, Origin: OriginEnqueued,
		Attributes: b.Attributes, Created: e.Time, lastStep: -1,
	})
	s.queue = append(s.queue, b.Trial)
	return nil
}

func (s *Study) applyStarted(e Event, b Started) error {
	var t Trial
	if b.Suggestion != nil {
		if err := s.checkNext(b.Trial); err != nil {
			return err
		}
		if b.Epoch != 1 {
			return fmt.Errorf("a new trial starts in epoch %d, must be 1", b.Epoch)
		}
		t = Trial{Number: b.Trial, Config: b.Suggestion.Config, Origin: OriginSuggested, Suggestion: *b.Suggestion, Created: e.Time}
	} else {
		var err error
		if t, err = s.find(b.Trial); err != nil {
			return err
		}
		if t.State != Queued || b.Epoch != t.Epoch+1 {
			return fmt.Errorf("trial %d is %s in epoch %d, cannot start epoch %d", b.Trial, t.State, t.Epoch, b.Epoch)
		}
		s.dequeue(b.Trial)
	}
	if t.Epoch > 0 {
		worker, callers := s.Holders(&t, t.Epoch)
		s.holders[leaseKey{b.Trial, t.Epoch}] = holding{worker, callers}
	}
	t.State, t.lastStep = Running, -1
	t.Epoch, t.Worker, t.Deadline, t.Started, t.Seen = b.Epoch, b.Worker, b.Deadline, e.Time, e.Time
	t.holder = e.Caller
	s.put(t)
	s.running[b.Trial] = struct{}{}
	if b.Worker != "" {
		held := s.byWorker[b.Worker]
		i, _ := slices.BinarySearch(held, b.Trial)
		s.byWorker[b.Worker] = slices.Insert(held, i, b.Trial)
	}
	s.startedBy(&t, e.Caller)
	return nil
}

func (s *Study) applyExtended(e Event, b Extended) error {
	t, err := s.findRunning(b.Trial, b.Epoch)
	if err != nil {
		return err
	}
	t.Deadline, t.Seen = b.Deadline, e.Time
	s.put(t)
	s.handedTo(&t, e.Caller)
	return nil
}

func (s *Study) applyReported(e Event, b Reported) error {
	t, err := s.findRunning(b.Trial, b.Epoch)
	if err != nil {
		return err
	}
	for _, r := range b.Reports {
		if r.Epoch != b.Epoch {
			return fmt.Errorf("a report names epoch %d, but its event names epoch %d", r.Epoch, b.Epoch)
		}
	}
	for _, r := range b.Reports {
		t.lastStep = max(t.lastStep, r.Step)
	}
	t.Reports, t.Seen = append(t.Reports, b.Reports...), e.Time
	s.put(t)
	return nil
}

func (s *Study) applyExpired(e Event, b Expired) error {
	t, err := s.findRunning(b.Trial, b.Epoch)
	if err != nil {
		return err
	}
	s.release(t)
	t.Expiries++
	if b.Requeued {
		t.State = Queued
		s.queue = append(s.queue, b.Trial)
	} else {
		t.State, t.Outcome, t.Ended = Failed, Outcome{State: Failed, Reason: FailedExpired}, e.Time
		t.ended = s.position + 1
	}
	s.put(t)
	return nil
}

func (s *Study) applyTold(e Event, b Told) error {
	t, err := s.find(b.Trial)
	if err != nil {
		return err
	}
	if t.State.Terminal() && !t.provisional() || b.Epoch != t.Epoch {
		return fmt.Errorf("trial %d is %s in epoch %d, cannot be told for epoch %d", b.Trial, t.State, t.Epoch, b.Epoch)
	}
	if !b.Outcome.State.Terminal() {
		return fmt.Errorf("an outcome cannot be %s", b.Outcome.State)
	}
	switch t.State {
	case Running:
		s.release(t)
	case Queued:
		s.dequeue(b.Trial)
	}
	t.State, t.Outcome, t.ToldEpoch, t.Ended = b.Outcome.State, b.Outcome, b.Epoch, e.Time
	t.ended = s.position + 1
	t.Attributes = merge(t.Attributes, b.Outcome.Attributes)
	s.put(t)
	s.cost += b.Outcome.Cost
	if b.Outcome.frees() {
		s.cancelled++ // for good, because this outcome is final
	}
	return nil
}

func (s *Study) applyToldLate(e Event, b ToldLate) error {
	t, err := s.find(b.Trial)
	if err != nil {
		return err
	}
	if b.Epoch < 1 || b.Epoch >= t.Epoch {
		return fmt.Errorf("epoch %d of trial %d was not taken over", b.Epoch, b.Trial)
	}
	s.late = append(s.late, lateAt{b.Trial, len(t.Late), s.position + 1})
	t.Late = append(t.Late, LateResult{b.Epoch, e.Time, b.Outcome})
	s.put(t)
	s.cost += b.Outcome.Cost
	return nil
}

func (s *Study) applyAdded(e Event, b Added) error {
	if err := s.checkNext(b.Trial); err != nil {
		return err
	}
	if !b.Outcome.State.Terminal() {
		return fmt.Errorf("an outcome cannot be %s", b.Outcome.State)
	}
	s.put(Trial{
		Number: b.Trial, State: b.Outcome.State, Config: b.Config, Origin: OriginAdded,
		Reports: b.Reports, Outcome: b.Outcome, Attributes: b.Attributes, Created: e.Time, Ended: e.Time, lastStep: -1, ended: s.position + 1,
	})
	return nil
}

func (s *Study) applyAttributed(b Attributed) error {
	if b.Trial == OfStudy {
		s.attributes = merge(s.attributes, b.Attributes)
		return nil
	}
	t, err := s.find(b.Trial)
	if err != nil {
		return err
	}
	t.Attributes = merge(t.Attributes, b.Attributes)
	s.put(t)
	return nil
}

func (s *Study) checkNext(n int) error {
	if n != s.trials.n {
		return fmt.Errorf("the next trial is %d, not %d", s.trials.n, n)
	}
	return nil
}

// find returns a copy of trial n, for changing it and passing it to put.
func (s *Study) find(n int) (Trial, error) {
	t, err := s.existing(n)
	if err != nil {
		return Trial{}, err
	}
	return *t, nil
}

func (s *Study) findRunning(n, epoch int) (Trial, error) {
	t, err := s.find(n)
	if err != nil {
		return Trial{}, err
	}
	if t.State != Running || t.Epoch != epoch {
		return Trial{}, fmt.Errorf("trial %d is %s in epoch %d, not running in epoch %d", n, t.State, t.Epoch, epoch)
	}
	return t, nil
}

func (s *Study) put(t Trial) {
	if t.Number < s.trials.n {
		s.counts[s.trials.at(t.Number).State]--
	} else {
		s.origins[t.Origin]++
	}
	s.counts[t.State]++
	s.trials.set(t.Number, t)
}

func (s *Study) release(t Trial) {
	delete(s.running, t.Number)
	if t.Worker == "" {
		return
	}
	held := s.byWorker[t.Worker]
	held = slices.DeleteFunc(held, func(n int) bool { return n == t.Number })
	if len(held) == 0 {
		delete(s.byWorker, t.Worker)
		return
	}
	s.byWorker[t.Worker] = held
}

func (s *Study) dequeue(n int) {
	if len(s.queue) > 0 && s.queue[0] == n { // the common case, without a copy
		s.queue = s.queue[1:]
		return
	}
	s.queue = slices.DeleteFunc(s.queue, func(q int) bool { return q == n })
}

// Check recomputes the state that the study keeps incrementally. It returns the first
// difference, or nil. It costs O(trials · log trials).
func (s *Study) Check() error {
	var counts [Pruned + 1]int
	var origins [OriginAdded + 1]int
	var running, queued []int
	late, cancelled, byWorker := make(map[int]int), 0, make(map[string][]int)
	for n := range s.trials.n {
		t := s.trials.at(n)
		if t.Number != n {
			return fmt.Errorf("trial %d has the place of trial %d", t.Number, n)
		}
		if t.State.Terminal() != t.Outcome.State.Terminal() || t.State.Terminal() && t.State != t.Outcome.State {
			return fmt.Errorf("trial %d is %s, but its outcome is %s", n, t.State, t.Outcome.State)
		}
		counts[t.State]++
		origins[t.Origin]++
		if len(t.Late) > 0 {
			late[n] = len(t.Late)
		}
		if t.Outcome.frees() && t.Origin != OriginAdded {
			cancelled++
		}
		switch {
		case t.State == Queued:
			queued = append(queued, n)
		case t.State == Running && t.Worker != "":
			byWorker[t.Worker] = append(byWorker[t.Worker], n)
			fallthrough
		case t.State == Running:
			running = append(running, n)
		}
	}
	lateKept, last := make(map[int]int), Position(0)
	for i, l := range s.late {
		if l.index != lateKept[l.trial] || l.position <= last || l.position > s.position {
			return fmt.Errorf("late result %d, of trial %d at event %d, is out of order", i, l.trial, l.position)
		}
		lateKept[l.trial]++
		last = l.position
	}
	for _, c := range []struct {
		what          string
		kept, counted any
	}{
		{"trials by state", s.counts, counts},
		{"trials by origin", s.origins, origins},
		{"cancelled trials", s.cancelled, cancelled},
		{"running trials", slices.Sorted(maps.Keys(s.running)), running},
		{"queued trials", slices.Sorted(slices.Values(s.queue)), queued},
		{"trials by worker", s.byWorker, byWorker},
		{"late results by trial", lateKept, late},
	} {
		if kept, counted := fmt.Sprint(c.kept), fmt.Sprint(c.counted); kept != counted {
			return fmt.Errorf("the %s are kept as %.200s, but counted as %.200s", c.what, kept, counted)
		}
	}
	return nil
}
