package server

import (
	"net"
	"sync"
	"sync/atomic"
)

// hangUp keeps the accepted connections. Before gRPC stops, it waits for connections in
// a handshake, and a silent one would take until Limits.ConnectTimeout.
type hangUp struct {
	mu    sync.Mutex
	conns map[*heldConn]struct{}
}

// over returns a listener whose connections h keeps.
func (h *hangUp) over(l net.Listener) net.Listener { return &heldListener{l, h} }

// silent closes the connections on which nothing has arrived.
func (h *hangUp) silent() { h.close(func(c *heldConn) bool { return !c.heard.Load() }) }

// all closes all connections.
func (h *hangUp) all() { h.close(func(*heldConn) bool { return true }) }

func (h *hangUp) close(which func(*heldConn) bool) {
	h.mu.Lock()
	var conns []*heldConn
	for c := range h.conns {
		if which(c) {
			conns = append(conns, c)
		}
	}
	h.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

type heldListener struct {
	net.Listener
	held *hangUp
}

func (l *heldListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &heldConn{Conn: conn, held: l.held}
	l.held.mu.Lock()
	defer l.held.mu.Unlock()
	if l.held.conns == nil {
		l.held.conns = make(map[*heldConn]struct{})
	}
	l.held.conns[c] = struct{}{}
	return c, nil
}

type heldConn struct {
	net.Conn
	held  *hangUp
	heard atomic.Bool // something has arrived
}

func (c *heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

func (c *heldConn) Close() error {
	c.held.mu.Lock()
	delete(c.held.conns, c)
	c.held.mu.Unlock()
	return c.Conn.Close()
}
