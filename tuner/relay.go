package tuner

import (
	"context"
	"crypto/rand"

	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Relay is a [Service] that makes each call at another service. A type that
// embeds one implements what differs: Watch, WatchStudies, Backup and Close.
type Relay struct {
	// Pass calls f with the service for a call. It may do so again until the call succeeds.
	Pass func(ctx context.Context, c Passed, f func(context.Context, Service) error) error
	// Identify gives commands without a request id one, so that they can be sent again.
	Identify bool
}

// Passed is a call that a [Relay] makes.
type Passed struct {
	Study   string // empty for a call about no study
	Changes bool   // it has one effect, even if it is made several times
}

// NewRequestID returns a random request id.
func NewRequestID() string { return rand.Text() }

func (r Relay) identify(id *string) {
	if r.Identify && *id == "" {
		*id = NewRequestID()
	}
}

// pass makes a call and returns its result.
func pass[R any](ctx context.Context, r Relay, c Passed, call func(context.Context, Service) (R, error)) (R, error) {
	var none, out R
	err := r.Pass(ctx, c, func(ctx context.Context, s Service) (err error) {
		out, err = call(ctx, s)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// read and change pass a call about one study with one argument.
func read[Q, R any](ctx context.Context, r Relay, call func(Service, context.Context, string, Q) (R, error), name string, q Q) (R, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (R, error) { return call(s, ctx, name, q) })
}

func change[C, R any](ctx context.Context, r Relay, call func(Service, context.Context, string, C) (R, error), name string, c C) (R, error) {
	return pass(ctx, r, Passed{name, true}, func(ctx context.Context, s Service) (R, error) { return call(s, ctx, name, c) })
}

// page is a part of a list.
type page[T any] struct {
	list []T
	more bool
}

// CreateStudy implements [Service].
func (r Relay) CreateStudy(ctx context.Context, name string, c study.Create) (Created, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.CreateStudy, name, c)
}

// Study implements [Service].
func (r Relay) Study(ctx context.Context, name string) (Study, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (Study, error) { return s.Study(ctx, name) })
}

// Studies implements [Service].
func (r Relay) Studies(ctx context.Context, after string, limit int) ([]Study, bool, error) {
	p, err := pass(ctx, r, Passed{}, func(ctx context.Context, s Service) (p page[Study], err error) {
		p.list, p.more, err = s.Studies(ctx, after, limit)
		return p, err
	})
	return p.list, p.more, err
}

// DeleteStudy implements [Service].
func (r Relay) DeleteStudy(ctx context.Context, name string) error {
	return r.Pass(ctx, Passed{name, true}, func(ctx context.Context, s Service) error { return s.DeleteStudy(ctx, name) })
}

// Pause implements [Service].
func (r Relay) Pause(ctx context.Context, name string, c study.Pause) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Pause, name, c)
}

// Resume implements [Service].
func (r Relay) Resume(ctx context.Context, name string, c study.Resume) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Resume, name, c)
}

// Finish implements [Service].
func (r Relay) Finish(ctx context.Context, name string, c study.Finish) (Study, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Finish, name, c)
}

// SetAttributes implements [Service].
func (r Relay) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	r.identify(&c.RequestID)
	return r.Pass(ctx, Passed{name, true}, func(ctx context.Context, s Service) error { return s.SetAttributes(ctx, name, c) })
}

// Ask implements [Service].
func (r Relay) Ask(ctx context.Context, name string, c study.Ask) (Asked, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Ask, name, c)
}

// Tell implements [Service].
func (r Relay) Tell(ctx context.Context, name string, c study.Tell) (Told, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Tell, name, c)
}

// Report implements [Service].
func (r Relay) Report(ctx context.Context, name string, c study.ReportValues) (Verdict, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Report, name, c)
}

// Heartbeat implements [Service].
func (r Relay) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (Verdict, error) {
	return change(ctx, r, Service.Heartbeat, name, c)
}

// Enqueue implements [Service].
func (r Relay) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Enqueue, name, c)
}

// Add implements [Service].
func (r Relay) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	r.identify(&c.RequestID)
	return change(ctx, r, Service.Add, name, c)
}

// AddAll implements [Service].
func (r Relay) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	return pass(ctx, r, Passed{name, true}, func(ctx context.Context, s Service) ([]int, error) { return s.AddAll(ctx, name, commands) })
}

// Trial implements [Service].
func (r Relay) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	return read(ctx, r, Service.Trial, name, number)
}

// Reports implements [Service].
func (r Relay) Reports(ctx context.Context, name string, number, first, limit int) ([]study.Report, bool, error) {
	p, err := pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (p page[study.Report], err error) {
		p.list, p.more, err = s.Reports(ctx, name, number, first, limit)
		return p, err
	})
	return p.list, p.more, err
}

// Trials implements [Service].
func (r Relay) Trials(ctx context.Context, name string, f Filter) ([]study.Trial, bool, error) {
	p, err := pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (p page[study.Trial], err error) {
		p.list, p.more, err = s.Trials(ctx, name, f)
		return p, err
	})
	return p.list, p.more, err
}

// Columns implements [Service].
func (r Relay) Columns(ctx context.Context, name string, q ColumnQuery) (Columns, error) {
	return read(ctx, r, Service.Columns, name, q)
}

// Best implements [Service].
func (r Relay) Best(ctx context.Context, name string) ([]study.Trial, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) ([]study.Trial, error) { return s.Best(ctx, name) })
}

// Diagnose implements [Service].
func (r Relay) Diagnose(ctx context.Context, name string) (surrogate.Diagnosis, error) {
	return pass(ctx, r, Passed{Study: name}, func(ctx context.Context, s Service) (surrogate.Diagnosis, error) { return s.Diagnose(ctx, name) })
}

// Predict implements [Service].
func (r Relay) Predict(ctx context.Context, name string, q PredictQuery) (Predictions, error) {
	return read(ctx, r, Service.Predict, name, q)
}

// Importance implements [Service].
func (r Relay) Importance(ctx context.Context, name string, q ImportanceQuery) (Importance, error) {
	return read(ctx, r, Service.Importance, name, q)
}
