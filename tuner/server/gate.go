package server

import (
	"context"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// gate sees a call's headers before its body is read, one call of a connection
// at a time. What it refuses costs no memory and reaches no interceptor.
func (s *Server) gate(ctx context.Context, info *tap.Info) (out context.Context, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(ctx, p)
		}
		if err != nil {
			s.metrics.count(info.FullMethodName, status.Code(err))
		}
	}()
	n, known := s.permissions[info.FullMethodName]
	if !known {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %.100q", info.FullMethodName)
	}
	id := nobody
	if n != needNothing {
		if id, err = s.identify(ctx); err != nil {
			return nil, err
		}
	}
	if id.rate != "" {
		if wait := s.rates.take(id.rate); wait > 0 {
			s.metrics.limited.WithLabelValues("rate").Inc()
			return nil, wire.Exhausted("too many calls: send fewer a second, or several reports in one", wait).Err()
		}
	}
	if most := s.options.Limits.MaxInFlight; most >= 0 && s.inFlight.Load() >= int64(most) {
		s.metrics.limited.WithLabelValues("calls").Inc()
		return nil, wire.Exhausted("the server has too many calls under way", retryBusy).Err()
	}
	return context.WithValue(ctx, identityKey{}, id), nil
}

// panicked logs a panic and returns what the caller gets to know of it.
func (s *Server) panicked(_ context.Context, p any) error {
	id := newErrorID()
	s.metrics.panics.Inc()
	s.log.Error("panic", "error_id", id, "panic", p, "stack", string(debug.Stack()))
	st, _ := wire.Status(errPanic, id)
	return st.Err()
}
