package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// retryBusy is how long a caller should wait that a busy server refused.
const retryBusy = 100 * time.Millisecond

var errPanic = errors.New("panic")

func newErrorID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// unary is the interceptor of calls with one answer. It recovers twice. The outer time is for
// panics of the interceptor. The inner one is for those of the service, so that they are logged
// and counted.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	defer s.rescue(ctx, &err)
	done := s.begin(ctx, info.FullMethod)
	defer s.bytes.release(request)
	answer, err = s.admitUnary(ctx, request, info, next)
	err = done(ctx, request, err)
	s.audit(ctx, info.FullMethod, request, answer, err)
	return answer, err
}

// stream is the interceptor of calls with a stream of answers. It recovers as unary does.
func (s *Server) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	ctx := stream.Context()
	defer s.rescue(ctx, &err)
	done := s.begin(ctx, info.FullMethod)
	err = done(ctx, nil, s.admitStream(service, stream, info, next))
	s.audit(ctx, info.FullMethod, nil, nil, err)
	return err
}

// begin counts a running call. The function that it returns ends the count, logs the
// call and turns its error into a status. Calls that need no permission do not count.
func (s *Server) begin(ctx context.Context, method string) func(ctx context.Context, request any, err error) error {
	end := call(ctx)
	if s.methods[method].Need != wire.NeedNothing {
		id, _ := identityOf(ctx)
		leave, _ := s.calls.enter(id.rate, -1, -1) // the gate has checked the limits
		s.metrics.inFlight.Set(float64(s.inFlight.Add(1)))
		idle := end
		end = func() {
			idle()
			leave()
			s.metrics.inFlight.Set(float64(s.inFlight.Add(-1)))
		}
	}
	start := time.Now()
	return func(ctx context.Context, request any, err error) error {
		end()
		spent := time.Since(start)
		shown := s.show(ctx, method, err)
		s.metrics.count(method, status.Code(shown))
		s.metrics.seconds.WithLabelValues(s.metrics.label(method)).Observe(spent.Seconds())
		s.logCall(ctx, method, request, spent, shown)
		return shown
	}
}

// show turns an error into a status, and logs what the status hides.
func (s *Server) show(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok && tuner.CodeOf(err) == tuner.Internal {
		return err // already a status
	}
	if quota := (*tuner.QuotaError)(nil); errors.As(err, &quota) {
		s.full(quota)
	}
	id := newErrorID()
	st, hidden := wire.Status(err, id)
	if hidden {
		s.log.LogAttrs(ctx, slog.LevelError, "call failed", traced(ctx, slog.String("error_id", id), slog.String("method", method), slog.Any("error", err))...)
	}
	return st.Err()
}

func (s *Server) logCall(ctx context.Context, method string, request any, spent time.Duration, err error) {
	level := slog.LevelDebug
	if status.Code(err) == codes.PermissionDenied {
		level = slog.LevelWarn
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	id, _ := identityOf(ctx)
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("caller", id.name), slog.String("peer", hostOf(ctx)),
		slog.Duration("took", spent), slog.String("code", status.Code(err).String()),
	}
	attrs = traced(ctx, filled(attrs, "resource", resourceOf(request), "request_id", requestID(request))...)
	if err != nil {
		attrs = append(attrs, slog.String("error", status.Convert(err).Message()))
	}
	s.log.LogAttrs(ctx, level, "call", attrs...)
}

// admit refuses a request that its caller may not make, or that exceeds a limit.
func (s *Server) admit(ctx context.Context, method string, request any) error {
	id, ok := identityOf(ctx)
	if !ok { // the gate identifies every caller
		return wire.Denied(false, "the caller is unknown; send a token or a client certificate").Err()
	}
	got := s.bytes.get(request)
	switch got.limit {
	case "":
	case "memory":
		return s.refuse(ctx, got.limit, retryMemory)
	default:
		return s.refuse(ctx, got.limit, retryBusy)
	}
	if got.bad != nil {
		errorID := newErrorID()
		s.log.Warn("unreadable request", "error_id", errorID, "method", method, "caller", id.name, "peer", hostOf(ctx), "error", got.bad)
		return wire.NewStatus(codes.InvalidArgument, tuner.Invalid, "the request is not a message of the method's type; use a client of this version, "+
			"and UTF-8 for text (error id "+errorID+")").Err()
	}
	if !id.scope.permits(s.methods[method].Need, request) {
		s.metrics.authFailures.WithLabelValues("scope").Inc()
		return id.scope.denied(s.methods[method].Need, request)
	}
	if m := s.methods[method]; id.rate != "" && m.Need >= wire.NeedWork && m.Room != wire.RoomFile { // files have a quota
		if wait := s.writes.takeN(id.rate, got.bytes); wait > 0 {
			return s.refuse(ctx, "write-rate", wait)
		}
	}
	return nil
}

