package study

import (
	"cmp"
	"fmt"
	"maps"
	"time"
)

func (c Create) decide(s *Study, _ time.Time) (Reply, []Body, error) {
	if s.position != 0 {
		return Reply{}, nil, ErrExists
	}
	spec, err := c.Spec.normalize()
	if err != nil {
		return Reply{}, nil, err
	}
	return Reply{}, []Body{Created{Spec: spec}}, nil
}

func (c Pause) decide(s *Study, _ time.Time) (Reply, []Body, error) { return s.pause(true, Paused{}) }

func (c Resume) decide(s *Study, _ time.Time) (Reply, []Body, error) {
	return s.pause(false, Resumed{})
}

func (s *Study) pause(paused bool, by Body) (Reply, []Body, error) {
	switch {
	case s.finished != nil:
		return Reply{}, nil, s.finishedError()
	case s.paused == paused:
		return Reply{}, nil, nil
	}
	return Reply{}, []Body{by}, nil
}

func (c Finish) decide(s *Study, now time.Time) (Reply, []Body, error) {
	switch c.Reason {
	case FinishedUser, FinishedGap, FinishedExhausted, FinishedTarget, FinishedPatience:
	case FinishedTime:
		if !s.TimeOver(now) {
			return Reply{}, nil, invalid("reason", c.Reason, "the timeout of the study has not passed", "use the reason user to end it early")
		}
	default:
		return Reply{}, nil, invalid("reason", c.Reason, "must be user, gap, exhausted, target, patience or time", "")
	}
	if err := checkText("detail", c.Detail, MaxTextBytes); err != nil {
		return Reply{}, nil, err
	}
	if s.finished != nil {
		if s.finished.Reason == c.Reason {
			return Reply{}, nil, nil
		}
		return Reply{}, nil, s.finishedError()
	}
	return Reply{}, []Body{Finished{c.Reason, c.Detail}}, nil
}

func (c Extend) decide(s *Study, now time.Time) (Reply, []Body, error) {
	to, how := s.spec, s.finished
	if how != nil && (how.Reason == FinishedGap || how.Reason == FinishedExhausted) {
		return Reply{}, nil, s.finishedError()
	}
	var errs [3]error
	to.MaxTrials, errs[0] = raise("max_trials", c.MaxTrials, to.MaxTrials, 0, c.More)
	to.Timeout, errs[1] = raise("timeout", c.Timeout, to.Timeout, now.Sub(s.created), c.More)
	to.MaxCost, errs[2] = raise("max_cost", c.MaxCost, to.MaxCost, s.cost, c.More)
	if err := cmp.Or(errs[0], errs[1], errs[2], to.checkLimits()); err != nil {
		return Reply{}, nil, err
	}
	const more = "raise this limit too"
	switch n := s.Counted(); {
	case how != nil && to.MaxTrials > 0 && n >= to.MaxTrials && len(s.queue) == 0:
		return Reply{}, nil, invalid("max_trials", to.MaxTrials, fmt.Sprintf("the study has made %d trials", n), more)
	case to.Timeout > 0 && now.Sub(s.created) >= to.Timeout:
		return Reply{}, nil, invalid("timeout", to.Timeout, "so much time has passed since the creation of the study", more)
	case to.MaxCost > 0 && s.cost >= to.MaxCost:
		return Reply{}, nil, invalid("max_cost", to.MaxCost, fmt.Sprintf("the trials have cost %g", s.cost), more)
	}
	if how == nil && to.MaxTrials == s.spec.MaxTrials && to.Timeout == s.spec.Timeout && to.MaxCost == s.spec.MaxCost {
		return Reply{}, nil, nil
	}
	return Reply{}, []Body{Raised{to.MaxTrials, to.Timeout, to.MaxCost}}, nil
}

