package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Pooler is a PgBouncer in front of a server.
type Pooler struct {
	Port int

	dir string
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
	if p.dir, err = os.MkdirTemp("", "bkb-pgbouncer-"); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, p.clean())
	}
	p.Port = l.Addr().(*net.TCPAddr).Port
	settings := fmt.Sprintf("[databases]\npostgres = host=127.0.0.1 port=%d dbname=postgres user=bkb\n[pgbouncer]\n"+
		"listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 4\n", s.Port, p.Port, mode)
	path := filepath.Join(p.dir, "pgbouncer.ini")
	err = errors.Join(l.Close(), os.WriteFile(path, []byte(settings), 0o600), give(p.dir), give(path))
	if err != nil {
		return nil, errors.Join(err, p.clean())
	}
	p.cmd = exec.Command(program, path)
	return p, p.Run()
}

// Run starts the pooler and waits until it accepts connections.
func (p *Pooler) Run() error {
	cmd := exec.Command(p.cmd.Path, p.cmd.Args[1:]...)
	var log strings.Builder
	cmd.Dir, cmd.Stderr = p.dir, &log
	demote(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)))
		if err == nil {
			return conn.Close()
		}
		if time.Since(begun) > time.Minute {
			p.Kill()
			return fmt.Errorf("PgBouncer does not start: %w: %s", err, log.String())
		}
	}
}

// Address returns the address of the server's database through the pooler.
func (p *Pooler) Address() string {
	return fmt.Sprintf("postgres://bkb@127.0.0.1:%d/postgres", p.Port)
}

// Kill ends the pooler as a crash would.
func (p *Pooler) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// Stop ends the pooler and removes its files.
func (p *Pooler) Stop() {
	p.Kill()
	_ = p.clean()
}

func (p *Pooler) clean() error { return os.RemoveAll(p.dir) }
