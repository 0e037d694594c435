package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// scene is a folder in which a test runs programs, the tuner among them.
type scene struct {
	t   *testing.T
	dir string
	env []string
	// The server, its port, its address for the page, and flags of the tuner for it.
	server, port, page string
	asks               []string
}

// newScene makes a folder with the program as it is released, without cgo.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), env: append(os.Environ(), "TUNER_DB=", "TUNER_SERVER=", "TUNER_TOKEN=")}
	build := exec.Command("go", "build", "-o", filepath.Join(s.dir, "tuner"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
}

func (s *scene) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// start starts a program that the end of the test ends.
func (s *scene) start(name string, args ...string) {
	s.t.Helper()
	cmd := s.command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
		if s.t.Failed() {
			s.t.Logf("the end of what %s prints:\n%s", name, out.Bytes()[max(0, out.Len()-5000):])
		}
	})
}

// try returns what a program prints.
func (s *scene) try(name string, args ...string) string {
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// must is try, and ends the test if the program fails.
func (s *scene) must(name string, args ...string) string {
	s.t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *scene) until(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(4 * time.Minute); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("no %s within 4 minutes", what)
		}
	}
}

// serve starts a server with the files of docs/deploy.md, and waits for it. Its certificate
// has the name of this machine.
func (s *scene) serve() {
	s.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		s.t.Fatal(err)
	}
	authority := wiretest.NewAuthority(s.t)
	pair := authority.Issue(s.t, "server", host, "127.0.0.1", "tuner.tuner.svc")
	s.must("cp", authority.CAFile, "ca.pem")
	s.must("cp", pair.CertFile, "server.pem")
	s.must("cp", pair.KeyFile, "server.key")
	s.must("sh", "-e", "-c", `umask 077
./tuner token add --scope admin > admin.token
./tuner token add --scope worker:digits > worker.token`)
	s.write("space.yaml", "parameters:\n  lr: {type: float, low: 1e-5, high: 1, scale: log}\n", 0o644)
	s.port = freePort(s.t)
	page := freePort(s.t)
	s.server, s.page = net.JoinHostPort(host, s.port), net.JoinHostPort(host, page)
	s.start("./tuner", "serve", "--db", "studies.db", "--listen", "0.0.0.0:"+s.port, "--http", "0.0.0.0:"+page,
		"--cert", "server.pem", "--key", "server.key", "--tokens", "tokens.json")
	s.asks = []string{"--server", s.server, "--ca", "ca.pem", "--token-file", "admin.token"}
	s.t.Cleanup(func() { // before the server stops
		if s.t.Failed() {
			s.t.Logf("trials that have not completed:\n%s", strings.Join(s.open("digits"), "\n"))
		}
	})
	s.until("server", func() bool { return strings.Contains(s.tryTuner("--retry-for", "0", "health"), "SERVING") })
}

// block returns a block of a page with replacements. The mark is its first line, or a heading
// that the first block of commands follows.
func (s *scene) block(page, mark string, replace ...string) string {
	s.t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+mark+"\n")
	if ok && !strings.HasPrefix(mark, "```") {
		_, rest, ok = strings.Cut(rest, "\n```sh\n")
	}
	block, _, ended := strings.Cut(rest, "\n```\n")
	if !ok || !ended {
		s.t.Fatalf("docs/%s has no block at %q", page, mark)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(block, replace[i]) {
			s.t.Fatalf("the block at %q of docs/%s has no %q", mark, page, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(block) + "\n"
}

// tryTuner is try with the tuner and asks.
func (s *scene) tryTuner(args ...string) string {
	return s.try("./tuner", slices.Concat(s.asks, args)...)
}

// mustTuner is must with the tuner and asks.
func (s *scene) mustTuner(args ...string) string {
	s.t.Helper()
	return s.must("./tuner", slices.Concat(s.asks, args)...)
}

// completed is how many trials of a study have completed.
func (s *scene) completed(study string) int {
	return strings.Count(s.tryTuner("trials", study, "-f", "csv"), "completed")
}

// open are the lines of the other trials, under the names of the columns.
func (s *scene) open(study string) []string {
	return slices.DeleteFunc(strings.Split(s.tryTuner("trials", study, "-f", "csv"), "\n"), func(line string) bool {
		return strings.Contains(line, "completed")
	})
}

// starts are the lines of the file to which the command of a test appends one at its start,
// with the trial, its epoch and the place where it runs.
func (s *scene) starts() []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "starts"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// checkStarts checks that no trial started twice in an epoch, and that one started in a later
// epoch, because its worker was stopped. A place that starts again may continue its own
// trial. It returns how many starts were in a later epoch.
func (s *scene) checkStarts(resumes ...string) (again int) {
	s.t.Helper()
	first := map[string]string{}
	for _, line := range s.starts() {
		trial, rest, _ := strings.Cut(line, " ")
		epoch, place, _ := strings.Cut(rest, " ")
		if epoch != "1" {
			again++
		}
		key := trial + " " + epoch
		if other, ok := first[key]; ok && !slices.Contains(resumes, place) {
			s.t.Errorf("trial %s started twice in epoch %s, on %s and on %s", trial, epoch, other, place)
		}
		first[key] = place
	}
	if again == 0 {
		s.t.Errorf("no trial was started in a later epoch: %q", s.starts())
	}
	return again
}
