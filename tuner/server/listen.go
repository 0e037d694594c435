package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// address is an address to listen on.
type address struct {
	network, where string
	remote         bool // other machines can reach it
}

// parseAddress parses host:port or unix:path. It looks up host names.
func parseAddress(s string) (address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return address{}, errors.New("unix: must be followed by a path, such as unix:/run/tuner.sock")
		}
		return address{network: "unix", where: path}, nil
	}
	tcp, err := net.ResolveTCPAddr("tcp", s)
	if err != nil {
		return address{}, fmt.Errorf("%q must be host:port or unix:path: %w", s, err)
	}
	return address{network: "tcp", where: tcp.String(), remote: !tcp.IP.IsLoopback()}, nil
}

func (a address) listen() (net.Listener, error) {
	if a.network != "unix" {
		return net.Listen(a.network, a.where)
	}
	if err := removeStale(a.where); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", a.where)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(a.where, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStale removes a socket that has no listener.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s exists and is not a socket; choose another path or remove it", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("another process is listening on %s", path)
	}
	return os.Remove(path)
}

// Listen listens on Options.Address. It refuses to do so if other machines could reach
// it without protection.
func (s *Server) Listen() (net.Listener, error) { return s.ListenAt(s.options.Address) }

// ListenAt is [Server.Listen] at another address.
func (s *Server) ListenAt(where string) (net.Listener, error) {
	a, err := s.allowed(where)
	if err != nil {
		return nil, err
	}
	return a.listen()
}

// allowed parses an address and refuses it if the server must not listen there.
func (s *Server) allowed(where string) (address, error) {
	a, err := parseAddress(where)
	if err != nil {
		return address{}, err
	}
	return a, s.checkExposure(where, a.remote)
}

// checkExposure refuses to serve other machines without encryption or without known
// callers.
func (s *Server) checkExposure(where string, remote bool) error {
	o := s.options
	if !remote || o.tls() && o.closed() {
		return nil
	}
	if o.InsecureAllowRemote {
		s.metrics.insecure.Set(1)
		s.log.Warn("INSECURE: other machines can reach this server without encryption or without authentication",
			"address", where, "tls", o.tls(), "authentication", o.closed())
		return nil
	}
	lacks := "TLS (a certificate and key)"
	switch {
	case o.tls():
		lacks = "tokens or client certificates"
	case !o.closed():
		lacks += " and tokens or client certificates"
	}
	return fmt.Errorf("refusing to listen on %s without %s, because other machines can reach it; configure them, listen on 127.0.0.1, or allow insecure remote access", where, lacks)
}

// remote reports whether other machines can reach a listener.
func remote(l net.Listener) bool {
	switch a := l.Addr().(type) {
	case *net.TCPAddr:
		return !a.IP.IsLoopback()
	case *net.UnixAddr:
		return false
	default:
		return a.Network() != "bufconn" // a pipe within the process
	}
}
