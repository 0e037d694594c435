package tuner

import (
	"context"
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

// CallerOf returns the caller of a context, or the zero Caller.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
