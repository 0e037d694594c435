package server

import (
	"context"
	"log/slog"
	"slices"

	"google.golang.org/grpc/metadata"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// filled adds those of some pairs of a key and a text to attributes whose text is not empty.
func filled(attrs []slog.Attr, pairs ...string) []slog.Attr {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			attrs = append(attrs, slog.String(pair[0], pair[1]))
		}
	}
	return attrs
}

// requestID returns the request id of a request, or "".
func requestID(request any) string {
	if r, ok := request.(interface{ GetRequestId() string }); ok {
		return r.GetRequestId()
	}
	return ""
}

// traced adds the trace id that a caller sent to the attributes of a line of the log.
func traced(ctx context.Context, attrs ...slog.Attr) []slog.Attr {
	for _, value := range metadata.ValueFromIncomingContext(ctx, wire.TraceHeader) {
		if id := wire.TraceID(value); id != "" {
			return append(attrs, slog.String("trace_id", id))
		}
	}
	return attrs
}
