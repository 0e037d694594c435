package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// maxBackoff is the longest pause between two tries, of calls and connections.
const maxBackoff = 2 * time.Second

// Client is a [tuner.Service] at the other end of a wire.
type Client struct {
	conn     connection
	stub     pb.TunerClient
	retryFor time.Duration
	maxSend  int // bytes of one message
	closed   atomic.Bool

	address   string
	plaintext bool // without TLS
	anonymous bool // without a token and a certificate
	onTrouble func(Trouble)
	troubled  atomic.Bool // onTrouble was called, and no call succeeded since
}

var _ tuner.Service = (*Client)(nil)

// connection is a [grpc.ClientConn], or one within the process.
type connection interface {
	grpc.ClientConnInterface
	GetState() connectivity.State
	Close() error
}

// within is a connection within the process, which is always ready.
type within struct{ grpc.ClientConnInterface }

func (within) GetState() connectivity.State { return connectivity.Ready }
func (within) Close() error                 { return nil }

// Over makes a client of a connection within the process. Its calls are made once.
func Over(conn grpc.ClientConnInterface) *Client {
	o := Options{}.withDefaults()
	return &Client{conn: within{conn}, stub: pb.NewTunerClient(conn), retryFor: -1, maxSend: o.MaxSendBytes}
}

// Dial makes a client of the server at host:port or unix:path, or of several servers of one
// database at host:port,host:port,…, of which it uses the first that it reaches. If that one
// is gone, it goes to the next, as it does if a name has several addresses. Dial reads files
// but does not connect. The first call does.
func Dial(address string, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("options of the client: %w", err)
	}
	o = o.withDefaults()
	dial, err := o.dialOptions(address)
	if err != nil {
		return nil, err
	}
	target := address
	if servers := Addresses(address); len(servers) > 1 {
		var option grpc.DialOption
		target, option = several(servers)
		dial = append(dial, option)
	}
	conn, err := grpc.NewClient(target, dial...)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	return &Client{conn: conn, stub: pb.NewTunerClient(conn), retryFor: o.RetryFor, maxSend: o.MaxSendBytes, address: address, plaintext: o.Plaintext, anonymous: o.Token.IsZero() && o.CertFile == "", onTrouble: o.OnTrouble}, nil
}

func (o Options) dialOptions(address string) ([]grpc.DialOption, error) {
	creds := insecure.NewCredentials()
	if !o.Plaintext {
		config, err := o.tlsConfig()
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(config)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxRecvBytes), grpc.MaxCallSendMsgSize(o.MaxSendBytes)),
		grpc.WithMaxHeaderListSize(64 << 10),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.PingInterval, Timeout: 10 * time.Second}),
		grpc.WithStatsHandler(sentHandler{}),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("bkb-tuner-go"),
	}
	if !o.Token.IsZero() {
		if o.Plaintext && !Local(address) {
			return nil, fmt.Errorf("refusing to send a token to %s without TLS, because others could read it; leave --insecure out", address)
		}
		dial = append(dial, grpc.WithPerRPCCredentials(bearer{o.Token, !o.Plaintext}))
	}
	return append(dial, grpc.WithPerRPCCredentials(trace(o.TraceParent))), nil
}

// trace is the traceparent of calls that are not part of a call to a server.
type trace string

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (t trace) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	for _, value := range append(metadata.ValueFromIncomingContext(ctx, wire.TraceHeader), string(t)) {
		if wire.TraceID(value) != "" {
			return map[string]string{wire.TraceHeader: value}, nil
		}
	}
	return nil, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (trace) RequireTransportSecurity() bool { return false }

// errClosed is the error of calls after Close. It is that of a service in the process.
var errClosed = fmt.Errorf("the client is closed: %w", store.ErrClosed)

// Close closes the connection. Calls in progress fail. The server continues.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.conn.Close()
}

// ready refuses a call whose context has ended, or on a closed client.
func (c *Client) ready(ctx context.Context) error {
	if c.closed.Load() {
		return errClosed
	}
	return ctx.Err()
}
