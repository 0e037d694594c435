// Package pgtest gives tests a real PostgreSQL server. It uses the one at the address
// BKB_POSTGRES, or starts one for the test binary from the programs that it finds in
// PATH or in the folders of Debian. Without these the tests skip, unless
// BKB_POSTGRES_MUST is set.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
package pgtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// LockedUser is a role of started servers that needs [LockedPassword]. All other roles
// of this machine need none.
const (
	LockedUser     = "locked"
	LockedPassword = "hunter2"
)

// Main runs the tests and stops the server that they started.
func Main(m *testing.M) int {
	code := m.Run()
	if shared.started != nil {
		shared.started.Stop()
	}
	return code
}

var shared struct {
	once    sync.Once
	started *Server
	address string
	err     error
}

var schemas atomic.Int64

// Address returns the address of a schema that no other test uses. It has no tables.
func Address(t testing.TB) string {
	t.Helper()
	base := Base(t)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("BKB_POSTGRES is not a URL")
	}
	q := u.Query()
	q.Set("schema", fmt.Sprintf("test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli(), schemas.Add(1)))
	u.RawQuery = q.Encode()
	return u.String()
}

// Base returns the address of a database that tests share. A server that was started
// for it does not sync, because no test of it cuts the power.
func Base(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		if shared.address = os.Getenv("BKB_POSTGRES"); shared.address != "" {
			return
		}
		if shared.started, shared.err = Start("fsync = off", "full_page_writes = off"); shared.err == nil {
			shared.address = shared.started.Address()
		}
	})
	if shared.err != nil {
		Skip(t, shared.err)
	}
	return shared.address
}

// Available tells whether this machine has the programs of PostgreSQL, or there must be
// a server.
func Available() bool {
	_, err := programs()
	return err == nil || os.Getenv("BKB_POSTGRES_MUST") != ""
}

// Skip skips a test for which no server could be started, or fails it if there must be
// one.
func Skip(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("BKB_POSTGRES_MUST") != "" || !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Long skips a test that takes long with a database, unless BKB_LONG is set.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("BKB_LONG") == "" {
		t.Skip("half a minute; make postgres runs it, and make postgres-ci does for CI")
	}
}

// ErrNone is wrapped by the error for a machine without the programs of PostgreSQL.
var ErrNone = errors.New("PostgreSQL is not installed (apt-get install postgresql), and BKB_POSTGRES is not set")

// Server is a server that a test started.
type Server struct {
	Dir  string // of its data
	Port int
	Env  []string // of its processes, besides that of this one

	bin  string // folder of the programs, with the separator at its end
	cmd  *exec.Cmd
	hold io.Closer // the server ends when it is closed, also by the end of this process
}

// Start makes and starts a server. settings are lines for postgresql.conf.
func Start(settings ...string) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := s.tool("initdb", "-D", s.data(), "-A", "trust", "-U", "bkb", "-E", "UTF8", "--no-locale", "-N"); err != nil {
		return nil, errors.Join(err, s.clean())
	}
	hba := filepath.Join(s.data(), "pg_hba.conf")
	old, err := os.ReadFile(hba)
	if err != nil {
		return nil, errors.Join(err, s.clean())
	}
	if err := os.WriteFile(hba, append([]byte("host all "+LockedUser+" 127.0.0.1/32 scram-sha-256\n"), old...), 0o600); err != nil {
		return nil, errors.Join(err, s.clean())
	}
	if err := s.Configure(settings...); err != nil {
		return nil, errors.Join(err, s.clean())
	}
	return s, s.Run()
}

// newServer finds the programs and reserves a folder and a port.
func newServer() (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bkb-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, bin: bin}
	if err := give(dir); err != nil {
		return nil, errors.Join(err, s.clean())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.clean())
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	return s, l.Close()
}

// programs is the folder of initdb, pg_ctl and postgres.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path) + "/", nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", ErrNone
	}
	slices.SortFunc(found, func(a, b string) int { // by the number of the version
		number := func(path string) int {
			n, _ := strconv.Atoi(strings.Split(path, "/")[4])
			return n
		}
		return number(a) - number(b)
	})
	return filepath.Dir(found[len(found)-1]) + "/", nil
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// Configure adds lines to postgresql.conf.
func (s *Server) Configure(settings ...string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n", strings.Join(settings, "\n"))
	return errors.Join(err, f.Close())
}

// Set adds lines to postgresql.conf while the server runs.
func (s *Server) Set(settings ...string) error {
	if err := s.Configure(settings...); err != nil {
		return err
	}
	return s.tool("pg_ctl", "reload", "-D", s.data())
}

