package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// address is where to listen.
type address struct {
	network, where string
	remote         bool // others than this machine's users can reach it
}

// parseAddress understands host:port and unix:path. It looks up names.
func parseAddress(s string) (address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return address{}, errors.New("unix: must be followed by a path")
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

// removeStale removes a socket that nobody listens on any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s exists and is no socket", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("somebody is listening on %s", path)
	}
	return os.Remove(path)
}

// Listen listens on Options.Address, unless others could reach it there without
// protection.
func (s *Server) Listen() (net.Listener, error) { return s.ListenAt(s.options.Address) }

// ListenAt is Listen at another address.
func (s *Server) ListenAt(where string) (net.Listener, error) {
	a, err := s.allowed(where)
	if err != nil {
		return nil, err
	}
	return a.listen()
}

// allowed reads an address and refuses one where the server must not listen.
func (s *Server) allowed(where string) (address, error) {
	a, err := parseAddress(where)
	if err != nil {
		return address{}, err
	}
	return a, s.checkExposure(where, a.remote)
}

// checkExposure refuses to serve in the clear or without knowing callers where
// others can reach the server.
func (s *Server) checkExposure(where string, remote bool) error {
	o := s.options
	if !remote || o.tls() && o.closed() {
		return nil
	}
	if o.InsecureAllowRemote {
		s.metrics.insecure.Set(1)
		s.log.Warn("INSECURE: others can reach this server without encryption or without showing who they are",
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
	return fmt.Errorf("refusing to listen on %s, where others can reach it, without %s: give them, listen on 127.0.0.1, or allow insecure remote access", where, lacks)
}

// remote tells whether others than this machine's users can reach a listener.
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
