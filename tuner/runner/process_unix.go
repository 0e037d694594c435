//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
	"time"
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