func (s *Server) admitUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	defer s.rescue(ctx, &err)
	if err := s.admit(ctx, info.FullMethod, request); err != nil {
		return nil, err
	}
	end, err := s.turn(ctx, info.FullMethod, request)
	if err != nil {
		return nil, err
	}
	defer end()
	leave, err := s.enterMemory(ctx, s.memoryFor(info.FullMethod, request))
	if err != nil {
		return nil, err
	}
	defer leave()
	if study, ok := wire.StudyOf(resourceOf(request)); ok {
		leave, limit := s.studies.enter(study, s.options.Limits.MaxInFlightPerStudy, -1)
		if limit != "" {
			return nil, s.refuse(ctx, limit, retryBusy)
		}
		defer leave()
	}
	if s.methods[info.FullMethod].Need >= wire.NeedWork {
		ctx = s.withCaller(ctx)
	}
	if _, ok := ctx.Deadline(); !ok {
		limit := s.options.Limits.CallTimeout
		if tell, ok := request.(*pb.TellRequest); ok && tell.GetNext() != nil || info.FullMethod == pb.Tuner_Ask_FullMethodName {
			limit = s.options.Limits.AskTimeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return next(ctx, request)
}

func (s *Server) admitStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer s.rescue(stream.Context(), &err)
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.stopping, func() { cancel(errStopping) })()
	a := &admittedStream{ServerStream: stream, ctx: ctx, server: s, method: info.FullMethod}
	if s.methods[info.FullMethod].Need == wire.NeedNothing {
		return s.watchHealth(service, a, next)
	}
	go a.guard(cancel)
	return next(service, a)
}

// watchHealth serves a health stream, which needs no permission. Their number is limited.
func (s *Server) watchHealth(service any, stream *admittedStream, next grpc.StreamHandler) error {
	l, host := s.options.Limits, hostOf(stream.ctx)
	leave, limit := s.healthWatches.enter(host, l.MaxHealthWatchesPerAddress, l.MaxHealthWatches)
	if limit != "" {
		return s.refused(limit, host, "", retryBusy)
	}
	defer leave()
	return next(service, stream)
}

// recheckInterval is how often an idle stream is checked against the tokens again.
const recheckInterval = 5 * time.Second

// admittedStream admits each message of a stream. It ends when the server stops or the
// caller loses its permission.
type admittedStream struct {
	grpc.ServerStream
	ctx    context.Context
	server *Server
	method string

	mu      sync.Mutex
	request any // the last one admitted
}

func (a *admittedStream) Context() context.Context { return a.ctx }

// RecvMsg implements [grpc.ServerStream]. A message counts as in flight only until it
// is decoded, because messages on streams are small.
func (a *admittedStream) RecvMsg(message any) error {
	defer a.server.bytes.release(message)
	if err := a.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	if err := a.server.admit(a.ctx, a.method, message); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.request = message
	return nil
}

func (a *admittedStream) SendMsg(message any) error {
	if err := a.recheck(); err != nil {
		return err
	}
	return a.ServerStream.SendMsg(message)
}

// guard ends the stream when its caller loses its permission.
func (a *admittedStream) guard(end context.CancelCauseFunc) {
	tick := time.NewTicker(a.server.recheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-a.ctx.Done():
			return
		}
		if err := a.recheck(); err != nil {
			end(err)
			return
		}
	}
}

// recheck returns an error if the caller has lost its permission. The token may have
// been revoked or expired since.
func (a *admittedStream) recheck() error {
	need := a.server.methods[a.method].Need
	if need == wire.NeedNothing {
		return nil
	}
	id, why := a.server.auth.identify(a.ctx)
	if why != nil {
		return wire.Denied(false, why.text).Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.request != nil && !id.scope.permits(need, a.request) {
		return id.scope.denied(need, a.request)
	}
	return nil
}

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
