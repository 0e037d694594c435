package server

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// countingListener counts open connections.
type countingListener struct {
	net.Listener
	open prometheus.Gauge
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Inc()
	return &countedConn{Conn: c, closed: sync.OnceFunc(l.open.Dec)}, nil
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
