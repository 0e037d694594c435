//go:build linux

package torture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/client"
)

// serving is the real program while it serves.
type serving struct {
	cmd     *exec.Cmd
	address string
	started time.Time
	ready   time.Time
	drained chan struct{} // closed when its log has ended
}

// serve runs `tuner serve` on a file, possibly under another program, and waits until
// it listens.
func serve(t testing.TB, db string, log io.Writer, under []string) (*serving, error) {
	t.Helper()
	return serveAt(t, db, "unix:"+filepath.Join(filepath.Dir(db), "s"), log, under)
}

// serveAt is serve at a given address.
func serveAt(t testing.TB, db, address string, log io.Writer, under []string, flags ...string) (*serving, error) {
	t.Helper()
	_ = os.Remove(strings.TrimPrefix(address, "unix:"))
	return begin(t, address, log, under, append([]string{"--db", db}, flags...)...)
}

// begin is serveAt on the store that the flags name.
func begin(t testing.TB, address string, log io.Writer, under []string, flags ...string) (*serving, error) {
	t.Helper()
	s := &serving{address: address, drained: make(chan struct{})}
	args := append(append([]string{}, under...), tunerBinary(t), "serve", "--listen", s.address, "--rate", "-1")
	args = append(args, flags...)
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = append(os.Environ(), "TUNER_TOKENS=", "TUNER_TOKEN=", "TUNER_SERVER=", "TUNER_STORE=")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	s.started = time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan bool, 1)
	go func() {
		defer close(s.drained)
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			_, _ = io.WriteString(log, line)
			if strings.HasPrefix(line, "Listening on ") {
				listening <- true
			}
			if err != nil {
				close(listening)
				return
			}
		}
	}()
	if !<-listening {
		return nil, fmt.Errorf("the server ended without listening: %w", s.cmd.Wait())
	}
	s.ready = time.Now()
	return s, nil
}

// kill ends the server, and the program above it, without warning.
func (s *serving) kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.drained
	_ = s.cmd.Wait()
}

// wait waits for the end of the server, and kills it after a time limit.
func (s *serving) wait(limit time.Duration) (ended bool, err error) {
	timer := time.AfterFunc(limit, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	<-s.drained
	err = s.cmd.Wait()
	return timer.Stop(), err
}

// dial returns a client that makes each call once.
func (s *serving) dial(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.Dial(s.address, client.Options{Plaintext: true, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkFile runs `tuner check`.
func checkFile(t testing.TB, db string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, tunerBinary(t), "check", db).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) || err != nil {
		return fmt.Errorf("tuner check: %w\n%s", err, out)
	}
	return nil
}
