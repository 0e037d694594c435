package client

import (
	"context"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
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
		return false, c.conclude(ctx, err, false)
	}
	return answer.GetStatus() == healthpb.HealthCheckResponse_SERVING, nil
}
