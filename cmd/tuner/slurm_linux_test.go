package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slurm is a Slurm of one node in a folder.
type slurm struct {
	t   *testing.T
	dir string
	env []string
}

// startSlurm starts Slurm, or skips the test where that cannot be done.
func startSlurm(t *testing.T) *slurm {
	t.Helper()
	if os.Getenv("BKB_SLURM") == "" {
		t.Skip("starts Slurm; make slurm runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd needs root; sudo make slurm runs it")
	}
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "squeue", "sinfo"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: apt-get install slurmctld slurmd slurm-client munge", program)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	dir := t.TempDir()
	c := &slurm{t: t, dir: dir, env: append(os.Environ(), "SLURM_CONF="+filepath.Join(dir, "slurm.conf"))}
	for _, folder := range []string{"state", "spool", "munge"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.write("munge.key", rand.Text()+rand.Text()+rand.Text(), 0o400)
	socket := filepath.Join(dir, "munge", "socket")
	c.write("slurm.conf", fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]s
SlurmdPort=%[3]s
AuthType=auth/munge
AuthInfo=socket=%[4]s
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[5]s/state
SlurmdSpoolDir=%[5]s/spool
SlurmctldPidFile=%[5]s/slurmctld.pid
SlurmdPidFile=%[5]s/slurmd.pid
SlurmctldLogFile=%[5]s/slurmctld.log
SlurmdLogFile=%[5]s/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP
`, host, freePort(t), freePort(t), socket, dir), 0o644)
	c.start("munged", "--foreground", "--force", "--socket", socket, "--key-file", filepath.Join(dir, "munge.key"),
		"--pid-file", filepath.Join(dir, "munge", "pid"), "--log-file", filepath.Join(dir, "munge", "log"), "--seed-file", filepath.Join(dir, "munge", "seed"))
	c.until("munged", func() bool { _, err := os.Stat(socket); return err == nil })
	c.start("slurmctld", "-D", "-c")
	c.start("slurmd", "-D")
	c.until("an idle node", func() bool { return strings.Contains(c.try("sinfo", "-h", "-o", "%T"), "idle") })
	return c
}

func (c *slurm) write(name, text string, mode os.FileMode) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
}

func (c *slurm) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	return cmd
}

// start starts a program that the end of the test ends.
func (c *slurm) start(name string, args ...string) {
	c.t.Helper()
	cmd := c.command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", name, out.Bytes())
		}
	})
}

// try returns what a program prints.
func (c *slurm) try(name string, args ...string) string {
	out, err := c.command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// must is try, and ends the test if the program fails.
func (c *slurm) must(name string, args ...string) string {
	c.t.Helper()
	out, err := c.command(name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *slurm) until(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(4 * time.Minute); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("no %s within 4 minutes\nqueue:\n%s\nstudy:\n%s", what, c.try("squeue"), c.try("./tuner", "trials", "digits"))
		}
	}
}

// TestSlurm runs the script of tuner workers slurm in a real Slurm. One task is requeued and
// one is cancelled in the middle of a trial. All trials complete, and none runs twice in
// an epoch.
func TestSlurm(t *testing.T) {
	c := startSlurm(t)
	build := exec.Command("go", "build", "-o", filepath.Join(c.dir, "tuner"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	server := net.JoinHostPort(host, port)
	c.write("space.yaml", "parameters:\n  x: {type: float, low: 0, high: 1}\n", 0o644)
	c.write("train.sh", "#!/bin/sh\necho $TUNER_TRIAL $TUNER_EPOCH >> starts\nsleep 1\necho loss=$1\n", 0o755)
	c.start("./tuner", "serve", "--db", "studies.db", "--listen", "0.0.0.0:"+port, "--insecure-allow-remote")
	c.env = append(c.env, "TUNER_SERVER="+server)
	c.until("server", func() bool {
		return strings.Contains(c.try("./tuner", "--insecure", "--retry-for", "0", "health"), "SERVING")
	})
	c.env = append(c.env, "TUNER_SERVER=127.0.0.1:"+port)
	c.must("./tuner", "create-study", "digits", "--space", "space.yaml", "--minimize", "loss", "--max-trials", "24", "--lease", "5s")
	c.write("job.sh", c.must("./tuner", "--server", server, "--insecure", "workers", "slurm", "digits", "--parallel", "4", "--", "./train.sh", "{x}")+"\n", 0o644)
	job := c.must("sbatch", "--parsable", "job.sh")

	running := func(task string) bool { return c.try("squeue", "-h", "-j", job+"_"+task, "-o", "%T") == "RUNNING" }
	begun := func() int {
		text, _ := os.ReadFile(filepath.Join(c.dir, "starts"))
		return strings.Count(string(text), "\n")
	}
	c.until("four tasks that run", func() bool { return running("1") && running("2") && running("3") && running("4") && begun() >= 4 })
	c.must("scontrol", "requeue", job+"_2")
	c.must("scancel", job+"_3")
	completed := func() int { return strings.Count(c.try("./tuner", "trials", "digits", "-f", "csv"), "completed") }
	c.until("finished study", func() bool { return completed() == 24 })
	// Slurm starts the requeued task again after two minutes, which the test does not wait for.
	c.until("end of the other tasks", func() bool {
		return !slices.ContainsFunc(strings.Fields(c.try("squeue", "-h", "-o", "%T")), func(state string) bool { return state == "RUNNING" || state == "COMPLETING" })
	})

	starts, err := os.ReadFile(filepath.Join(c.dir, "starts"))
	if err != nil {
		t.Fatal(err)
	}
	lines, again := strings.Split(strings.TrimSpace(string(starts)), "\n"), 0
	for _, line := range lines {
		if !strings.HasSuffix(line, " 1") {
			again++
		}
	}
	slices.Sort(lines)
	if n := len(slices.Compact(slices.Clone(lines))); n != len(lines) {
		t.Errorf("%d starts, but only %d different ones:\n%s", len(lines), n, starts)
	}
	if again == 0 {
		t.Errorf("no trial was started again:\n%s", starts)
	}
	t.Logf("24 of 24 trials completed by %d starts, %d of them in a later epoch; requeued task: %s", len(lines), again, c.try("squeue", "-h", "-o", "%i %T %r"))
}
