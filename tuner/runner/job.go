package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/tuner/study"
)

// job is a command that runs.
type job struct {
	group  group              // of a command
	asked  atomic.Bool        // the group was asked to end
	cancel context.CancelFunc // of a function, nil for a command
	done   chan struct{}      // closed when it has ended, with all of its group
	err    error              // the result of its end, set before done is closed
	last   lastLine           // of stderr
}

// lastLine remembers the last line that is not blank.
type lastLine struct {
	mu   sync.Mutex
	text string
}

func (l *lastLine) line(text string) {
	if text = strings.TrimSpace(text); text != "" {
		l.mu.Lock()
		l.text = text
		l.mu.Unlock()
	}
}

// errElsewhere refuses to start a trial that another machine still runs.
var errElsewhere = errors.New("another machine still runs it")

// start starts a trial's command.
func (r *run) start(t study.Trial, reading *reading) (*job, error) {
	log, err := r.openLog(t)
	if err != nil {
		return nil, err
	}
	read := reading.line
	if r.options.Result != "" {
		// A file from before the start of this trial is not its result.
		if err := os.Remove(r.resultFile(t)); err != nil && !errors.Is(err, os.ErrNotExist) {
			log.Close()
			return nil, err
		}
		read = func(text string) { // intermediate values still come from stdout
			if s := reading.parse(plain(text)); s.hasStep || s.infeasible != nil {
				reading.line(text)
			}
		}
	}
	j := &job{done: make(chan struct{})}
	stdout := &lines{f: read}
	if r.options.Func != nil {
		r.call(j, t, stdout, log)
		return j, nil
	}
	return j, r.execute(j, t, stdout, log)
}

// call runs the function in place of a command.
func (r *run) call(j *job, t study.Trial, stdout *lines, log *trialLog) {
	ctx, cancel := context.WithCancel(context.Background())
	j.cancel = cancel
	go func() {
		defer close(j.done)
		defer log.Close()
		defer cancel()
		j.err = r.options.Func(ctx, t, io.MultiWriter(stdout, log))
		stdout.flush()
	}()
}

// execute runs the command. Its children have the lock of the trial as well.
func (r *run) execute(j *job, t study.Trial, stdout *lines, log *trialLog) error {
	lock, err := r.lockTrial(t)
	if err != nil {
		log.Close()
		return err
	}
	args := r.command.Arguments(t)
	log.remark("trial %d, epoch %d, %s: %q", t.Number, t.Epoch, time.Now().Format(time.RFC3339), args)
	stderr := &lines{f: j.last.line}
	cmd := exec.Command(args[0], args[1:]...)
	// A command that sends heartbeats must not make the lease longer.
	lease := "TUNER_LEASE=" + r.options.Lease.String()
	cmd.Env = slices.Concat(os.Environ(), r.options.Env, r.command.Environment(t), []string{lease})
	cmd.Stdout = io.MultiWriter(stdout, log)
	cmd.Stderr = io.MultiWriter(stderr, log)
	cmd.WaitDelay = r.options.Grace // for the output of its children
	ownGroup(cmd)
	lock.share(cmd)
	started := make(chan error)
	go func() {
		// The system ends the command with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(j.done)
		defer log.Close()
		defer lock.release()
		err := cmd.Start()
		if err == nil {
			if j.group, err = groupOf(cmd.Process); err != nil {
				_ = cmd.Process.Kill() // and Wait returns
			}
			lock.sign(j.group)
		}
		started <- err
		if cmd.Process == nil {
			return
		}
		j.err = cmd.Wait()
		if errors.Is(j.err, exec.ErrWaitDelay) {
			j.err = nil // it exited with 0, and a child of it kept the pipe open
		}
		j.group.end(j.asked.Load(), r.options.Grace, r.options.KillNow)
		stdout.flush()
		stderr.flush()
		if j.err != nil {
			log.remark("%v", j.err)
		}
	}()
	if err := <-started; err != nil {
		<-j.done
		return fmt.Errorf("the command could not be started: %w", err)
	}
	return nil
}

// stop ends a job and waits for its end. It sends SIGTERM, and SIGKILL after the time of grace.
func (r *run) stop(j *job) {
	if j.cancel != nil {
		j.cancel()
		<-j.done
		return
	}
	j.asked.Store(true)
	j.group.terminate()
	select {
	case <-j.done:
	case <-time.After(r.options.Grace):
	case <-r.options.KillNow:
	}
	j.group.kill()
	<-j.done
}

// over tells whether the job has ended.
func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// exited tells whether the command ended by itself with a status.
func (j *job) exited(status int) bool {
	exit := (*exec.ExitError)(nil)
	return errors.As(j.err, &exit) && exit.ExitCode() == status
}

// signalled tells whether a signal ended the command that asks programs to end, or a program that
// the command called. A shell returns 128 and the number of the signal then.
func (j *job) signalled() bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(j.err, &exit) {
		return false
	}
	status := exit.ExitCode()
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		status = 128 + int(w.Signal())
	}
	return slices.Contains([]int{128 + int(syscall.SIGTERM), 128 + int(syscall.SIGINT), 128 + int(syscall.SIGHUP)}, status)
}

// lastWords is the last line of stderr.
func (j *job) lastWords() string {
	j.last.mu.Lock()
	defer j.last.mu.Unlock()
	return j.last.text
}

// complaint describes the failure of a command.
func (j *job) complaint() string {
	words := j.lastWords()
	if j.cancel != nil || words == "" {
		return j.err.Error()
	}
	return fmt.Sprintf("%s (%v)", words, j.err)
}
