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
	Trial  int    // -1 for an ask
	Worker string // empty for an unnamed worker
	// Callers were handed the trial under this lease, or trials of the study under the
	// worker's name. The last one is first. A caller is empty if unknown.
	Callers []string
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
// stands.
func (c Caller) permit(s *study.Study, cmd study.Command) error {
	if c.Permit == nil {
		return nil
	}
	trial, epoch := 0, 0
	switch cmd := cmd.(type) {
	case study.Ask:
		return c.ask(s, cmd)
	case study.Start:
		return c.ask(s, cmd.Ask)
	case study.Heartbeat:
		trial, epoch = cmd.Trial, cmd.Epoch
	case study.ReportValues:
		trial, epoch = cmd.Trial, cmd.Epoch
	case study.Tell:
		trial, epoch = cmd.Trial, cmd.Epoch
	case study.SetAttributes:
		trial = cmd.Trial
	default:
		return nil
	}
	t, ok := s.Trial(trial)
	if !ok || t.Epoch == 0 || epoch < 0 || epoch > t.Epoch {
		return nil // not handed out, or refused for its epoch
	}
	worker, callers := s.Holders(&t, epoch)
	return c.Permit(Act{trial, worker, callers})
}

func (c Caller) ask(s *study.Study, ask study.Ask) error {
	return c.Permit(Act{-1, ask.Worker, s.Users(ask.Worker)})
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
