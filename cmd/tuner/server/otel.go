//go:build otel

package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/stats"
)

// flushTimeout is for the last spans of a server that stops.
const flushTimeout = 5 * time.Second

// tracing returns a handler that sends a span for each call to the OpenTelemetry collector
// that the variables OTEL_* name, or nil if they name none. close sends the last spans.
func tracing(ctx context.Context, logger *slog.Logger) (handler stats.Handler, close func(), err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, func() {}, nil
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	// Later ones win, so OTEL_SERVICE_NAME may give another name.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "tuner"), attribute.String("service.version", cli.Version())), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces were not sent", "error", err) }))
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	handler = otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{}))
	return handler, func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("traces were not sent", "error", err)
		}
	}, nil
}
