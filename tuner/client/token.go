package client

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// bearer shows a token with every call.
type bearer struct {
	token  wire.Token
	secure bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token.Reveal()}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return b.secure }

// checkClear refuses to send a token over a network without TLS.
func checkClear(address string) error {
	for _, one := range Addresses(address) {
		if strings.HasPrefix(one, "unix:") {
			continue
		}
		host, _, err := net.SplitHostPort(strings.TrimPrefix(one, "passthrough:///"))
		if err != nil {
			return fmt.Errorf("address %q: must be host:port or unix:path", one)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("refusing to send a token to %s without TLS, because others could read it; leave --insecure out", one)
		}
	}
	return nil
}
