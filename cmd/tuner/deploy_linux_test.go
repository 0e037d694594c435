package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
	"go.yaml.in/yaml/v3"
)

// deployPage is docs/deploy.md in parts.
type deployPage struct {
	sections map[string]string // commands that are indented, by the title of their section
	blocks   map[string][]byte // files by their names
}

func readDeployPage(t *testing.T) deployPage {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	p := deployPage{sections: map[string]string{}, blocks: map[string][]byte{}}
	for _, block := range regexp.MustCompile("(?s)\n```\\w+ (\\S+)\n(.*?\n)```\n").FindAllSubmatch(text, -1) {
		p.blocks[string(block[1])] = block[2]
	}
	title := ""
	for line := range strings.Lines(outsideBlocks(string(text))) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			title = strings.TrimSpace(name)
		} else if command, ok := strings.CutPrefix(line, "    "); ok {
			p.sections[title] += command
		}
	}
	return p
}

// deployFile reads a file that docs/deploy.md refers to.
func deployFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// machine is a machine of its own with systemd as its process 1, which
// testdata/machine.sh boots from the programs of this machine. Its root is an overlay, so
// users, files and services that a test makes are gone with it.
type machine struct {
	process string // process 1 of the machine, by the number it has here
}

// workFolder is where the commands of the page run.
const workFolder = "/srv"

// bootMachine boots a machine with the program and the files of a new server in its
// work folder. It skips the test where that cannot be done.
func bootMachine(t *testing.T, programs ...string) *machine {
	t.Helper()
	if testing.Short() {
		t.Skip("other processes: nothing for the race detector; go test ./cmd/tuner runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("a machine of its own needs root; sudo go test ./cmd/tuner -run TestDeploy runs it")
	}
	for _, program := range append(programs, "unshare", "nsenter", "ip", "systemctl", "journalctl", "useradd", "runuser") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: install it to run the commands of docs/deploy.md", program)
		}
	}
	cgroup, devices := fmt.Sprintf("bkb-machine-%d", os.Getpid()), deviceModes(t)
	boot := exec.Command("sh", "testdata/machine.sh", t.TempDir(), cgroup)
	boot.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // or it outlives a test that panics
	var log bytes.Buffer
	boot.Stdout, boot.Stderr = &log, &log
	if err := boot.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- boot.Wait() }()
	t.Cleanup(func() {
		_ = boot.Process.Kill() // and systemd with it
		<-ended
		removeCgroups(t, cgroup)
		if now := deviceModes(t); !maps.Equal(now, devices) {
			t.Errorf("the devices of this machine were %v and are %v", devices, now)
		}
	})
	m := &machine{}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			if regexp.MustCompile("(?i)permi|denied").MatchString(log.String()) {
				t.Skipf("this root may not boot a machine of its own: %s", &log)
			}
			t.Fatalf("the machine ends with %v: %s", err, &log)
		default:
		}
		pid := strconv.Itoa(boot.Process.Pid)
		if child, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children"); err == nil {
			m.process = strings.TrimSpace(string(child))
		}
		if m.process != "" && m.in("systemctl is-system-running --quiet").Run() == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the machine has not booted in a minute: %s", &log)
		}
	}

	program, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	authority := wiretest.NewAuthority(t)
	pair := authority.Issue(t, "server", "localhost", "127.0.0.1")
	for name, from := range map[string]string{
		"tuner": program, "server.pem": pair.CertFile, "server.key": pair.KeyFile, "ca.pem": authority.CAFile,
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if name == "tuner" {
			mode = 0o755
		}
		m.write(t, name, content, mode)
	}
	return m
}

// deviceModes returns the entries of /dev of this machine with their modes.
func deviceModes(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/dev")
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]string{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			modes[e.Name()] = info.Mode().String()
		}
	}
	return modes
}

// removeCgroups removes the control groups of a machine that has ended.
func removeCgroups(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/sys/fs/cgroup/" + name); err == nil {
			left = append(left, "/sys/fs/cgroup/"+name)
		}
		if len(left) == 0 {
			return
		}
		out, err := exec.Command("find", append(left, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")...).CombinedOutput()
		if err != nil && time.Now().After(deadline) { // its processes may not have ended at once
			t.Errorf("the control groups %v stay: %v\n%s", left, err, out)
			return
		}
	}
}

