package server

import (
	"container/list"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/peer"
)

// connections enforces the limits on connections. A connection is a stranger until a
// call on it identifies its caller. The number of strangers is limited by address and
// in total. Past a limit, one stranger is closed to make room, so a caller without a
// token displaces only strangers. It is chosen at random. If the oldest were closed, a
// flood could close every connection whose handshake takes longer than the flood takes
// to fill the limit.
type connections struct {
	limits Limits
	refuse func(limit, peer string)
	gauge  prometheus.Gauge

	mu        sync.Mutex
	total     int
	of        map[string]int // by address
	strangers list.List      // of *connection
}

func newConnections(l Limits, gauge prometheus.Gauge, refuse func(limit, peer string)) *connections {
	return &connections{limits: l, refuse: refuse, gauge: gauge, of: make(map[string]int)}
}

// limitedListener accepts the connections that the limits allow.
type limitedListener struct {
	net.Listener
	connections *connections
}

// Accept implements [net.Listener].
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
	host string // empty for a unix socket
	// used is when the connection was accepted or last had a call without permission,
	// in nanoseconds. streams counts its running streams without permission.
	used    atomic.Int64
	streams atomic.Int32
	known   atomic.Bool

	// Guarded by of.mu.
	stranger *list.Element // nil once it is known or closed
	gone     bool
}

// connectionAddr links a call to its connection.
type connectionAddr struct {
	net.Addr
	connection *connection
}

// RemoteAddr implements [net.Conn].
func (c *connection) RemoteAddr() net.Addr { return connectionAddr{c.Conn.RemoteAddr(), c} }

// Close implements [net.Conn].
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
	l := s.limits
	if c.host != "" && over(len(s.strangersOf(c.host)), l.MaxStrangersPerAddress) {
		s.displace("strangers-per-address", c.host)
	}
	if over(s.strangers.Len(), l.MaxStrangers) {
		s.displace("strangers", "")
	}
	if c.host != "" && over(s.of[c.host], l.MaxConnectionsPerAddress) && !s.displace("connections-per-address", c.host) {
		return nil
	}
	if over(s.total, l.MaxConnections) && !s.displace("connections", "") {
		return nil
	}
	s.total++
	s.of[c.host]++
	c.stranger = s.strangers.PushBack(c)
	s.gauge.Set(float64(s.total))
	return c
}

// over reports whether one more than n exceeds most. A negative most means no limit.
func over(n, most int) bool { return most >= 0 && n >= most }

// strangersOf returns the strangers of an address, or all strangers if host is empty.
// The lock is held.
func (s *connections) strangersOf(host string) (all []*connection) {
	for e := s.strangers.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*connection); host == "" || c.host == host {
			all = append(all, c)
		}
	}
	return all
}

// displace closes a stranger, and one of host unless host is empty. It returns false if
// there is none. The lock is held.
func (s *connections) displace(limit, host string) bool {
	s.refuse(limit, host)
	strangers := s.strangersOf(host)
	if len(strangers) == 0 {
		return false
	}
	c := strangers[rand.N(len(strangers))]
	s.drop(c)
	c.Conn.Close()
	return true
}

// drop removes a connection from the counts. The lock is held.
func (s *connections) drop(c *connection) {
	if c.gone {
		return
	}
	c.gone = true
	if c.stranger != nil {
		s.strangers.Remove(c.stranger)
		c.stranger = nil
	}
	s.total--
	if s.of[c.host]--; s.of[c.host] == 0 {
		delete(s.of, c.host)
	}
	s.gauge.Set(float64(s.total))
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
		var next *list.Element
		for e := s.strangers.Front(); e != nil; e = next {
			next = e.Next()
			c := e.Value.(*connection)
			if idle := time.Duration(time.Now().UnixNano() - c.used.Load()); idle > s.limits.StrangerIdle && c.streams.Load() == 0 {
				s.drop(c)
				c.Conn.Close()
			}
		}
		s.mu.Unlock()
	}
}

// recognize marks a connection as known, or as used by a call that needs no permission.
func recognize(ctx context.Context, known bool) {
	c := connectionOf(ctx)
	if c == nil || c.known.Load() {
		return
	}
	if !known {
		c.used.Store(time.Now().UnixNano())
		return
	}
	c.known.Store(true)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.stranger != nil {
		c.of.strangers.Remove(c.stranger)
		c.stranger = nil
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
