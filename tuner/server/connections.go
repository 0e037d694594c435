package server

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// connections enforces the limits on connections. A connection is a stranger until a call on it
// identifies its caller, whose token or certificate then holds it. The number of strangers is
// limited by address and in total. Past a limit, one stranger is closed to make room, so a caller
// without a token displaces only strangers. It is chosen at random. Holders that are no admins
// may hold nine tenths of the connections of an address and in total, and one is left for
// strangers. Past that, the one with the most gives up a connection without calls.
type connections struct {
	limits Limits
	refuse func(limit, peer, caller string)
	gauge  prometheus.Gauge

	mu  sync.Mutex
	all map[*connection]struct{}
}

// count is how many connections there are.
type count struct {
	total, strangers int
	workers          int // held by callers that are no admins
}

func newConnections(l Limits, gauge prometheus.Gauge, refuse func(limit, peer, caller string)) *connections {
	return &connections{limits: l, refuse: refuse, gauge: gauge, all: make(map[*connection]struct{})}
}

// limitedListener accepts the connections that the limits allow.
type limitedListener struct {
	net.Listener
	connections *connections
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.connections.admit(raw); c != nil {
			return c, nil
		}
		raw.Close()
	}
}

// connection is a connection that the limits count.
type connection struct {
	net.Conn
	of   *connections
	host string       // empty for a unix socket
	used atomic.Int64 // when it was accepted or a call on it last began, in nanoseconds
	// calls counts those that run.
	calls atomic.Int32
	known atomic.Bool
	heard atomic.Bool // something has arrived

	// Guarded by of.mu.
	holder string // the token or certificate; empty for strangers, admins and servers
	gone   bool
}

// connectionAddr links a call to its connection.
type connectionAddr struct {
	net.Addr
	connection *connection
}

func (c *connection) RemoteAddr() net.Addr { return connectionAddr{c.Conn.RemoteAddr(), c} }

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.drop(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// admit counts a connection. It returns nil if the connection is refused.
func (s *connections) admit(raw net.Conn) *connection {
	c := &connection{Conn: raw, of: s, host: addressOf(raw.RemoteAddr())}
	c.used.Store(time.Now().UnixNano())
	s.mu.Lock()
	defer s.mu.Unlock()
	l, all, here := s.limits, s.count(""), s.count(c.host)
	if c.host != "" && over(here.strangers, l.MaxStrangersPerAddress) {
		s.displaceStranger("strangers-per-address", c.host)
	}
	if over(all.strangers, l.MaxStrangers) {
		s.displaceStranger("strangers", "")
	}
	if c.host != "" && over(here.total, l.MaxConnectionsPerAddress) && !s.displaceStranger("connections-per-address", c.host) ||
		over(all.total, l.MaxConnections) && !s.displaceStranger("connections", "") {
		return nil
	}
	s.all[c] = struct{}{}
	s.gauge.Set(float64(len(s.all)))
	return c
}

// over reports whether one more than n exceeds most. A negative most means no limit.
func over(n, most int) bool { return most >= 0 && n >= most }

// count counts the connections of an address, or all if host is empty. The lock is held, as for
// all that follow. It takes as long as finding one to displace.
func (s *connections) count(host string) (n count) {
	for c := range s.all {
		if host != "" && c.host != host {
			continue
		}
		n.total++
		if !c.known.Load() {
			n.strangers++
		} else if c.holder != "" {
			n.workers++
		}
	}
	return n
}

// displaceStranger closes a stranger, and one of host unless host is empty. It returns
// false if there is none.
func (s *connections) displaceStranger(limit, host string) bool {
	s.refuse(limit, host, "")
	var strangers []*connection
	for c := range s.all {
		if !c.known.Load() && (host == "" || c.host == host) {
			strangers = append(strangers, c)
		}
	}
	if len(strangers) == 0 {
		return false
	}
	s.cut(strangers[rand.N(len(strangers))])
	return true
}

// displaceIdle closes the connection that was used least recently, among those without calls of
// the holder with the most. It spares the one that asks, and returns false if there is none.
func (s *connections) displaceIdle(limit, host string, spare *connection) bool {
	held := make(map[string]int)
	idle := make(map[string]*connection) // the one used least recently, by holder
	for c := range s.all {
		if c.holder == "" || host != "" && c.host != host {
			continue
		}
		held[c.holder]++
		if c != spare && c.calls.Load() == 0 && (idle[c.holder] == nil || c.used.Load() < idle[c.holder].used.Load()) {
			idle[c.holder] = c
		}
	}
	var most *connection
	for holder, c := range idle {
		if most == nil || held[holder] > held[most.holder] {
			most = c
		}
	}
	if most == nil {
		return false
	}
	s.refuse(limit, most.host, most.holder)
	s.cut(most)
	return true
}

// cut closes a connection.
func (s *connections) cut(c *connection) {
	s.drop(c)
	c.Conn.Close()
}

// cutSilent closes the connections on which nothing has arrived, or all. Before gRPC stops, it
// waits for connections in a handshake, and a silent one would take until Limits.ConnectTimeout.
// It takes the lock.
func (s *connections) cutSilent(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		if all || !c.heard.Load() {
			s.cut(c)
		}
	}
}

