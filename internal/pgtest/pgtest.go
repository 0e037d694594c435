// Package pgtest gives tests a real PostgreSQL server. It uses the one at the address
// BKB_POSTGRES, or starts one for the test binary from the programs that it finds in PATH or in
// the folders of Debian. Without these the tests skip, unless BKB_POSTGRES_MUST is set.
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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// LockedUser is a role of started servers that needs a password. All other roles of this
// machine need none.
const LockedUser = "locked"

// Main runs the tests and stops the server that they started.
func Main(m *testing.M) int {
	racetest.Waiting()
	code := m.Run()
	if started != nil {
		started.Stop()
	}
	return code
}

var started *Server

// base is the address of the database that tests share. A server that is started for it
// does not sync, because no test of it cuts the power.
var base = sync.OnceValues(func() (address string, err error) {
	if address = os.Getenv("BKB_POSTGRES"); address != "" {
		return address, nil
	}
	if started, err = Start("fsync = off", "full_page_writes = off"); err != nil {
		return "", err
	}
	return started.Address(), nil
})

// Shared returns the server that tests share, or one of the test's own if that is none that
// tests started.
func Shared(t testing.TB) *Server {
	t.Helper()
	if Base(t); started != nil {
		return started
	}
	s, err := Start("fsync = off")
	if err != nil {
		Skip(t, err)
	}
	t.Cleanup(s.Stop)
	return s
}

var schemas atomic.Int64

// Address returns the address of a schema that no other test uses. It has no tables.
func Address(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(Base(t))
	if err != nil {
		t.Fatal("BKB_POSTGRES is not a URL")
	}
	q := u.Query()
	q.Set("schema", fmt.Sprintf("test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli(), schemas.Add(1)))
	u.RawQuery = q.Encode()
	return u.String()
}

// Base returns the address of a database that tests share.
func Base(t testing.TB) string {
	t.Helper()
	address, err := base()
	if err != nil {
		Skip(t, err)
	}
	return address
}

// Available tells whether this machine has the programs of PostgreSQL, or there must be a server.
func Available() bool {
	_, err := programs()
	return err == nil || os.Getenv("BKB_POSTGRES_MUST") != ""
}

// Skip skips a test for which no server could be started, or fails it if there must be one.
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
	place
	Env []string // of its processes, besides that of this one

	bin  string // folder of the programs, with the separator at its end
	cmd  *exec.Cmd
	hold io.WriteCloser // the server ends when it is closed, also by the end of this process
}

// place is a folder that belongs to the user of the programs, and a free port.
type place struct {
	Dir  string
	Port int
}

func newPlace() (p place, err error) {
	if p.Dir, err = os.MkdirTemp("", "bkb-postgres-"); err != nil {
		return p, err
	}
	if p.Port, err = freeport.Get(); err == nil {
		err = give(p.Dir)
	}
	return p, err
}

// Address returns the address of the server's database.
func (p place) Address() string {
	return fmt.Sprintf("postgres://bkb@127.0.0.1:%d/postgres", p.Port)
}

// write writes a file of the folder, as one of the user of the programs.
func (p place) write(name string, b []byte) (path string, err error) {
	path = filepath.Join(p.Dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	return path, errors.Join(os.WriteFile(path, b, 0o600), give(path))
}

func (p place) clean() { _ = os.RemoveAll(p.Dir) }

// await waits until something is ready, for at most a minute.
func await(ready func() bool) bool {
	for begun := time.Now(); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			return false
		}
	}
	return true
}

// Start makes and starts a server. settings are lines for postgresql.conf.
func Start(settings ...string) (*Server, error) {
	return newServer(func(s *Server) error {
		if err := s.tool("initdb", "-D", s.data(), "-A", "trust", "-U", "bkb", "-E", "UTF8", "--no-locale", "-N"); err != nil {
			return err
		}
		rules, err := os.ReadFile(filepath.Join(s.data(), "pg_hba.conf"))
		if err != nil {
			return err
		}
		_, err = s.write("data/pg_hba.conf", append([]byte("host all "+LockedUser+" 127.0.0.1/32 scram-sha-256\n"), rules...))
		return errors.Join(err, s.Configure(settings...))
	})
}

