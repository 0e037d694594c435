package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/storetest/longstudy"
	"golang.org/x/sys/unix"
)

// runProcess is tuner run in a process of its own.
type runProcess struct {
	*exec.Cmd
	stderr *bytes.Buffer
	done   chan struct{}
}

// startRun starts tuner run with a script for the shell in a folder.
func startRun(t *testing.T, dir, script string, flags ...string) *runProcess {
	t.Helper()
	return startRunUnder(t, nil, dir, script, flags...)
}

// startRunUnder starts tuner run by another program.
func startRunUnder(t *testing.T, under []string, dir, script string, flags ...string) *runProcess {
	t.Helper()
	p := prepareRun(t, under, dir, script, flags...)
	p.start(t)
	return p
}

func prepareRun(t *testing.T, under []string, dir, script string, flags ...string) *runProcess {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tuner := filepath.Join(dir, "tuner") // the name that testscript.Main goes by
	if err := os.Symlink(exe, tuner); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "space.yaml"), []byte("version: 1\nparameters:\n  x: {type: float, low: 0, high: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(under, []string{tuner, "run", "s", "--space", "space.yaml", "--minimize", "loss", "--max-trials", "1"}, flags, []string{"--", "sh", "-c", script})
	p := &runProcess{exec.Command(args[0], args[1:]...), new(bytes.Buffer), make(chan struct{})}
	p.Dir, p.Stderr, p.Env = dir, p.stderr, append(os.Environ(), "TUNER_DB="+filepath.Join(dir, "tuner.db"))
	return p
}

func (p *runProcess) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.done) }()
	t.Cleanup(func() { _ = p.Process.Kill(); <-p.done })
}

// ends waits for the end of a run with a status.
func (p *runProcess) ends(t *testing.T, status int) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Fatalf("the run goes on: %s", p.stderr)
	}
	if p.ProcessState.ExitCode() != status {
		t.Fatalf("the run ended with %s, not %d: %s", p.ProcessState, status, p.stderr)
	}
}

// pidIn waits for a file with the number of a process.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && strings.HasSuffix(string(text), "\n") {
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			return pid
		}
	}
	t.Fatalf("%s does not come", path)
	return 0
}

// lives tells whether a process is running. A zombie is not.
func lives(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !regexp.MustCompile(`\) [ZX] `).Match(text)
}

// mustEnd fails if a process still lives after a while.
func mustEnd(t *testing.T, what string, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); lives(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s still runs", what)
			return
		}
	}
}