// drop removes a connection from the counts.
func (s *connections) drop(c *connection) {
	if c.gone {
		return
	}
	c.gone = true
	delete(s.all, c)
	s.gauge.Set(float64(len(s.all)))
}

// reap closes idle strangers until ctx ends.
func (s *connections) reap(ctx context.Context) {
	tick := time.NewTicker(min(s.limits.StrangerIdle/4+time.Millisecond, 5*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		for c := range s.all {
			if idle := time.Duration(time.Now().UnixNano() - c.used.Load()); idle > s.limits.StrangerIdle && !c.known.Load() && c.calls.Load() == 0 {
				s.cut(c)
			}
		}
		s.mu.Unlock()
	}
}

// used notes that a call begins on the connection of ctx, and who its caller is. A caller
// without permission is anonymous. If there are too many, the holder with the most loses one without
// calls, or if there is none, this one is closed.
func (s *connections) used(ctx context.Context, id identity) {
	c := connectionOf(ctx)
	if c == nil {
		return
	}
	c.used.Store(time.Now().UnixNano())
	if id.name == anonymous.name || c.known.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.gone || c.known.Load() {
		return
	}
	c.known.Store(true)
	admin := id.scope.Role == RoleAdmin || id.scope.Role == RolePeer || id.forwarded
	if !admin {
		c.holder = id.name
	}
	fits := func(limit, host string, most int) bool {
		n := s.count(host)
		if over(n.workers-1, Scope{}.share(most)) || over(n.total-n.strangers, most) && n.total > 1 { // a place is left for strangers
			return s.displaceIdle(limit, host, c)
		}
		return true
	}
	here := c.host == "" || fits("connections-per-address", c.host, s.limits.MaxConnectionsPerAddress)
	if !(here && fits("connections", "", s.limits.MaxConnections)) && !admin {
		s.cut(c)
	}
}

// call counts a call that runs on the connection of ctx until the function is called.
func call(ctx context.Context) (end func()) {
	c := connectionOf(ctx)
	if c == nil {
		return func() {}
	}
	c.calls.Add(1)
	return func() {
		c.used.Store(time.Now().UnixNano())
		c.calls.Add(-1)
	}
}

// connectionOf returns the connection of a call, or nil if the limits do not count it.
func connectionOf(ctx context.Context) *connection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	a, _ := p.Addr.(connectionAddr)
	return a.connection
}

// addressOf returns an address without its port, or "" if it is not on an IP network.
func addressOf(addr net.Addr) string {
	if c, ok := addr.(connectionAddr); ok {
		addr = c.Addr
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return ""
	}
	a, _ := netip.AddrFromSlice(tcp.IP)
	return a.Unmap().String()
}

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
