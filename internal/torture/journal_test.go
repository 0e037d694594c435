package torture

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// call is a call of a client and its end.
type call struct {
	Client  int
	Kind    string // ask, tell, report, enqueue, extend or many
	Study   string
	Request string
	Worker  string `json:",omitempty"`
	Count   int    `json:",omitempty"` // of an ask or of many
	Trial   int    // of a tell or report, or made by an enqueue
	Epoch   int
	Bits    uint64 // of the value in a tell, report or enqueue
	// Start and End are nanoseconds of the wall clock, to order the calls.
	Start, End int64
	Ending     ending
	Code       tuner.Code `json:",omitempty"` // of the error, if any
	Doubt      bool       `json:",omitempty"` // an earlier attempt has an unknown outcome
	Given      []given    `json:",omitempty"` // by an ask, or made by many
	Late       bool       `json:",omitempty"`
}

// given is a trial that an ask handed out.
type given struct {
	Trial, Epoch int
	Config       string
}

// ending is what a client knows about the effect of its call.
type ending string

const (
	acked   ending = "acked"
	refused ending = "refused" // this attempt certainly had no effect
	unknown ending = "unknown"
)

func (c *call) value() float64 { return math.Float64frombits(c.Bits) }

// journal collects the calls of all clients.
type journal struct {
	mu    sync.Mutex
	Calls []*call
}

func (j *journal) add(c *call) {
	j.mu.Lock()
	j.Calls = append(j.Calls, c)
	j.mu.Unlock()
}

// count returns the number of calls of a kind that ended in one way since a moment.
func (j *journal) count(kind string, how ending, since int64) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.Calls {
		if c.Kind == kind && c.Ending == how && c.End >= since {
			n++
		}
	}
	return n
}

// end records how a call ended.
func (c *call) end(err error) {
	c.End = time.Now().UnixNano()
	c.Code = tuner.CodeOf(err)
	switch c.Code {
	case tuner.OK:
		c.Ending = acked
	case tuner.Unknown, tuner.Cancelled, tuner.Deadline:
		c.Ending, c.Doubt = unknown, true
	default:
		c.Ending = refused
	}
}

// outcome returns the outcome of a tell. Its value is unique.
func (c *call) outcome() study.Outcome {
	return study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{c.value()}}}}
}

func (c *call) reports() []study.Report {
	return []study.Report{{Step: int64(c.Bits & 0xfffff), Values: []study.NamedValue{{Name: "loss", Value: c.value()}}}}
}

// requests returns the request ids of a call in the log.
func (c *call) requests() []string {
	if c.Kind != "many" {
		return []string{c.Request}
	}
	var ids []string
	for i := range c.Count {
		ids = append(ids, fmt.Sprint(c.Request, "/", i))
	}
	return ids
}

// commands returns the commands of many, adds and enqueues in turn.
func (c *call) commands() (commands []study.Command) {
	for i, id := range c.requests() {
		if queued(i) {
			commands = append(commands, study.Enqueue{RequestID: id, Config: config(c.value(), 7)})
		} else {
			commands = append(commands, study.Add{RequestID: id, Config: config(c.value(), 7), Outcome: c.outcome()})
		}
	}
	return commands
}

// queued reports whether the i-th command of many is an enqueue.
func queued(i int) bool { return i%2 == 1 }

// addAll sends the commands of many to a service.
func (c *call) addAll(ctx context.Context, s tuner.Service) error {
	numbers, err := s.AddAll(ctx, c.Study, c.commands())
	for _, n := range numbers {
		c.Given = append(c.Given, given{Trial: n})
	}
	return err
}