// in is a command line in the machine's work folder.
func (m *machine) in(text string) *exec.Cmd {
	return exec.Command("nsenter", "--target", m.process, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wd", "--",
		"env", "-i", "HOME=/root", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", "cd "+workFolder+"\n"+text)
}

// write writes a file, whose path counts from the work folder if it is relative.
func (m *machine) write(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(workFolder, path)
	}
	path = filepath.Join("/proc", m.process, "root", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

// command runs a command of the page and returns what it prints.
func (m *machine) command(t *testing.T, text string) string {
	t.Helper()
	out, err := m.in(text).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// eventually runs a command until it succeeds.
func (m *machine) eventually(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := m.in(text).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v after a minute\n%s", text, err, out)
		}
	}
}

// follow runs a command that does not end, until it has printed the text.
func (m *machine) follow(t *testing.T, command, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := m.in(command)
	lines, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	var all strings.Builder
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		fmt.Fprintln(&all, scanner.Text())
		if strings.Contains(scanner.Text(), text) {
			cancel() // which ends the command
			_ = cmd.Wait()
			return
		}
	}
	t.Errorf("%s does not print %q:\n%s", command, text, &all)
	_ = cmd.Wait()
}

// The commands for systemd, as they stand, make a server that serves, makes backups,
// starts again after a crash, and does not after its file is gone.
func TestDeploySystemd(t *testing.T) {
	t.Parallel() // it waits more than it computes
	page := readDeployPage(t)
	m := bootMachine(t)
	m.command(t, "mkdir -p bkb/deploy")
	m.write(t, "bkb/deploy/tuner.service", deployFile(t, "tuner.service"), 0o644)
	for line := range strings.Lines(strings.ReplaceAll(page.sections["systemd"], "\\\n", "")) {
		if strings.HasPrefix(line, "journalctl") {
			m.follow(t, line, "msg=serving")
			continue
		}
		m.command(t, line)
	}
	if faults := m.command(t, "systemd-analyze verify tuner.service 2>&1"); faults != "" {
		t.Errorf("systemd-analyze verify:\n%s", faults)
	}
	asks := "tuner --server localhost:7070 --ca ca.pem --token-file admin.token --retry-for 0 "
	m.eventually(t, asks+"studies")
	m.eventually(t, "ls /var/backups/tuner/tuner-*.db")
	m.eventually(t, "curl -sf http://127.0.0.1:9090/readyz && curl -sf --cacert ca.pem https://localhost:7071/ >/dev/null")
	if user := m.command(t, "ps -o user= -C tuner"); strings.TrimSpace(user) != "tuner" {
		t.Errorf("the server runs as %q", user)
	}

	m.write(t, "/etc/systemd/system/tuner.service.d/override.conf", page.blocks["override.conf"], 0o644)
	m.command(t, "systemctl daemon-reload && systemctl restart tuner")
	m.eventually(t, asks+"studies")
	if args := m.command(t, "ps -o args= -C tuner"); !strings.Contains(args, "--max-file 17179869184") || strings.Count(args, "\n") != 1 {
		t.Errorf("with the override of the page the server is %q", args)
	}

	before := m.command(t, "systemctl show --value -p MainPID tuner")
	m.command(t, "systemctl kill -s KILL tuner")
	m.eventually(t, `now=$(systemctl show --value -p MainPID tuner); [ "$now" -gt 0 ] && [ "$now" != `+strings.TrimSpace(before)+" ]")
	m.eventually(t, asks+"studies")

	m.command(t, "mv /var/lib/tuner/tuner.db /var/lib/tuner/moved.db")
	m.eventually(t, "systemctl is-failed --quiet tuner")
	time.Sleep(3 * time.Second) // RestartSec is 2 s
	if restarts := m.command(t, "systemctl show --value -p NRestarts tuner"); strings.TrimSpace(restarts) != "1" {
		t.Errorf("%s restarts, want that after the crash only:\n%s", restarts, m.command(t, "journalctl -u tuner"))
	}
	m.command(t, "mv /var/lib/tuner/moved.db /var/lib/tuner/tuner.db && systemctl start tuner")
	m.eventually(t, asks+"studies")
	m.command(t, "systemctl stop tuner")
	if result := m.command(t, "systemctl show --value -p Result tuner"); result != "success\n" {
		t.Errorf("a stop ends the server with %q", result)
	}
}