// Address returns the address of the server's database.
func (s *Server) Address() string {
	return fmt.Sprintf("postgres://bkb@127.0.0.1:%d/postgres", s.Port)
}

// tool runs a program of PostgreSQL to its end.
func (s *Server) tool(name string, args ...string) error {
	cmd := exec.Command(s.bin+name, args...)
	demote(cmd)
	cmd.Dir = s.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Run starts the server and waits until it accepts connections.
func (s *Server) Run() error {
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// The shell ends the server when the pipe closes, however this process ends.
	s.cmd = exec.Command("/bin/sh", "-c", `"$0" "$@" & read -r how; kill -"${how:-QUIT}" $!; wait $!`,
		s.bin+"postgres", "-D", s.data(), "-p", strconv.Itoa(s.Port), "-h", "127.0.0.1", "-k", s.Dir, "-c", "max_connections=200")
	demote(s.cmd)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.Env = s.Dir, log, log, append(os.Environ(), s.Env...)
	if s.hold, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		state, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		if lines := strings.Split(string(state), "\n"); len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		if time.Since(begun) > time.Minute {
			text, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
			s.Stop()
			return fmt.Errorf("the server does not start: %s", text)
		}
	}
}

// Kill ends the server as a crash would.
func (s *Server) Kill() { s.end("") }

// Shutdown ends the server and its sessions in order.
func (s *Server) Shutdown() { s.end("INT\n") }

func (s *Server) end(how string) {
	if s.hold == nil {
		return
	}
	_, _ = io.WriteString(s.hold.(io.Writer), how)
	_ = s.hold.Close()
	_ = s.cmd.Wait()
	s.hold = nil
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	s.Kill()
	_ = s.clean()
}

func (s *Server) clean() error { return os.RemoveAll(s.Dir) }

// Standby makes and starts a server that follows this one. name is what
// synchronous_standby_names calls it.
func (s *Server) Standby(name string) (*Server, error) {
	b, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := b.copyOf(s, name); err != nil {
		return nil, errors.Join(err, b.clean())
	}
	return b, b.Run()
}

// Promote makes a standby a primary.
func (s *Server) Promote() error { return s.tool("pg_ctl", "promote", "-w", "-D", s.data()) }

// Follow makes a server that was stopped follow another one, at its own port and without
// its old data.
func (s *Server) Follow(primary *Server, name string) error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	if err := s.copyOf(primary, name); err != nil {
		return err
	}
	return s.Run()
}

// copyOf makes the data of a standby. It looks for a primary that was away every 200 ms, and
// not only every 5 s, because commits wait for it.
func (s *Server) copyOf(primary *Server, name string) error {
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=bkb application_name=%s", primary.Port, name)
	err := s.tool("pg_basebackup", "-d", from, "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "-N")
	if err != nil {
		return err
	}
	return s.Configure("wal_retrieve_retry_interval = '200ms'")
}

// CreateRole makes a role that can connect.
func (s *Server) CreateRole(name string) error {
	return s.tool("createuser", "-h", s.Dir, "-p", strconv.Itoa(s.Port), "-U", "bkb", name)
}

// Secure gives a server that is stopped a certificate with its key and the CA of its
// clients, and replaces the rules of pg_hba.conf.
func (s *Server) Secure(certFile, keyFile, caFile string, rules ...string) error {
	for name, from := range map[string]string{"server.crt": certFile, "server.key": keyFile, "root.crt": caFile} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = s.replace(name, b)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(s.replace("pg_hba.conf", []byte(strings.Join(rules, "\n")+"\n")),
		s.Configure("ssl = on", "ssl_ca_file = 'root.crt'"))
}

// replace writes a file of the server.
func (s *Server) replace(name string, b []byte) error {
	path := filepath.Join(s.data(), name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return errors.Join(os.WriteFile(path, b, 0o600), give(path))
}

// Require lets commits wait until a standby has them, and waits until it follows.
func (s *Server) Require(name string) error {
	if err := s.Set("synchronous_standby_names = '" + name + "'"); err != nil {
		return err
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		cmd := exec.Command(s.bin+"psql", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", "bkb", "-At", "postgres",
			"-c", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'")
		out, err := cmd.CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == "1" {
			return nil
		}
		if time.Since(begun) > time.Minute {
			return fmt.Errorf("the standby %s does not follow: %w: %s", name, err, out)
		}
	}
}
