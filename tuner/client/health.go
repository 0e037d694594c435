package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Healthy asks once whether the server serves. It needs no token. serving is false if the
// server answers that it does not serve, as a stopping server does. An error means that
// it does not answer.
func (c *Client) Healthy(ctx context.Context) (serving bool, err error) {
	if err := c.ready(ctx); err != nil {
		return false, err
	}
	answer, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(false))
	if err != nil {
		if a, ok := wire.ReadError(err); ok {
			return false, &tuner.RemoteError{Code: a.Err.Code, Message: fmt.Sprintf("%s does not answer: %s", c.address, a.Err.Message)}
		}
		return false, err
	}
	return answer.GetStatus() == healthpb.HealthCheckResponse_SERVING, nil
}