// The commands for containers, as they stand, make an image that serves, is found healthy
// by the probe, and keeps its file in the volume.
func TestDeployContainer(t *testing.T) {
	page := readDeployPage(t)
	commands, probe, ok := strings.Cut(page.sections["Containers"], "livenessProbe:")
	if !ok {
		t.Fatal("the section on containers has no probe")
	}
	var liveness struct{ Exec struct{ Command []string } }
	if err := yaml.Unmarshal([]byte(probe), &liveness); err != nil {
		t.Fatal(err)
	}
	// The image of the build has a Go that can compile the module.
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	needs := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	base := regexp.MustCompile(`\nFROM (golang:` + regexp.QuoteMeta(needs) + `\.\d+)@sha256:[0-9a-f]{64} AS build\n`).FindSubmatch(deployFile(t, "Dockerfile"))
	if base == nil {
		t.Fatalf("go.mod needs Go %s, from which the Dockerfile does not build by digest", needs)
	}

	if os.Getenv("BKB_DOCKER") == "" {
		t.Skip("it compiles the program in a container for two minutes; make deploy runs it")
	}
	m := bootMachine(t, "docker", "dockerd", "git")
	m.command(t, "systemctl start docker")
	sourceInto(t, m)
	buildImage(t, m, string(base[1]))
	m.command(t, "sed -i 's/@sha256:[0-9a-f]*//' bkb/deploy/Dockerfile") // an image made here has no digest of a registry
	for line := range strings.Lines(strings.ReplaceAll(commands, "\\\n", "")) {
		m.command(t, line)
	}
	asks := "./tuner --server localhost:7070 --ca ca.pem --token-file admin.token --retry-for 0 "
	m.eventually(t, asks+"studies")
	health := "docker exec tuner " + strings.Join(liveness.Exec.Command, " ")
	if out := m.command(t, health); out != "SERVING\n" {
		t.Errorf("the probe prints %q", out)
	}
	m.write(t, "space.yaml", []byte("parameters:\n  x: {type: float, low: 0, high: 1}\n"), 0o644)
	m.command(t, asks+"create-study kept --space space.yaml --minimize loss")
	m.command(t, "docker stop tuner")
	if code := m.command(t, "docker inspect -f '{{.State.ExitCode}}' tuner"); code != "0\n" {
		t.Errorf("docker stop ends the server with %s:\n%s", code, m.command(t, "docker logs tuner 2>&1"))
	}
	m.command(t, "docker rm tuner")
	last := strings.LastIndex(commands, "docker run -d")
	m.command(t, strings.ReplaceAll(commands[last:], "\\\n", ""))
	m.eventually(t, asks+"get-study kept || "+asks+"trials kept")
}

// sourceInto copies the files that git has, as they stand here, into the folder of
// the clone.
func sourceInto(t *testing.T, m *machine) {
	t.Helper()
	pipe(t, exec.Command("sh", "-c", "cd ../.. && git ls-files -z --cached --others --exclude-standard | tar --null -T - -c"),
		m.in("mkdir bkb && tar -x -C bkb --no-same-owner"))
}

// buildImage makes the image from which the Dockerfile builds. Registries cannot be
// reached from the machine, so it has the Go and the modules of this machine, and the
// programs that the Dockerfile calls.
func buildImage(t *testing.T, m *machine, name string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	goEnv := func(name string) string {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(value))
	}
	// Only the modules that the program needs, from the cache of this machine.
	list := exec.Command("go", "list", "-deps", "./cmd/tuner")
	list.Dir = "../.."
	list.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(folder, "modules"), "GOFLAGS=-modcacherw", "GONOSUMDB=*",
		"GOPROXY=file://"+filepath.Join(goEnv("GOMODCACHE"), "cache/download"))
	if out, err := list.CombinedOutput(); err != nil {
		t.Fatalf("the modules of the program: %v\n%s", err, out)
	}
	pipe(t, exec.Command("sh", "-c", `set -e
programs="/bin/sh $(command -v mkdir)"
libraries=$(ldd $programs | grep -o '/[^ ]*[.]so[^ ]*' | sort -u)
exec tar -chP --hard-dereference --exclude=./test --transform 's|^\./|usr/local/go/|' --transform 's|^modules/|go/pkg/mod/|' \
	--transform 's|^/*||' $programs $libraries -C "$0" . -C "$1" modules tmp`, goEnv("GOROOT"), folder),
		m.in("docker import -c 'ENV HOME=/root PATH=/usr/local/go/bin:/usr/bin:/bin GOMODCACHE=/go/pkg/mod GOPROXY=off' - "+name))
}

// pipe runs two commands, the second of which reads what the first one prints.
func pipe(t *testing.T, from, to *exec.Cmd) {
	t.Helper()
	var fromWrong, toWrong bytes.Buffer
	from.Stderr, to.Stderr = &fromWrong, &toWrong
	between, err := from.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	to.Stdin = between
	if err := from.Start(); err != nil {
		t.Fatal(err)
	}
	toErr := to.Run()
	between.Close() // or the first command would wait for a second one that has failed
	if err := from.Wait(); err != nil || toErr != nil {
		t.Fatalf("%v: %s\n%v: %s", err, &fromWrong, toErr, &toWrong)
	}
}