// raise returns a limit of a study after an [Extend]. used is what counts towards the limit.
func raise[T int | time.Duration | float64](field string, given, limit, used T, more bool) (T, error) {
	switch {
	case given == 0:
		return limit, nil
	case !(given > 0):
		return limit, invalid(field, given, "must not be negative", "leave it out to keep the limit")
	case limit == 0:
		return limit, invalid(field, given, "the study has no such limit", "leave it out")
	case more:
		return max(limit, used) + given, nil
	case given < limit:
		return limit, invalid(field, given, fmt.Sprintf("must be at least %v, the limit that the study has", limit), "limits can only be raised")
	}
	return given, nil
}

func (c Enqueue) decide(s *Study, now time.Time) (Reply, []Body, error) {
	if err := cmp.Or(s.open(now), s.spec.Space.Validate(c.Config), checkAttributes("attributes", nil, c.Attributes), s.room()); err != nil {
		return Reply{}, nil, err
	}
	n := s.trials.n
	return about(n, 0), []Body{Enqueued{n, c.Config, merge(nil, c.Attributes)}}, nil
}

func (c Add) decide(s *Study, now time.Time) (Reply, []Body, error) {
	if err := cmp.Or(s.open(now), s.spec.Space.Validate(c.Config)); err != nil {
		return Reply{}, nil, err
	}
	outcome, err := s.spec.normalizeOutcome(c.Outcome)
	if err != nil {
		return Reply{}, nil, err
	}
	attributes := merge(c.Attributes, outcome.Attributes)
	if err := checkAttributes("attributes", nil, attributes); err != nil {
		return Reply{}, nil, err
	}
	if len(c.Reports) > MaxReports {
		return Reply{}, nil, invalid("reports", len(c.Reports), "a trial can have at most 100000 reports", "")
	}
	n := s.trials.n
	reports, err := s.newReports(&Trial{Number: n}, c.Reports)
	if err == nil && n >= MaxTrials {
		err = s.budgetError()
	}
	return about(n, 0), []Body{Added{n, c.Config, reports, outcome, merge(nil, attributes)}}, err
}

func (c Ask) decide(s *Study, now time.Time) (Reply, []Body, error) {
	deadline, err := c.check(s, now)
	if err != nil {
		return Reply{}, nil, err
	}
	earlier, retried := s.recall(c.RequestID)
	if retried { // this repeats an ask that was interrupted, and only suggestions can be missing
		reply := s.answered(c.RequestID, earlier)
		reply.Missing = min(int(earlier.answer)-len(reply.Trials), s.trialBudget())
		return reply, nil, nil
	}
	reply, bodies := c.handOut(s, deadline)
	reply.Missing = min(c.Count-len(reply.Trials), s.trialBudget())
	if len(reply.Trials) == 0 && reply.Missing == 0 {
		return Reply{}, nil, s.noneLeft()
	}
	return reply, bodies, nil
}

// handOut returns the trials that the worker already holds and queued ones.
func (c Ask) handOut(s *Study, deadline time.Time) (reply Reply, bodies []Body) {
	if c.Worker != "" && !c.New {
		for _, n := range s.byWorker[c.Worker] {
			if len(reply.Trials) == c.Count {
				break
			}
			t := s.trials.at(n)
			reply.hand(n, t.Epoch)
			bodies = append(bodies, Extended{n, t.Epoch, later(t.Deadline, deadline)})
		}
	}
	for _, n := range s.queue {
		if len(reply.Trials) == c.Count {
			break
		}
		epoch := s.trials.at(n).Epoch + 1
		reply.hand(n, epoch)
		bodies = append(bodies, Started{n, epoch, c.Worker, deadline, nil})
	}
	return reply, bodies
}

// noneLeft returns the error of an ask that gets no trial from an active study.
func (s *Study) noneLeft() error {
	return &NoneLeftError{Trials: s.trials.n - s.origins[OriginAdded], Running: len(s.running), NextExpiry: s.NextExpiry()}
}

// check validates the ask and returns the deadline of its leases.
func (c Ask) check(s *Study, now time.Time) (time.Time, error) {
	if err := s.open(now); err != nil {
		return time.Time{}, err
	}
	if s.paused {
		return time.Time{}, ErrPaused
	}
	if c.Count < 1 || c.Count > MaxCount {
		return time.Time{}, invalid("count", c.Count, "must be 1 to 1000", "")
	}
	if c.Worker != "" {
		if err := checkName("worker", c.Worker); err != nil {
			return time.Time{}, err
		}
	}
	return s.deadline(now, c.Lease)
}

