package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// Strangers returns the limits of a gRPC server of its own whose callers show no token, such
// as Katib's, as its options and a guard for its listeners. Each connection stays a stranger.
// Calls at once are limited by MaxInFlight, and by a quarter of it for an address. Only calls with
// one answer are let in. The guard works until ctx ends.
func Strangers(ctx context.Context, l Limits, log *slog.Logger) (options []grpc.ServerOption, guard func(net.Listener) net.Listener) {
	l = l.withDefaults()
	var logged notices
	notice := func(limit, peer, _ string) {
		if missed, due := logged.due(limit); due {
			log.Warn("limit reached, caller refused", "limit", limit, "most", bounds[limit].most(l), "of", bounds[limit].rule, "peer", peer, "not_logged", missed)
		}
	}
	refused := func(ctx context.Context, limit string) error {
		notice(limit, hostOf(ctx), "")
		return wire.Exhausted(fmt.Sprintf("limit reached: at most %v %s; try again later", bounds[limit].most(l), bounds[limit].rule), retryBusy).Err()
	}
	all, bytes := newConnections(l, prometheus.NewGauge(prometheus.GaugeOpts{}), notice), newBytesInFlight(l.MaxInFlightBytes, nil, func(float64) {})
	go all.reap(ctx)
	calls := tally{each: "calls", all: "calls"}
	gate := func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if info.FullMethodName == healthpb.Health_Watch_FullMethodName {
			return nil, status.Error(codes.Unimplemented, "health watches are not served here; use Health/Check")
		}
		leave, limit := calls.enter(hostOf(ctx), l.MaxInFlight/4, l.MaxInFlight)
		if limit != "" {
			return nil, refused(ctx, limit)
		}
		all.used(ctx, anonymous)
		end := call(ctx)
		context.AfterFunc(ctx, func() { end(); leave() })
		return ctx, nil
	}
	admit := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		defer bytes.release(request)
		if bytes.get(request).limit != "" {
			return nil, refused(ctx, "bytes")
		}
		if bytes.get(request).bad != nil {
			return nil, status.Error(codes.InvalidArgument, "the request is not a message of the method's type")
		}
		return next(ctx, request)
	}
	options = append(l.connectionOptions(), grpc.InTapHandle(gate), grpc.UnaryInterceptor(admit),
		grpc.ForceServerCodecV2(newCodec(bytes)), grpc.MaxRecvMsgSize(l.MaxRecvBytes))
	return options, func(under net.Listener) net.Listener { return &limitedListener{under, all} }
}
