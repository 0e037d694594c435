package server

import (
	"context"
	"log/slog"

	"google.golang.org/grpc/metadata"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// traced adds the trace id that a caller sent to the attributes of a line of the log.
func traced(ctx context.Context, attrs ...slog.Attr) []slog.Attr {
	for _, value := range metadata.ValueFromIncomingContext(ctx, wire.TraceHeader) {
		if id := wire.TraceID(value); id != "" {
			return append(attrs, slog.String("trace_id", id))
		}
	}
	return attrs
}