func (c Start) decide(s *Study, now time.Time) (Reply, []Body, error) {
	deadline, err := c.Ask.check(s, now)
	if err != nil {
		return Reply{}, nil, err
	}
	if c.Trial != s.trials.n {
		return Reply{}, nil, invalid("trial", c.Trial, "must be the study's next number", "")
	}
	if err := cmp.Or(s.room(), s.checkSuggestion(c.Suggestion), s.checkAnswer(c)); err != nil {
		return Reply{}, nil, err
	}
	suggestion := c.Suggestion
	return about(c.Trial, 1), []Body{Started{c.Trial, 1, c.Ask.Worker, deadline, &suggestion}}, nil
}

// checkAnswer checks the number of trials in the answer to which a Start belongs.
func (s *Study) checkAnswer(c Start) error {
	if c.Ask.RequestID == "" {
		return nil
	}
	least := 1
	if earlier, _ := s.recall(c.Ask.RequestID); earlier.any {
		least = 1 + s.handedOut(keyOf(c.Ask.RequestID), earlier)
	}
	if c.Answer < least || c.Answer > c.Ask.Count {
		return invalid("answer", c.Answer, fmt.Sprintf("must be from %d (this trial and those before it) to %d (the number asked for)", least, c.Ask.Count), "")
	}
	return nil
}

func (c Heartbeat) decide(s *Study, now time.Time) (Reply, []Body, error) {
	t, err := s.held(c.Trial, c.Epoch)
	if err != nil {
		return Reply{}, nil, err
	}
	deadline, err := s.deadline(now, c.Lease)
	if err != nil {
		return Reply{}, nil, err
	}
	return about(c.Trial, t.Epoch), []Body{Extended{c.Trial, t.Epoch, later(t.Deadline, deadline)}}, nil
}

func (c ReportValues) decide(s *Study, _ time.Time) (Reply, []Body, error) {
	t, err := s.held(c.Trial, c.Epoch)
	if err != nil {
		return Reply{}, nil, err
	}
	if len(c.Reports) < 1 || len(c.Reports) > MaxReportBatch {
		return Reply{}, nil, invalid("reports", len(c.Reports), "must be 1 to 1000 reports", "split the batch")
	}
	reports, err := s.newReports(t, c.Reports)
	if err != nil {
		return Reply{}, nil, err
	}
	reply := about(c.Trial, t.Epoch)
	if len(reports) == 0 {
		return reply, nil, nil
	}
	if len(t.Reports)+len(reports) > MaxReports {
		return Reply{}, nil, invalid("reports", len(t.Reports)+len(reports), "a trial can have at most 100000 reports", "report less often")
	}
	return reply, []Body{Reported{c.Trial, t.Epoch, reports}}, nil
}

func (c Expire) decide(s *Study, now time.Time) (Reply, []Body, error) {
	t, err := s.existing(c.Trial)
	if err != nil {
		return Reply{}, nil, err
	}
	reply := about(c.Trial, t.Epoch)
	if t.State != Running || t.Epoch != c.Epoch {
		return reply, nil, nil
	}
	// Once the study hands out no more trials, no worker would take a queued one.
	requeued := t.Expiries < s.spec.MaxRetries && s.finished == nil && !s.TimeOver(now)
	bodies := []Body{Expired{c.Trial, c.Epoch, requeued}}
	if !requeued {
		bodies = s.thenFinish(bodies, now, t, Outcome{})
	}
	return reply, bodies, nil
}

func (c SetAttributes) decide(s *Study, _ time.Time) (Reply, []Body, error) {
	have := s.attributes
	if c.Trial != OfStudy {
		t, err := s.existing(c.Trial)
		if err != nil {
			return Reply{}, nil, err
		}
		have = t.Attributes
	}
	if err := checkAttributes("attributes", have, c.Attributes); err != nil {
		return Reply{}, nil, err
	}
	return Reply{}, []Body{Attributed{c.Trial, maps.Clone(c.Attributes)}}, nil
}

