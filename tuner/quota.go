package tuner

import (
	"fmt"

	"github.com/bkbtuner/bkb/tuner/study"
)

// QuotaError refuses a command that would make a study exceed its quota. The command
// had no effect. Its code is [Exhausted].
type QuotaError struct {
	What   string // bytes or reports
	Value  int64  // with the command
	Most   int64
	Option string // the flag of tuner serve
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the study would hold %d %s, and one study may hold %d (tuner serve %s); tell running trials as before; start a new study or raise the limit",
		e.Value, e.What, e.Most, e.Option)
}

// amount is the size of a study, as the approximate bytes of its events and its
// reports.
type amount struct{ bytes, reports int64 }

// add adds the size of an event.
func (a *amount) add(e study.Event) {
	a.bytes += int64(approximateSize(e))
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
	case study.Change:
		if ends(events) {
			return nil
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
		return &QuotaError{"bytes", held.bytes, q.bytes, "--max-study-bytes"}
	case q.reports > 0 && held.reports > q.reports && held.reports > before.reports:
		return &QuotaError{"reports", held.reports, q.reports, "--max-study-reports"}
	}
	return nil
}

// ends reports whether events end a trial of another optimiser.
func ends(events []study.Event) bool {
	for _, e := range events {
		if f, ok := e.Body.(study.Foreign); ok && f.State >= study.Completed {
			return true
		}
	}
	return false
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
