//go:build unix

package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/tuner/study"
)

// group is the process group of a command, with its children.
type group struct{ id int }

// ownGroup makes the command the leader of a process group, so that it can be ended together
// with its children, and so that a Ctrl-C on the terminal reaches it only through the run.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

func groupOf(p *os.Process) (group, error) { return group{p.Pid}, nil }

func (g group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) }

func (g group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// end ends the children that the command left, and waits for their end. They get SIGTERM unless
// they were asked to end before, and SIGKILL after the time of grace.
func (g group) end(asked bool, grace time.Duration, now <-chan struct{}) {
	if !asked {
		g.terminate()
	}
	if g.leaves(grace, now) {
		g.kill()
		g.leaves(time.Second, nil) // some cannot be ended
	}
}

// leaves tells whether some are left after a time.
func (g group) leaves(limit time.Duration, now <-chan struct{}) bool {
	for over := time.Now().Add(limit); g.left(); {
		select {
		case <-now:
			return true
		case <-time.After(10 * time.Millisecond):
			if time.Now().After(over) {
				return true
			}
		}
	}
	return false
}

// left reaps the children, which may be those of this process if it is the first of a
// container, and tells whether some are left.
func (g group) left() bool {
	for {
		pid, _ := syscall.Wait4(-g.id, nil, syscall.WNOHANG, nil)
		if pid <= 0 {
			return syscall.Kill(-g.id, 0) == nil
		}
	}
}

// trialLock is a file that the processes of a trial keep locked. It names their machine and
// process group, for the next run if this one is killed and they are not. A lock without a file
// does nothing.
type trialLock struct{ file *os.File }

// lockTrial locks a trial, after it ended the processes that a killed run left.
func (r *run) lockTrial(t study.Trial) (l trialLock, err error) {
	if r.options.LogDir == "" {
		return l, nil
	}
	name := fmt.Sprintf("trial-%d.lock", t.Number)
	for {
		l.file, err = openPlain(r.options.LogDir, name, os.O_RDWR, 0o600)
		switch {
		case errors.Is(err, errNotPlain):
			return trialLock{}, err
		case err != nil:
			return trialLock{}, nil // a disk that is full, which the log says as well
		}
		if ok, err := atomicfile.Lock(l.file, true); ok || err != nil {
			_ = l.file.Truncate(0)
			return l, nil
		}
		err := r.endEarlier(t, l)
		l.file.Close()
		if err != nil {
			return trialLock{}, err
		}
		_ = os.Remove(filepath.Join(r.options.LogDir, name)) // a process that left the group may still hold it
	}
}

// endEarlier ends the processes of a killed run.
func (r *run) endEarlier(t study.Trial, l trialLock) error {
	place, id := "", 0
	text, _ := io.ReadAll(io.LimitReader(l.file, 1024))
	_, _ = fmt.Sscan(string(text), &place, &id) // which the run may have had no time to write
	if place != "" && place != here() {
		return fmt.Errorf("trial %d: %w, %s, since an earlier run; end its processes there, or wait for their end", t.Number, errElsewhere, place)
	}
	r.event(Event{Kind: Remark, Trial: t, Err: errors.New("it still has processes of an earlier run, which are ended first")})
	if id > 1 {
		group{id}.end(false, r.options.Grace, r.options.KillNow)
	}
	return nil
}

// here names this machine, or container.
func here() string {
	host, _ := os.Hostname()
	processes, _ := os.Readlink("/proc/self/ns/pid") // on Linux
	return cmp.Or(host, "?") + processes
}

// share passes the lock on to a command and its children.
func (l trialLock) share(cmd *exec.Cmd) {
	if l.file != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, l.file)
	}
}

// sign writes where the processes are.
func (l trialLock) sign(g group) {
	if l.file != nil {
		_, _ = fmt.Fprintln(l.file, here(), g.id)
	}
}

func (l trialLock) release() {
	if l.file != nil {
		_ = os.Remove(l.file.Name())
		l.file.Close()
	}
}