func (c Anchor) decide(s *Study, _ time.Time) (Reply, []Body, error) {
	own := s.position + 1
	switch {
	case len(c.Model) > MaxModelBytes:
		return Reply{}, nil, invalid("model", len(c.Model), "must be at most 16 MiB", "")
	case c.Seen > s.position:
		return Reply{}, nil, invalid("seen", c.Seen, "must not be beyond the log", "")
	case c.Effective < own:
		return Reply{}, nil, invalid("effective", c.Effective, "must not be before the model event itself", "")
	case len(s.anchors) > 0 && c.Effective < s.anchors[len(s.anchors)-1].Effective:
		return Reply{}, nil, invalid("effective", c.Effective, "must not be before that of the previous model", "")
	}
	return Reply{}, []Body{Anchored(c)}, nil
}

// open returns an error if the study accepts no more trials.
func (s *Study) open(now time.Time) error {
	if s.finished != nil {
		return s.finishedError()
	}
	if s.TimeOver(now) {
		return &FinishedError{Reason: FinishedTime}
	}
	return nil
}

func (s *Study) finishedError() error {
	return &FinishedError{s.finished.Reason, s.finished.Detail}
}

func (s *Study) room() error {
	if s.trialBudget() == 0 {
		return s.budgetError()
	}
	return nil
}

// existing returns trial n, which is not to be changed.
func (s *Study) existing(n int) (*Trial, error) {
	if n < 0 || n >= s.trials.n {
		return nil, &TrialNotFoundError{n, s.trials.n}
	}
	return s.trials.at(n), nil
}

// held returns trial n if it runs under the lease of the given epoch. Epoch 0 means any.
func (s *Study) held(n, epoch int) (*Trial, error) {
	t, err := s.existing(n)
	if err != nil {
		return nil, err
	}
	if err := checkEpoch(t, epoch); err != nil {
		return nil, err
	}
	if epoch != 0 && epoch != t.Epoch {
		return nil, &LeaseError{n, epoch, t.Epoch, t.Worker}
	}
	if t.State == Queued && t.Epoch > 0 {
		return nil, &TrialStateError{n, t.State, "its lease expired", "tell its outcome if you have it, or ask for a trial"}
	}
	if t.State != Running {
		return nil, &TrialStateError{n, t.State, "it is not running", "stop working on it, or ask for a trial"}
	}
	return t, nil
}

func checkEpoch(t *Trial, epoch int) error {
	if epoch < 0 || epoch > t.Epoch {
		return invalid("epoch", epoch, fmt.Sprintf("trial %d has been started %d times", t.Number, t.Epoch), "use the epoch that ask gave, or 0 for the current one")
	}
	return nil
}

// deadline returns the deadline of a lease that starts now. A lease of 0 means that of the study.
func (s *Study) deadline(now time.Time, lease time.Duration) (time.Time, error) {
	if lease == 0 {
		lease = s.spec.Lease
	}
	if lease < MinLease || lease > MaxLease {
		return time.Time{}, invalid("lease", lease, "must be 1s to 8784h", "")
	}
	return now.Add(lease), nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// thenFinish appends a Finished event if the given events reach a limit of the study.
// They end trial t with an outcome, or none if t is nil.
func (s *Study) thenFinish(bodies []Body, now time.Time, t *Trial, o Outcome) []Body {
	if s.finished != nil {
		return bodies
	}
	others := len(s.running) + len(s.queue)
	if t != nil && !t.State.Terminal() {
		others--
	}
	counted := s.Counted()
	if t != nil && o.frees() {
		counted--
	}
	switch {
	case s.spec.MaxCost > 0 && s.cost+o.Cost >= s.spec.MaxCost:
		return append(bodies, Finished{Reason: FinishedCost})
	case s.TimeOver(now):
		return append(bodies, Finished{Reason: FinishedTime})
	case s.spec.MaxTrials > 0 && counted >= s.spec.MaxTrials && others == 0:
		return append(bodies, Finished{Reason: FinishedTrials})
	default:
		return bodies
	}
}
