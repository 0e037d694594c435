package server

import (
	"context"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// gate sees the headers of a call before its body is read. Calls of one connection pass
// it one at a time. A refused call takes no memory and reaches no interceptor.
func (s *Server) gate(ctx context.Context, info *tap.Info) (out context.Context, err error) {
	defer func() {
		if err != nil {
			s.metrics.count(info.FullMethodName, status.Code(err))
		}
	}()
	defer s.rescue(ctx, &err)
	m, known := s.methods[info.FullMethodName]
	if !known {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %.100q", info.FullMethodName)
	}
	if m.Need == wire.NeedNothing {
		s.connections.used(ctx, anonymous)
		return context.WithValue(ctx, identityKey{}, anonymous), nil
	}
	id, err := s.identify(ctx)
	if err != nil {
		return nil, err
	}
	s.connections.used(ctx, id)
	if id.rate != "" {
		if wait := s.rates.take(id.rate); wait > 0 {
			return nil, s.refused("rate", hostOf(ctx), id.name, wait)
		}
		if over(s.calls.count(id.rate), s.options.Limits.MaxInFlightPerToken) {
			return nil, s.refused("calls-per-token", hostOf(ctx), id.name, retryBusy)
		}
	}
	if over(int(s.inFlight.Load()), id.scope.share(s.options.Limits.MaxInFlight)) {
		return nil, s.refused("calls", hostOf(ctx), id.name, retryBusy)
	}
	return context.WithValue(ctx, identityKey{}, id), nil
}

// rescue ends a panic of the function that defers it with an error for the caller.
func (s *Server) rescue(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		*err = s.panicked(ctx, p)
	}
}

// panicked logs a panic and returns the error for the caller.
func (s *Server) panicked(ctx context.Context, p any) error {
	id := newErrorID()
	s.metrics.panics.Inc()
	s.log.LogAttrs(ctx, slog.LevelError, "panic", traced(ctx, slog.String("error_id", id), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))...)
	st, _ := wire.Status(errPanic, id)
	return st.Err()
}
