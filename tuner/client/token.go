package client

import (
	"context"
	"net"
	"slices"
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

// Local tells whether all servers of an address are on this machine.
func Local(address string) bool {
	return !slices.ContainsFunc(Addresses(address), func(one string) bool {
		host, _, err := net.SplitHostPort(one)
		ip := net.ParseIP(host)
		return !strings.HasPrefix(one, "unix:") && (err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()))
	})
}
