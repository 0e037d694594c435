//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a process group of its own, so that it can be
// ended together with its children, and so that a Ctrl-C on the terminal reaches it only
// through the run.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// lockFile takes the lock on a file. ok is false if another process has it. The lock ends
// with the process at the latest.
func lockFile(f *os.File) (ok bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}
