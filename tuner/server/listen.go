package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// address is an address to listen on.
type address struct {
	network, where string
	remote         bool // other machines can reach it
}

// CheckAddress returns an error if an address is not host:port or unix:path.
func CheckAddress(where string) error {
	_, err := parseAddress(where)
	return err
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
		l, err := net.Listen(a.network, a.where)
		if errors.Is(err, syscall.EADDRINUSE) || runtime.GOOS == "windows" && errors.Is(err, wsaAddressInUse) {
			return nil, inUse(a.where)
		}
		return l, err
	}
	// Another process that begins to listen here has bound the socket, but does not listen
	// yet. It would look stale.
	if folder, err := os.Open(filepath.Dir(a.where)); err == nil { // else it has no lock
		if ok, err := lock(folder, folderTimeout); !ok {
			return nil, cmp.Or(err, fmt.Errorf("%w: the folder is locked by another process", inUse(a.where)))
		}
		defer folder.Close()
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
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return inUse(path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // a full queue of connections, for one
		return fmt.Errorf("%w: %w", inUse(path), err)
	}
	return os.Remove(path)
}

// folderTimeout is how long a server waits for others that begin to listen in the folder.
const folderTimeout = 2 * time.Second

// wsaAddressInUse is the error of Windows, for which package syscall has no name.
const wsaAddressInUse = syscall.Errno(10048)

// ErrAddressInUse is wrapped by the error of an address on which another process listens.
var ErrAddressInUse = errors.New("another process is listening")

func inUse(where string) error {
	return fmt.Errorf("%w on %s; stop it, or choose another address", ErrAddressInUse, where)
}

// Opened is what a server opens before it serves.
type Opened struct {
	Listener net.Listener   // on Options.Address
	Further  []net.Listener // on the further addresses of [Listen]
	Metrics  net.Listener   // on Options.MetricsAddress, or nil

	audit *os.File // or nil
}

// Close closes all of it. A second call has no effect.
func (o *Opened) Close() {
	for _, l := range append([]net.Listener{o.Listener, o.Metrics}, o.Further...) {
		if l != nil {
			l.Close()
		}
	}
	if o.audit != nil {
		o.audit.Close()
	}
}

// Listen listens on all addresses of the options and on further ones, and opens the audit
// file, for a server that is made later and serves with [Server.ServeOn]. It reads
// certificates and tokens, and returns the errors of [New] and [Server.Listen]. A command
// can call it before it creates a store.
func Listen(o Options, further ...string) (out *Opened, err error) {
	o.Registry, o.Logger = nil, slog.New(slog.DiscardHandler)
	s, err := New(nil, o)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	out = new(Opened)
	defer func() {
		if err != nil {
			out.Close()
			out = nil
		}
	}()
	if err := s.openRest(out); err != nil {
		return out, err
	}
	if out.Listener, err = s.Listen(); err != nil {
		return out, err
	}
	for _, where := range further {
		l, err := s.ListenAt(where)
		if err != nil {
			return out, err
		}
		out.Further = append(out.Further, l)
	}
	return out, nil
}

// openRest opens the audit file, and listens on the address of the metrics.
func (s *Server) openRest(o *Opened) (err error) {
	if o.Metrics, err = s.listenMetrics(); err != nil {
		return err
	}
	if s.options.AuditFile != "" {
		if o.audit, err = os.OpenFile(s.options.AuditFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return fmt.Errorf("the audit file: %w", err)
		}
	}
	return nil
}

// Listen listens on Options.Address. It refuses to do so if other machines could reach
// it without protection.
func (s *Server) Listen() (net.Listener, error) { return s.ListenAt(s.options.Address) }

// ListenAt is [Server.Listen] at another address.
func (s *Server) ListenAt(where string) (net.Listener, error) {
	a, err := parseAddress(where)
	if err != nil {
		return nil, err
	}
	if err := s.checkExposure(where, a.remote); err != nil {
		return nil, err
	}
	return a.listen()
}

// checkExposure refuses to serve other machines without encryption or without known callers.
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
	const identify, encrypt = "TokenFile or ClientCAFile", "CertFile and KeyFile"
	lacks, remedy := "TLS", encrypt
	switch {
	case o.tls():
		lacks, remedy = "authentication", identify
	case !o.closed():
		lacks, remedy = "TLS and authentication", encrypt+", and "+identify
	}
	return optionError("refusing to listen on %s without %s, because other machines can reach it; give %s, listen on 127.0.0.1, or allow it with InsecureAllowRemote", where, lacks, remedy)
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

// lock waits for the lock on an open file or folder, where the system has such locks. It
// closes the file if ok is false.
func lock(f *os.File, wait time.Duration) (ok bool, err error) {
	for limit := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		if ok, err = atomicfile.Lock(f, true); ok {
			return true, nil
		}
		if err != nil || time.Now().After(limit) {
			f.Close()
			return false, err
		}
	}
}
