package actor

import (
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/study"
)

// permit returns an error if the caller may not give a command to the study as it
// stands. name is that of the study.
func permit(c tuner.Caller, name string, s *study.Study, cmd study.Command) error {
	if c.Permit == nil {
		switch cmd.(type) {
		case study.Add, study.Enqueue: // an admin may continue an import of others
			return nil
		}
	} else if err := permitWork(c, name, s, cmd); err != nil {
		return err
	}
	return s.CheckSender(c.Name, cmd)
}

// permitWork decides on the worker that a command acts for.
func permitWork(c tuner.Caller, name string, s *study.Study, cmd study.Command) error {
	switch cmd := cmd.(type) {
	case study.Ask:
		return permitAsk(c, name, s, cmd)
	case study.Start:
		return c.Permit(tuner.Act{Study: name, Trial: -1, Worker: cmd.Ask.Worker, Users: s.Users(cmd.Ask.Worker)})
	case study.Heartbeat:
		return permitAct(c, name, s, cmd.Trial, cmd.Epoch)
	case study.ReportValues:
		return permitAct(c, name, s, cmd.Trial, cmd.Epoch)
	case study.Tell:
		return permitAct(c, name, s, cmd.Trial, cmd.Epoch)
	case study.SetAttributes:
		return permitAct(c, name, s, cmd.Trial, 0)
	default:
		return nil
	}
}

// permitAsk decides on the name, and on the running trials that the ask gets back.
func permitAsk(c tuner.Caller, name string, s *study.Study, ask study.Ask) error {
	if err := c.Permit(tuner.Act{Study: name, Trial: -1, Worker: ask.Worker, Users: s.Users(ask.Worker)}); err != nil || ask.New || ask.Worker == "" {
		return err
	}
	running := s.RunningOf(ask.Worker)
	for _, trial := range running[:min(len(running), max(ask.Count, 0))] {
		if err := permitAct(c, name, s, trial, 0); err != nil {
			return err
		}
	}
	return nil
}

// permitAct decides on a trial under one of its leases, where epoch 0 is the last one.
func permitAct(c tuner.Caller, name string, s *study.Study, trial, epoch int) error {
	t, ok := s.Trial(trial)
	if !ok || t.Epoch == 0 || epoch < 0 || epoch > t.Epoch {
		return nil // not handed out, or refused for its epoch
	}
	worker, callers := s.Holders(&t, epoch)
	return c.Permit(tuner.Act{Study: name, Trial: trial, Worker: worker, Callers: callers, Users: s.Users(worker)})
}

// Sign names the caller in events.
func Sign(c tuner.Caller, events []study.Event) {
	for i := range events {
		events[i].Caller = c.Name
	}
}

// amount is the size of a study, as the approximate bytes of its events and its
// reports.
type amount struct{ bytes, reports int64 }

// add adds the size of an event.
func (a *amount) add(e study.Event) {
	a.bytes += int64(view.Size(e))
	switch b := e.Body.(type) {
	case study.Reported:
		a.reports += int64(len(b.Reports))
	case study.Added:
		a.reports += int64(len(b.Reports))
	}
}

// quota is the most that a study may hold. A field of 0 means no limit.
type quota amount

// refuse returns the error of a decided command that would make a study exceed its
// quota. It runs before the events are applied. It refuses new trials, reports and
// attributes. Outcomes, leases, admin commands and the rest of an ask in progress
// always pass, so that a full study can be ended without losing results.
func (q quota) refuse(held amount, cmd study.Command, reply study.Reply, events []study.Event) error {
	switch cmd.(type) {
	case study.Ask:
		if len(reply.Trials) > 0 && !starts(events) || len(events) == 0 && reply.Missing <= 0 {
			return nil
		}
		if reply.Missing > 0 {
			held.bytes++ // for a suggestion that is not made yet
		}
	case study.ReportValues, study.Enqueue, study.Add, study.SetAttributes:
	default:
		return nil
	}
	before := held
	for _, e := range events {
		held.add(e)
	}
	switch {
	case q.bytes > 0 && held.bytes > q.bytes && (len(events) > 0 || before.bytes > q.bytes):
		return &tuner.QuotaError{What: "bytes", Value: held.bytes, Most: q.bytes, Option: "--max-study-bytes"}
	case q.reports > 0 && held.reports > q.reports && held.reports > before.reports:
		return &tuner.QuotaError{What: "reports", Value: held.reports, Most: q.reports, Option: "--max-study-reports"}
	}
	return nil
}

// starts reports whether events start a trial.
func starts(events []study.Event) bool {
	for _, e := range events {
		if _, ok := e.Body.(study.Started); ok {
			return true
		}
	}
	return false
}
