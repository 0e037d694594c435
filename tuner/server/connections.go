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

	"github.com/bkbtuner/bkb/internal/planted"
)

// connections holds the connections of a server to its limits. A connection is a
// stranger until a call on it shows who makes it. So many connections can be strangers
// at once, of one address and of all, before one of them is closed to make room for a
// new one. So a caller without a token displaces strangers only. Which one is closed is
// drawn by chance: a flood that closed the oldest would close all that need longer for
// their handshake than it needs to fill the limit.
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

// connection is one that the limits count.
type connection struct {
	net.Conn
	of   *connections
	host string // empty without an address, as on a unix socket
	// used is when the connection was accepted or last had a call that needs no
	// permission, in nanoseconds; streams counts the streams of those under way.
	used    atomic.Int64
	streams atomic.Int32
	known   atomic.Bool

	// Guarded by of.mu.
	stranger *list.Element // nil once it is known or gone
	gone     bool
}

// connectionAddr leads from a call to its connection.
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

// admit counts a connection in; nil means that it is refused.
func (s *connections) admit(raw net.Conn) *connection {
	c := &connection{Conn: raw, of: s, host: addressOf(raw.RemoteAddr())}
	c.used.Store(time.Now().UnixNano())
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limits
	if planted.Is(planted.StrangersUncapped) {
		l.MaxStrangers, l.MaxStrangersPerAddress = -1, -1
	}
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

// over reports whether one more is more than most; a negative most is no limit.
func over(n, most int) bool { return most >= 0 && n >= most }

// strangersOf returns the strangers of an address, or all if host is empty. The lock is
// held.
func (s *connections) strangersOf(host string) (all []*connection) {
	for e := s.strangers.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*connection); host == "" || c.host == host {
			all = append(all, c)
		}
	}
	return all
}

// displace closes a stranger, of one address if host is not empty. It returns false if
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

// drop counts a connection out. The lock is held.
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

// reap closes strangers that have been idle for too long, until ctx ends.
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

// recognize notes that a call showed who makes it, or that it needs not.
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

// connectionOf returns the connection of a call, nil if the limits do not count it.
func connectionOf(ctx context.Context) *connection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	a, _ := p.Addr.(connectionAddr)
	return a.connection
}

// addressOf is an address without its port; empty if it is none of an IP network.
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
