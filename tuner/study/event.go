package study

import (
	"reflect"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Position counts the events of one study's log. The first event, [Created], has
// position 1, and position 0 is that of the empty log.
type Position uint64

// Event is a change of a study. An event never changes after it was made, and copies
// share its slices and maps.
type Event struct {
	Time    time.Time // wall clock time of the decision in UTC, but the order is by position
	Request Request   // request of the command, zero if it had no id
	// Caller made the call that caused the event, such as "token 3f2a9c01". It is empty
	// if the caller is unknown, and for decisions of the service itself.
	Caller string
	Body   Body
}

// Trial returns the number of the event's trial. ok is false if it has none.
func (e Event) Trial() (n int, ok bool) {
	body := reflect.ValueOf(e.Body)
	if !body.IsValid() {
		return 0, false
	}
	field := body.FieldByName("Trial")
	if !field.IsValid() || field.Int() == OfStudy {
		return 0, false
	}
	return int(field.Int()), true
}

// Body is the kind and content of an event, one of the types of this package that implement it.
type Body interface{ isBody() }

// Created is the first event of every study and the only one of its kind.
type Created struct{ Spec Spec }

// Paused says that the study hands out no trials until Resumed.
type Paused struct{}

// Resumed ends a pause.
type Resumed struct{}

// Finished says that the study hands out no more trials. Running trials may still be told.
type Finished struct {
	Reason FinishReason
	Detail string // text for people, may be empty
}

// Raised is the event of [Extend]. It sets the limits of the study, of which none becomes lower, and continues a finished one.
type Raised struct {
	MaxTrials int
	Timeout   time.Duration
	MaxCost   float64
}

// Enqueued adds a configuration of the user as a queued trial.
type Enqueued struct {
	Trial      int
	Config     space.Config
	Attributes Attributes
}

// Started hands a trial to a worker under a lease. Epoch 1 of a trial that was never
// queued has the suggestion with its configuration. Otherwise the trial comes from the
// queue and Suggestion is nil.
type Started struct {
	Trial      int
	Epoch      int
	Worker     string // empty for an unnamed worker
	Deadline   time.Time
	Suggestion *Suggestion
}

// Extended is the event of [Heartbeat]. It moves the deadline of a running trial's lease.
type Extended struct {
	Trial    int
	Epoch    int
	Deadline time.Time
}

// Reported adds intermediate values to a running trial.
type Reported struct {
	Trial   int
	Epoch   int
	Reports []Report
}

// Expired ends the lease of a running trial. Requeued says whether the trial is queued
// again or becomes failed(expired).
type Expired struct {
	Trial    int
	Epoch    int
	Requeued bool
}

// Told sets the outcome of a trial.
type Told struct {
	Trial   int
	Epoch   int // of the lease, 0 for a queued trial that was cancelled
	Outcome Outcome
}

// ToldLate keeps an outcome told under a lease after another worker took the trial over.
type ToldLate struct {
	Trial   int
	Epoch   int
	Outcome Outcome
}

// Added adds a finished trial that was run elsewhere.
type Added struct {
	Trial      int
	Config     space.Config
	Reports    []Report // with Epoch 0
	Outcome    Outcome
	Attributes Attributes
}

// Attributed sets attributes of a trial, or of the study if Trial is [OfStudy]. An
// empty value removes its key.
type Attributed struct {
	Trial      int
	Attributes Attributes
}

// OfStudy in place of a trial number means the study itself.
const OfStudy = -1

// Anchored is a model event, which is a rebuild of the proposer's model. Model holds the hyper-parameters, the
// dictionary and all else that a restart needs, in the proposer's own encoding. It was
// computed from the log up to Seen and is used for suggestions from position Effective
// on.
type Anchored struct {
	Seen      Position
	Effective Position
	Model     []byte
}

func (Created) isBody()    {}
func (Paused) isBody()     {}
func (Resumed) isBody()    {}
func (Finished) isBody()   {}
func (Raised) isBody()     {}
func (Enqueued) isBody()   {}
func (Started) isBody()    {}
func (Extended) isBody()   {}
func (Reported) isBody()   {}
func (Expired) isBody()    {}
func (Told) isBody()       {}
func (ToldLate) isBody()   {}
func (Added) isBody()      {}
func (Attributed) isBody() {}
func (Anchored) isBody()   {}
