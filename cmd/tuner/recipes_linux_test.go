package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
)

// TestRecipes runs the recipes of docs/parallel.md. It changes only the address of the server
// in them. BKB_RECIPES is the folder of a Python environment that make recipes makes.
func TestRecipes(t *testing.T) {
	python := os.Getenv("BKB_RECIPES")
	if python == "" {
		t.Skip("starts Dask, Ray, Slurm and sshd; make recipes runs it")
	}
	if os.Getuid() != 0 {
		t.Fatal("slurmd and sshd need root; sudo make recipes runs this")
	}
	source, err := filepath.Abs("../../python/src")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(python, "bin")+":"+os.Getenv("PATH"))
	for name, recipe := range map[string]func(*scene){
		"submitit":         func(s *scene) { s.must("python", "start_submitit.py") },
		"submitit locally": func(s *scene) { s.withoutSlurm(); s.must("python", "start_submitit.py") },
		"dask":             func(s *scene) { s.must("python", "start_dask.py") },
		"ray":              func(s *scene) { s.must("python", "start_ray.py") },
		"ssh":              func(s *scene) { s.ssh() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if name == "submitit" {
				s.startSlurm()
			}
			s.serve()
			s.write("work.py", s.block("parallel.md", "```python work.py", "head.cluster:7071", s.page)+`
import os, time
of_the_page = train

def train(trial):
    print(os.getpid(), file=open(FOLDER / "starts", "a"))
    time.sleep(0.3)
    return of_the_page(trial)
`, 0o644)
			for _, file := range []string{"start_submitit.py", "start_dask.py", "start_ray.py"} {
				s.write(file, s.block("parallel.md", "```python "+file), 0o644)
			}
			s.env = append(s.env, "PATH="+s.dir+":"+os.Getenv("PATH"), "PYTHONPATH="+source)
			s.mustTuner("create-study", "digits", "--space", "space.yaml", "--minimize", "loss", "--max-trials", "40")
			recipe(s)
			s.until("finished study", func() bool { return s.completed("digits") == 40 })
			workers := map[string]int{}
			for _, line := range s.starts() {
				workers[line]++
			}
			t.Logf("40 trials completed, in these processes: %v", workers)
			if len(workers) < 2 {
				t.Error("one process had all trials")
			}
		})
	}
}

// withoutSlurm hides the programs of Slurm.
func (s *scene) withoutSlurm() {
	s.env = append(s.env, "PATH="+filepath.Join(os.Getenv("BKB_RECIPES"), "bin"))
}

// ssh runs the block for ssh on three names of this machine.
func (s *scene) ssh() {
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	s.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host")
	s.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "mine")
	port := freePort(s.t)
	path := s.dir + ":" + os.Getenv("PATH")
	s.write("sshd_config", fmt.Sprintf(`ListenAddress 127.0.0.1:%s
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/mine.pub
PidFile none
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH=%s
`, port, s.dir, path), 0o644)
	s.write("ssh_config", fmt.Sprintf(`Host node*
HostName 127.0.0.1
Port %s
User %s
IdentityFile %[3]s/mine
UserKnownHostsFile %[3]s/known_hosts
StrictHostKeyChecking accept-new
`, port, me.Username, s.dir), 0o644)
	client, err := exec.LookPath("ssh")
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s/ssh_config \"$@\"\n", client, s.dir), 0o755)
	s.write("train.py", `import math, os, sys, time
print(os.getppid(), file=open("starts", "a"))
time.sleep(1)
print("loss=%f" % math.log(float(sys.argv[1].removeprefix("--lr=")) / 0.003) ** 2)
`, 0o644)
	server, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		s.t.Fatal("no sshd: apt-get install openssh-server")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where it locks its processes in
		s.t.Fatal(err)
	}
	s.start(server, "-D", "-e", "-f", filepath.Join(s.dir, "sshd_config"))
	s.until("sshd", func() bool { return s.try("./ssh", "node1", "echo there") == "there" })
	s.must("sh", "-e", "-c", s.block("parallel.md", "### ssh", "head.cluster:7070", s.server))
}