// newServer starts a server whose data fill makes.
func newServer(fill func(s *Server) error) (*Server, error) {
	s := &Server{}
	var err error
	if s.bin, err = programs(); err != nil {
		return nil, err
	}
	if s.place, err = newPlace(); err == nil {
		err = fill(s)
	}
	if err == nil {
		err = s.Run()
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// programs is the folder of initdb, pg_ctl and postgres.
func programs() (string, error) {
	path, err := exec.LookPath("initdb")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		newest := 0
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		for _, f := range found {
			if version, _ := strconv.Atoi(strings.Split(f, "/")[4]); version >= newest {
				newest, path = version, f
			}
		}
		if len(found) == 0 {
			return "", ErrNone
		}
	}
	return filepath.Dir(path) + "/", nil
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

// Exec runs a statement.
func (s *Server) Exec(sql string) error {
	return s.tool("psql", "-h", s.Dir, "-p", strconv.Itoa(s.Port), "-U", "bkb", "-Atc", sql, "postgres")
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
	if await(func() bool {
		state, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		lines := strings.Split(string(state), "\n")
		return len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
	}) {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	return fmt.Errorf("the server does not start: %s", text)
}

// Kill ends the server as a crash would.
func (s *Server) Kill() { s.end("") }

// Shutdown ends the server and its sessions in order.
func (s *Server) Shutdown() { s.end("INT\n") }

func (s *Server) end(how string) {
	if s.hold != nil {
		_, _ = io.WriteString(s.hold, how)
		_ = s.hold.Close()
		_ = s.cmd.Wait()
		s.hold = nil
	}
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	s.Kill()
	s.clean()
}

// Standby makes and starts a server that follows this one. name is what
// synchronous_standby_names calls it.
func (s *Server) Standby(name string) (*Server, error) {
	return newServer(func(b *Server) error { return b.copyOf(s, name) })
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

// Secure gives a server that is stopped a certificate with its key and the CA of its
// clients, and replaces the rules of pg_hba.conf.
func (s *Server) Secure(certFile, keyFile, caFile string, rules ...string) error {
	for name, from := range map[string]string{"server.crt": certFile, "server.key": keyFile, "root.crt": caFile} {
		b, err := os.ReadFile(from)
		if err == nil {
			_, err = s.write("data/"+name, b)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.write("data/pg_hba.conf", []byte(strings.Join(rules, "\n")+"\n"))
	return errors.Join(err, s.Configure("ssl = on", "ssl_ca_file = 'root.crt'"))
}

// Require lets commits wait until a standby has them, and waits until it follows.
func (s *Server) Require(name string) error {
	err := s.Set("synchronous_standby_names = '" + name + "'")
	if err == nil && !await(func() bool { // the statement fails for 1/0
		err = s.Exec("SELECT 1 / count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'")
		return err == nil
	}) {
		return fmt.Errorf("the standby %s does not follow: %w", name, err)
	}
	return err
}

// Pooler is a PgBouncer in front of a server.
type Pooler struct {
	place
	cmd *exec.Cmd
}

// ErrNoPooler is wrapped by the error for a machine without PgBouncer.
var ErrNoPooler = fmt.Errorf("PgBouncer is not installed (apt-get install pgbouncer): %w", ErrNone)

// Pool starts a PgBouncer with a pool mode in front of a server.
func (s *Server) Pool(mode string) (*Pooler, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; exec.Command(program, "--version").Run() != nil {
			return nil, ErrNoPooler
		}
	}
	p := &Pooler{}
	if p.place, err = newPlace(); err != nil {
		return nil, err
	}
	path, err := p.write("pgbouncer.ini", fmt.Appendf(nil, "[databases]\npostgres = host=127.0.0.1 port=%d dbname=postgres user=bkb\n[pgbouncer]\n"+
		"listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 4\n", s.Port, p.Port, mode))
	if err != nil {
		p.clean()
		return nil, err
	}
	p.cmd = exec.Command(program, path)
	return p, p.Run()
}

// Run starts the pooler and waits until it accepts connections.
func (p *Pooler) Run() error {
	p.cmd = exec.Command(p.cmd.Path, p.cmd.Args[1:]...)
	var log strings.Builder
	p.cmd.Dir, p.cmd.Stderr = p.Dir, &log
	demote(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	if await(func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)))
		return err == nil && conn.Close() == nil
	}) {
		return nil
	}
	p.Kill()
	return fmt.Errorf("PgBouncer does not start: %s", log.String())
}

// Kill ends the pooler as a crash would.
func (p *Pooler) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// Stop ends the pooler and removes its files.
func (p *Pooler) Stop() {
	p.Kill()
	p.clean()
}
