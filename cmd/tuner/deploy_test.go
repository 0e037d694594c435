package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// deployPage is docs/deploy.md in parts.
type deployPage struct {
	files    map[string]string // blocks with a name
	sections map[string]string // commands that are indented, by the title of their section
}

func readDeployPage(t *testing.T) deployPage {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	p := deployPage{files: map[string]string{}, sections: map[string]string{}}
	for _, m := range regexp.MustCompile("(?ms)^```\\w+ ([\\w.]+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		p.files[m[1]] = m[2]
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

// machine is a folder that stands for the root of a machine.
type machine struct {
	root, port string
	paths      *strings.Replacer
	ca         string
}

// newMachine makes a machine with the files of a new server in its working directory.
func newMachine(t *testing.T, folders ...string) *machine {
	t.Helper()
	m := &machine{root: t.TempDir(), port: freePort(t)}
	pairs := []string{"0.0.0.0:7070", "localhost:" + m.port, "localhost:7070", "localhost:" + m.port}
	for _, folder := range folders {
		pairs = append(pairs, folder, m.root+folder)
	}
	m.paths = strings.NewReplacer(pairs...)
	authority := wiretest.NewAuthority(t)
	pair := authority.Issue(t, "server", "localhost", "127.0.0.1")
	m.ca = authority.CAFile
	program, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"tuner": program, "server.pem": pair.CertFile, "server.key": pair.KeyFile} {
		if err := os.Symlink(from, filepath.Join(m.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// command runs a command of the page.
func (m *machine) command(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", m.paths.Replace(text))
	cmd.Dir = m.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// serve runs the command line of a server, calls use while it serves, and stops it.
func (m *machine) serve(t *testing.T, words []string, use func()) {
	t.Helper()
	for i := range words {
		words[i] = m.paths.Replace(words[i])
	}
	server := exec.Command(words[0], words[1:]...)
	server.Dir = m.root
	log, err := os.Create(filepath.Join(m.root, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server.Stderr = log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Errorf("the server ends with %v:\n%s", err, text)
		}
	}()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for exec.Command("tuner", "--server", "localhost:"+m.port, "--ca", m.ca, "--retry-for", "0", "health").Run() != nil {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline.Done():
			t.Error("the server does not serve")
			return
		case err := <-ended:
			ended <- err
			return
		}
	}
	use()
}

// changesMachine are the programs of the page that need root and change the machine.
var changesMachine = []string{"useradd", "systemctl", "journalctl", "docker"}

// run runs the indented commands of a section, except those that change the machine. It
// returns the number of commands that it left out.
func (m *machine) run(t *testing.T, section string) (left int) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(section, "\\\n", "")) {
		line = strings.NewReplacer(" -o tuner -g tuner", "", "sudo -u tuner ", "").Replace(line)
		switch program := strings.Fields(strings.TrimPrefix(line, "(umask 077; "))[0]; {
		case slices.Contains(changesMachine, program):
			left++
		case program == "install", program == "tuner":
			m.command(t, line)
		default:
			t.Errorf("docs/deploy.md has a command that no test runs: %s", line)
		}
	}
	return left
}

// The steps for systemd make a server with backups. systemd finds no fault in the unit.
func TestDeploySystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("other processes: nothing for the race detector; go test ./cmd/tuner runs it")
	}
	page := readDeployPage(t)
	m := newMachine(t, "/usr/local/bin", "/var/lib/tuner", "/var/backups/tuner", "/etc/tuner")
	m.command(t, "mkdir -p /usr/local/bin")
	if left := m.run(t, page.sections["systemd"]); left != 4 {
		t.Errorf("%d commands were left out, want useradd, two of systemctl and journalctl", left)
	}
	unit := m.paths.Replace(page.files["tuner.service"])
	file := filepath.Join(m.root, "tuner.service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("no systemd-analyze, so only the command of the unit is tested")
	} else if out, err := exec.Command("systemd-analyze", "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	_, start, ok := strings.Cut(strings.ReplaceAll(page.files["tuner.service"], "\\\n", ""), "\nExecStart=")
	if !ok {
		t.Fatal("the unit has no ExecStart")
	}
	start, _, _ = strings.Cut(start, "\n")
	m.serve(t, strings.Fields(start), func() {
		m.command(t, fmt.Sprintf("tuner --server localhost:7070 --ca %s --token-file admin.token studies", m.ca))
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if made, _ := filepath.Glob(m.root + "/var/backups/tuner/tuner-*.db"); len(made) > 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Error("the server made no backup")
				return
			}
		}
	})
	for _, line := range []string{"RestartPreventExitStatus=1 2 7", "Restart=on-failure"} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the unit has no line %s, and the page says so", line)
		}
	}
}

// The image's command serves, and the probe finds it healthy.
func TestDeployContainer(t *testing.T) {
	if testing.Short() {
		t.Skip("other processes: nothing for the race detector; go test ./cmd/tuner runs it")
	}
	page := readDeployPage(t)
	image := strings.ReplaceAll(page.files["Dockerfile"], "\\\n", "")
	line := func(instruction string) string {
		m := regexp.MustCompile("(?m)^" + instruction + " (.*)$").FindStringSubmatch(image)
		if m == nil {
			t.Fatalf("the Dockerfile has no %s", instruction)
		}
		return m[1]
	}
	list := func(text string) (words []string) {
		if err := json.Unmarshal([]byte(text), &words); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return words
	}
	m := newMachine(t, "/data/", "/tls/", "/tokens/", "/tuner")
	m.command(t, "mkdir /data/ /tls/ /tokens/ && cp server.pem /tls/tls.crt && (umask 077; cp server.key /tls/tls.key) && cp "+m.ca+" /tls/ca.crt")
	m.command(t, "tuner token add --tokens /tokens/tokens.json --scope admin")
	if left := m.run(t, page.commands(t)); left != 2 {
		t.Errorf("%d commands were left out, want two of docker", left)
	}
	var probe struct {
		LivenessProbe struct {
			Exec struct{ Command []string } `yaml:"exec"`
		} `yaml:"livenessProbe"`
	}
	_, text, _ := strings.Cut(page.sections["Containers"], "livenessProbe:")
	if err := yaml.Unmarshal([]byte("livenessProbe:"+text), &probe); err != nil {
		t.Fatal(err)
	}
	m.serve(t, append(list(line("ENTRYPOINT")), list(line("CMD"))...), func() {
		words := probe.LivenessProbe.Exec.Command
		if got := m.command(t, strings.Join(words, " ")); got != "SERVING\n" {
			t.Errorf("the probe prints %q", got)
		}
	})
	// The build has a Go that can compile the module, and the package.
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	needs := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	if from := line("FROM"); from != "golang:"+needs+" AS build" {
		t.Errorf("the Dockerfile is built by %s, and go.mod needs %s", from, needs)
	}
	if run := line("RUN"); !strings.Contains(run, "CGO_ENABLED=0 go build -trimpath -o /tuner ./cmd/tuner ") {
		t.Errorf("the Dockerfile does not build the program without cgo: %s", run)
	}
}

// commands are those of the section on containers, without the probe after them.
func (p deployPage) commands(t *testing.T) string {
	commands, _, ok := strings.Cut(p.sections["Containers"], "livenessProbe:")
	if !ok {
		t.Fatal("the section on containers has no probe")
	}
	return commands
}
