package runner

import (
	"os"
	"os/exec"
	"time"
	"unsafe"

	"github.com/bkbtuner/bkb/tuner/study"
	"golang.org/x/sys/windows"
)

// group is a command with its children, in a job object. The system ends them when this
// process ends.
type group struct{ job windows.Handle }

func ownGroup(*exec.Cmd) {}

func groupOf(p *os.Process) (g group, err error) {
	if g.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return g, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(g.job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return g, err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return g, err
	}
	defer windows.CloseHandle(process)
	return g, windows.AssignProcessToJobObject(g.job, process)
}

func (g group) terminate() { g.kill() }

func (g group) kill() { _ = windows.TerminateJobObject(g.job, 1) }

// end ends what is left of the group.
func (g group) end(bool, time.Duration, <-chan struct{}) {
	g.kill()
	_ = windows.CloseHandle(g.job)
}

// trialLock is not needed, as no process of a trial survives the run.
type trialLock struct{}

func (*run) lockTrial(study.Trial) (trialLock, error) { return trialLock{}, nil }
func (trialLock) share(*exec.Cmd)                     {}
func (trialLock) sign(group)                          {}
func (trialLock) release()                            {}
