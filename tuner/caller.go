package tuner

import (
	"context"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Caller identifies the caller of a call. Its events name it, and it holds the trials
// that it is given.
type Caller struct {
	Name string // such as "token 3f2a9c01"
	// Permit returns an error, such as a [DeniedError], if the caller may not act for a
	// worker. It is called when the act is decided. A nil Permit permits all.
	Permit func(Act) error
}

// Act is an act for a worker. Either the caller asks under the worker's name, or it
// acts on a trial under a lease that the worker holds or held.
type Act struct {
	Study  string
	Trial  int    // -1 for an ask
	Worker string // empty for an unnamed worker
	// Callers are those that the trial was handed to under this lease. The first one
	// started the lease. They are nil for an ask. A caller is empty if unknown.
	Callers []string
	// Users are the callers that trials of the study were handed to under the worker's
	// name. The one that started a trial last is first.
	Users []string
}

// DeniedError refuses an act that the caller may not do. Its code is [Denied].
type DeniedError struct{ Reason string }

func (e *DeniedError) Error() string { return e.Reason }

type callerKey struct{}

// WithCaller returns a context for calls of a caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf returns the caller of a context, or the zero Caller.
func callerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// permit returns an error if the caller may not give a command to the study as it
// stands. name is that of the study.
func (c Caller) permit(name string, s *study.Study, cmd study.Command) error {
	if c.Permit == nil {
		return nil
	}
	switch cmd := cmd.(type) {
	case study.Ask:
		return c.ask(name, s, cmd)
	case study.Start:
		return c.Permit(Act{Study: name, Trial: -1, Worker: cmd.Ask.Worker, Users: s.Users(cmd.Ask.Worker)})
	case study.Heartbeat:
		return c.act(name, s, cmd.Trial, cmd.Epoch)
	case study.ReportValues:
		return c.act(name, s, cmd.Trial, cmd.Epoch)
	case study.Tell:
		return c.act(name, s, cmd.Trial, cmd.Epoch)
	case study.SetAttributes:
		return c.act(name, s, cmd.Trial, 0)
	default:
		return nil
	}
}

// ask decides on the name, and on the running trials that the ask gets back.
func (c Caller) ask(name string, s *study.Study, ask study.Ask) error {
	if err := c.Permit(Act{Study: name, Trial: -1, Worker: ask.Worker, Users: s.Users(ask.Worker)}); err != nil || ask.New || ask.Worker == "" {
		return err
	}
	running := s.RunningOf(ask.Worker)
	for _, trial := range running[:min(len(running), max(ask.Count, 0))] {
		if err := c.act(name, s, trial, 0); err != nil {
			return err
		}
	}
	return nil
}

// act decides on a trial under one of its leases, where epoch 0 is the last one.
func (c Caller) act(name string, s *study.Study, trial, epoch int) error {
	t, ok := s.Trial(trial)
	if !ok || t.Epoch == 0 || epoch < 0 || epoch > t.Epoch {
		return nil // not handed out, or refused for its epoch
	}
	worker, callers := s.Holders(&t, epoch)
	return c.Permit(Act{Study: name, Trial: trial, Worker: worker, Callers: callers, Users: s.Users(worker)})
}

// sign names the caller in events.
func (c Caller) sign(events []study.Event) {
	if planted.Is(planted.CallerForgotten) {
		return
	}
	for i := range events {
		events[i].Caller = c.Name
	}
}