// TestRunKilled kills a run whose command has children. The same command starts the trial again,
// and only when all processes of the first start have ended.
func TestRunKilled(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := t.TempDir()
	script := `if [ -e pid ]; then
	kill -0 $(cat pid) 2>/dev/null && [ "$(sed 's/.*) //;s/ .*//' /proc/$(cat pid)/stat)" != Z ] && : >twice
	echo loss=1
else
	(trap '' TERM; sleep 300 & wait; sleep 300) >/dev/null 2>&1 &
	echo $! >child; echo $$ >pid.new; mv pid.new pid; sleep 300
fi`
	p := startRun(t, dir, script)
	leader, child := pidIn(t, filepath.Join(dir, "pid")), pidIn(t, filepath.Join(dir, "child"))
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	mustEnd(t, "the command of a killed run", leader)
	again := startRun(t, dir, script, "--grace", "1s")
	again.ends(t, 0)
	if lives(child) {
		t.Error("a child of the first start still runs")
	}
	if _, err := os.Stat(filepath.Join(dir, "twice")); err == nil {
		t.Error("trial 0 ran twice at once")
	}
	if text := again.stderr.String(); !strings.Contains(text, "Trial 0: it still has processes of an earlier run, which are ended first") || !strings.Contains(text, "loss=1") {
		t.Errorf("the second run says %s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "s.logs", "*.lock")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestRunHangup closes the terminal of a run, which sends SIGHUP more than once. The commands end
// with their children, and the trial waits for the next run. Under nohup nothing happens.
func TestRunHangup(t *testing.T) {
	t.Parallel() // it waits more than it computes
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // so that runs do not ignore it if the test does
	defer signal.Stop(hangups)
	dir := t.TempDir()
	const script = `sleep 300 >/dev/null 2>&1 & echo $! >child; echo $$ >pid; wait`
	p := startRun(t, dir, script)
	leader, child := pidIn(t, filepath.Join(dir, "pid")), pidIn(t, filepath.Join(dir, "child"))
	for range 3 {
		if err := p.Process.Signal(syscall.SIGHUP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	p.ends(t, cli.ExitInterrupted)
	mustEnd(t, "the command", leader)
	mustEnd(t, "its child", child)
	if text := p.stderr.String(); !strings.Contains(text, "Left running: trial 0") {
		t.Errorf("the run says %s", text)
	}

	nohup := startRunUnder(t, []string{"nohup"}, t.TempDir(), `kill -HUP $PPID; echo loss=1`)
	nohup.ends(t, 0)
}

// TestRunEndsChildren checks that the end of a command ends the children it left, also if they
// ignore SIGTERM, and that those which end in time can do so.
func TestRunEndsChildren(t *testing.T) {
	t.Parallel() // it waits more than it computes
	for _, c := range []struct{ name, child, grace, wrote string }{
		{"deaf", `trap "" TERM; echo $$ >pid; while :; do sleep 1; done`, "100ms", ""},
		{"polite", `trap "echo well >end; exit" TERM; echo $$ >pid; while :; do sleep 0.1; done`, "1h", "well\n"},
	} {
		dir := t.TempDir()
		p := startRun(t, dir, "sh -c '"+c.child+"' >/dev/null 2>&1 &\nwhile ! [ -s pid ]; do sleep 0.01; done; echo loss=1", "--grace", c.grace)
		child := pidIn(t, filepath.Join(dir, "pid"))
		p.ends(t, 0)
		if lives(child) {
			t.Errorf("the %s child of a finished trial still runs", c.name)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "end")); string(text) != c.wrote {
			t.Errorf("the %s child wrote %q", c.name, text)
		}
	}
}

// TestRunFullLogDisk fills the disk of the logs. The trials are read to their end, with one
// warning, and their results are kept.
func TestRunFullLogDisk(t *testing.T) {
	t.Parallel() // it waits more than it computes
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	for name, fill := range map[string]int{"fills": 0, "full": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			logs := filepath.Join(dir, "logs")
			if err := os.Mkdir(logs, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("tmpfs", logs, "tmpfs", 0, "size=64k"); err != nil {
				t.Skipf("a small disk cannot be mounted: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(logs, 0) })
			_ = os.WriteFile(filepath.Join(logs, "big"), make([]byte, fill), 0o600) // as far as it goes
			p := startRun(t, dir, `i=0; while [ $i -lt 3000 ]; do echo "a line of output that is rather long, number $i"; i=$((i+1)); done; echo loss=0.25`, "--log-dir", "logs", "-j", "2", "--max-trials", "4")
			p.ends(t, 0)
			text := p.stderr.String()
			if n := strings.Count(text, "is cut, and the trial continues"); n != 1 {
				t.Errorf("%d warnings: %s", n, text)
			}
			if n := strings.Count(text, "loss=0.25"); n < 4 || strings.Contains(text, "failed") {
				t.Errorf("the results are %s", text)
			}
		})
	}
}

// TestRunMaxLog limits the log of a trial, also over its starts. The result behind the limit is
// read, and the log says that it is cut.
func TestRunMaxLog(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := t.TempDir()
	p := startRun(t, dir, `i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; echo loss=0.25; exit 3`, "--max-log", "4096", "--max-trials", "3", "--max-retries", "1")
	<-p.done
	info, err := os.Stat(filepath.Join(dir, "s.logs", "trial-0.log"))
	if err != nil || info.Size() > 4096+1000 {
		t.Fatalf("the log is %v, %v", info, err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "s.logs", "trial-0.log"))
	if !strings.Contains(string(text), "line 100\n") || !strings.HasSuffix(string(text), "# the output beyond 4096 bytes is not kept (--max-log)\n# exit status 3\n") {
		t.Errorf("the log ends with %q", text[max(0, len(text)-300):])
	}
}

// TestReaderStuck lets nothing read the log of a server. It answers, and when the log is read
// again, it says how many lines are missing.
func TestReaderStuck(t *testing.T) {
	t.Parallel() // it waits more than it computes
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	c := startChild(t, dir, func(c *exec.Cmd) { c.Stderr = w }, "--listen", "unix:a.sock", "--http", "unix:b.sock", "-vv")
	w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Process.Kill() })() // a server that waits would hold the calls for ever
	for range 100 {                                                 // each writes lines to the log
		if got := list(t, dir, c.state.HTTP); !strings.HasPrefix(got, "200 ") {
			t.Fatalf("with a log that nothing reads: %s", got)
		}
	}
	said := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "lines were lost here, because the reader of this log did not read") {
				said <- true
				return
			}
		}
		said <- false
	}()
	for { // the log says it before the next line that it writes
		select {
		case yes := <-said:
			if !yes {
				t.Error("the log does not say that lines are missing")
			}
			return
		case <-time.After(10 * time.Millisecond):
			list(t, dir, c.state.HTTP)
		}
	}
}

