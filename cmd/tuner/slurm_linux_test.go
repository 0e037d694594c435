package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startSlurm starts a Slurm of one node for the commands of a scene.
func (s *scene) startSlurm() {
	t := s.t
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("slurmd needs root; sudo make slurm runs it")
	}
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "squeue", "sinfo", "python"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("no %s: apt-get install slurmctld slurmd slurm-client munge python-is-python3", program)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// The time until a requeued task starts again is that of a credential.
	host, _, _ = strings.Cut(host, ".")
	dir := s.dir
	s.env = append(s.env, "SLURM_CONF="+filepath.Join(dir, "slurm.conf"))
	for _, folder := range []string{"state", "spool", "munge"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.write("munge.key", rand.Text()+rand.Text()+rand.Text(), 0o400)
	socket := filepath.Join(dir, "munge", "socket")
	s.write("slurm.conf", fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]s
SlurmdPort=%[3]s
AuthType=auth/munge
AuthInfo=socket=%[4]s,cred_expire=10
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
GresTypes=gpu
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=5 RealMemory=1000 Gres=gpu:4 State=UNKNOWN
PartitionName=all Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=%[1]s MaxTime=INFINITE State=UP
`, host, freePort(t), freePort(t), socket, dir), 0o644)
	// The files of GPUs must exist.
	s.write("gres.conf", "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\nName=gpu File=/dev/full\nName=gpu File=/dev/random\n", 0o644)
	s.start("munged", "--foreground", "--force", "--socket", socket, "--key-file", filepath.Join(dir, "munge.key"),
		"--pid-file", filepath.Join(dir, "munge", "pid"), "--log-file", filepath.Join(dir, "munge", "log"), "--seed-file", filepath.Join(dir, "munge", "seed"))
	s.until("munged", func() bool { _, err := os.Stat(socket); return err == nil })
	s.start("slurmctld", "-D", "-c")
	s.start("slurmd", "-D")
	s.until("an idle node", func() bool { return strings.Contains(s.try("sinfo", "-h", "-o", "%T"), "idle") })
}

// TestSlurm runs the commands for Slurm of docs/parallel.md in a real Slurm. In the middle of
// a trial one task is requeued, one is cancelled and one meets its time limit. All trials
// complete, and none has two workers in an epoch.
func TestSlurm(t *testing.T) {
	if os.Getenv("BKB_SLURM") == "" {
		t.Skip("starts Slurm; make slurm runs it")
	}
	c := newScene(t)
	c.startSlurm()
	c.serve()
	c.env = append(c.env, "PATH="+c.dir+":"+os.Getenv("PATH"))
	c.write("train.py", `import os, time
task, start = os.environ["SLURM_ARRAY_TASK_ID"], os.environ.get("SLURM_RESTART_COUNT", 0)
with open("starts", "a") as f:
    print(os.environ["TUNER_TRIAL"], os.environ["TUNER_EPOCH"], "task", task, "start", start, file=f)
time.sleep(1)
print("loss=" + os.environ["TUNER_PARAM_LR"])
`, 0o644)
	submit := func(commands string) (job string) {
		return c.must("sh", "-e", "-c", strings.ReplaceAll(commands, "| sbatch", "| sbatch --parsable"))
	}
	state := func(job string) string { return c.try("squeue", "-h", "-j", job, "-o", "%T") }

	c.mustTuner("create-study", "long", "--space", "space.yaml", "--minimize", "loss", "--lease", "5s")
	long := submit("tuner workers slurm long --server " + c.server + " --ca ca.pem --token-file admin.token --time 61s -- sleep 600 | sbatch")
	const trials = 150
	c.mustTuner("create-study", "digits", "--space", "space.yaml", "--minimize", "loss", "--max-trials", strconv.Itoa(trials), "--lease", "1m")
	job := submit(c.block("parallel.md", "### Slurm", "head.cluster:7070", c.server, "--parallel 32", "--parallel 4"))
	// begun lists the trials that began in a task.
	begun := func(task string) (trials []string) {
		for _, line := range c.starts() {
			if trial, ok := strings.CutSuffix(line, " "+task); ok {
				trials = append(trials, trial)
			}
		}
		return trials
	}
	on := func(task string) int { return len(begun(task)) }
	c.until("four tasks with trials", func() bool {
		return on("task 1 start 0") > 0 && on("task 2 start 0") > 0 && on("task 3 start 0") > 0 && on("task 4 start 0") > 0
	})
	c.must("scontrol", "requeue", job+"_2")
	c.must("scancel", job+"_3")
	began := time.Now()
	c.until("second start of the requeued task", func() bool { return on("task 2 start 1") > 0 })
	t.Logf("Slurm started the requeued task again after %.0f s", time.Since(began).Seconds())
	c.until("finished study", func() bool { return c.completed("digits") == trials })
	c.until("end of the tasks", func() bool { return state(job) == "" })
	again := c.checkStarts("task 2 start 1")
	if left := begun("task 2 start 0"); left[len(left)-1] != begun("task 2 start 1")[0] {
		t.Errorf("the requeued task left a trial and continued with another one: %q", c.starts())
	}
	t.Logf("%d trials completed by %d starts, %d of them in a later epoch; the requeued task began %d trials after its second start",
		trials, len(c.starts()), again, on("task 2 start 1"))

	c.until("end of the task with a time limit", func() bool { return state(long) == "" })
	var asked struct{ Trial, Epoch int }
	c.until("trial that the time limit interrupted", func() bool {
		return json.Unmarshal([]byte(c.tryTuner("ask", "long", "-f", "json")), &asked) == nil
	})
	t.Logf("after the time limit, ask returns trial %d in epoch %d", asked.Trial, asked.Epoch)
	if asked.Trial != 0 || asked.Epoch != 2 {
		t.Errorf("ask returns trial %d in epoch %d, want trial 0 in epoch 2", asked.Trial, asked.Epoch)
	}
}
