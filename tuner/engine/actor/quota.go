package actor

import (
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