// TestReaderGone reads one line of what a server and a run print, and closes the pipe, as head
// does. Both continue, and so does the command of the run.
func TestReaderGone(t *testing.T) {
	t.Parallel() // it waits more than it computes
	head := func(cmd *exec.Cmd) (read func()) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = w, w
		t.Cleanup(func() { r.Close() })
		return func() {
			w.Close()
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
			r.Close()
		}
	}
	dir, read := shortDir(t), func() {}
	c := startChild(t, dir, func(c *exec.Cmd) { read = head(c) }, "--listen", "unix:a.sock", "--http", "unix:b.sock", "-vv")
	read()
	for range 20 { // each writes lines to the log
		if got := list(t, dir, c.state.HTTP); !strings.HasPrefix(got, "200 ") {
			t.Fatalf("without a reader of the log: %s", got)
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.ends(t)

	dir = t.TempDir()
	p := prepareRun(t, nil, dir, `yes | head -1 >said; while ! [ -e go ]; do sleep 0.01; done; echo loss=0.5; echo $$ >pid`, "--max-trials", "5", "-v")
	read = head(p.Cmd)
	p.start(t)
	read()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-p.done
	if p.ProcessState.ExitCode() < 0 {
		t.Errorf("the run ended with %s", p.ProcessState)
	}
	if ran, _ := filepath.Glob(filepath.Join(dir, "s.logs", "trial-*.log")); len(ran) != 5 {
		t.Errorf("%d of 5 trials ran", len(ran))
	}
	if log, _ := os.ReadFile(filepath.Join(dir, "s.logs", "trial-0.log")); strings.Contains(string(log), "Broken pipe") {
		t.Errorf("the command inherits that SIGPIPE has no effect: %s", log)
	}
}

// TestServedFileRemoved removes the file of a server and stops the server at once, before it has
// noticed. The exit status says that the data are gone.
func TestServedFileRemoved(t *testing.T) {
	t.Parallel() // it waits more than it computes
	for name, do := range map[string]func(db string) error{
		"removed":  os.Remove,
		"renamed":  func(db string) error { return os.Rename(db, db+".old") },
		"replaced": func(db string) error { return errors.Join(os.Remove(db), os.WriteFile(db, []byte("x"), 0o600)) },
		"left":     func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			db := filepath.Join(dir, "tuner.db")
			c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--db", db)
			if err := errors.Join(do(db), c.Process.Signal(syscall.SIGTERM)); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			want := cli.ExitFailure
			if name == "left" {
				want = 0
			}
			if status := c.ProcessState.ExitCode(); status != want || want != 0 && !strings.Contains(c.stderr.String(), "at this path now") {
				t.Errorf("the server ended with %d and said %s", status, c.stderr)
			}
		})
	}
}

// TestCopiesAreSwept kills compactions and restores until they leave a copy. The next command that
// opens the file, and the next of the same kind, removes it.
func TestCopiesAreSwept(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := t.TempDir()
	db := filepath.Join(dir, "tuner.db")
	st, err := bolt.Open(db, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	longstudy.Fill(t, st, "s", "sobol", 5000, 8)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(exe, args...)
		cmd.Args[0], cmd.Dir, cmd.Env = "tuner", dir, append(os.Environ(), "TUNER_DB="+db)
		return cmd
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	must("backup", "copy.db")
	copies := func() int {
		left, _ := os.ReadDir(dir)
		return len(left) - 2 // besides the file and the backup
	}
	leave := func(args ...string) {
		t.Helper()
		for range 100 {
			cmd := command(args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { _ = cmd.Wait(); close(done) }()
			for wait := true; wait && copies() == 0; {
				select {
				case <-done:
					wait = false
				case <-time.After(100 * time.Microsecond):
				}
			}
			_ = cmd.Process.Kill()
			<-done
			if n := copies(); n > 0 {
				return
			}
		}
		t.Fatalf("no %v left a copy: this was no test", args)
	}
	// A forced restore keeps the old file, so the file is away for it.
	restore := []string{"restore", "copy.db", "--db", filepath.Join(dir, "r.db")}
	for _, c := range []struct{ killed, next []string }{
		{[]string{"compact"}, []string{"ask", "s"}},
		{[]string{"compact"}, []string{"compact"}},
		{restore, restore},
	} {
		leave(c.killed...)
		must(c.next...)
		_ = os.Remove(filepath.Join(dir, "r.db"))
		if n := copies(); n != 0 {
			left, _ := os.ReadDir(dir)
			t.Errorf("after a killed %v and %v there are %v", c.killed, c.next, left)
		}
	}
}
