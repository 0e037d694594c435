package study

import (
	"math"
	"time"
)

func (c Tell) decide(s *Study, now time.Time) (Reply, []Body, error) {
	t, err := s.existing(c.Trial)
	if err != nil {
		return Reply{}, nil, err
	}
	if err := checkEpoch(t, c.Epoch); err != nil {
		return Reply{}, nil, err
	}
	outcome, err := s.spec.normalizeOutcome(c.Outcome)
	if err != nil {
		return Reply{}, nil, err
	}
	if err := checkAttributes("attributes", t.Attributes, outcome.Attributes); err != nil {
		return Reply{}, nil, err
	}
	if math.IsInf(s.cost+outcome.Cost, 1) {
		return Reply{}, nil, invalid("cost", outcome.Cost, "the costs of the study must have a finite sum", "use a larger unit")
	}
	reply := about(c.Trial, t.Epoch)
	if c.Epoch != 0 && c.Epoch < t.Epoch {
		reply.Late = true
		reply.Epochs[0] = c.Epoch
		bodies, err := tellLate(t, c.Epoch, outcome)
		if len(bodies) > 0 {
			bodies = s.thenFinish(bodies, now, nil, outcome)
		}
		return reply, bodies, err
	}
	bodies, err := s.tellCurrent(t, outcome, now)
	return reply, bodies, err
}

// tellCurrent decides a tell under the trial's last lease.
func (s *Study) tellCurrent(t *Trial, o Outcome, now time.Time) ([]Body, error) {
	told := []Body{Told{t.Number, t.Epoch, o}}
	switch {
	case t.State == Running:
		return s.thenFinish(told, now, t, o), nil
	case t.State == Queued && t.Epoch > 0: // the lease expired and no worker took it over
		return s.thenFinish(told, now, t, o), nil
	case t.State == Queued && o.State == Failed && o.Reason == FailedCancelled:
		return s.thenFinish(told, now, t, o), nil
	case t.State == Queued:
		return nil, &TrialStateError{
			t.Number, t.State, "it has not been started",
			"ask for it first, tell that it was cancelled, or add a finished trial",
		}
	case t.Outcome.Equal(o):
		return nil, nil
	case t.provisional():
		return s.thenFinish(told, now, t, o), nil
	default:
		return nil, &AlreadyToldError{Trial: t.Number, Stored: t.Outcome}
	}
}

// tellLate decides a tell under a lease that was taken over. One late result is kept
// for each lease.
func tellLate(t *Trial, epoch int, o Outcome) ([]Body, error) {
	for _, l := range t.Late {
		if l.Epoch != epoch {
			continue
		}
		if l.Outcome.Equal(o) {
			return nil, nil
		}
		return nil, &AlreadyToldError{t.Number, l.Outcome, epoch}
	}
	return []Body{ToldLate{t.Number, epoch, o}}, nil
}

// provisional tells whether the outcome comes from an expiry, so that a late tell replaces it.
func (t *Trial) provisional() bool {
	return t.State == Failed && t.Outcome.Reason == FailedExpired
}

// frees tells whether a trial with this outcome does not count towards MaxTrials. It is a
// cancelled one for which no other stands.
func (o Outcome) frees() bool {
	return o.Reason == FailedCancelled && o.Attributes[ReplacedAttribute] == ""
}
