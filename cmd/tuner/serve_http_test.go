package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/serve"
)

// child is a server in a process of its own, with its stdin.
type child struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stderr *bytes.Buffer // unless it is a pipe
	state  serve.Ready
}

// startChild starts tuner serve in a folder and waits for its ready file.
func startChild(t *testing.T, dir string, change func(*exec.Cmd), args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(exe, append([]string{"serve", "--ready-file", "ready.json"}, args...)...), stderr: new(bytes.Buffer)}
	c.Args[0] = "tuner" // what testscript.Main goes by
	c.Dir, c.Stderr = dir, c.stderr
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(c.Cmd)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	})
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(dir, "ready.json"))
		if err == nil {
			if err := json.Unmarshal(text, &c.state); err != nil {
				t.Fatalf("half a ready file: %v: %s", err, text)
			}
			if c.state.PID == c.Process.Pid {
				return c
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server did not become ready: %s", c.stderr)
		}
	}
}

// ends waits for the process, which must end well and leave nothing behind.
func (c *child) ends(t *testing.T) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the server ended with %v: %s", err, c.stderr)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server goes on")
	}
	for _, name := range []string{"ready.json", "a.sock", "b.sock"} {
		if _, err := os.Lstat(filepath.Join(c.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s stayed behind: %v", name, err)
		}
	}
}

// list asks a server for its studies over HTTP.
func list(t *testing.T, dir, address string) string {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
		if !filepath.IsAbs(path) {
			address = filepath.Join(dir, path)
		}
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Post("http://localhost/tuner.v1.Tuner/ListStudies", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status + " " + res.Header.Get("Tuner-Version") + " " + string(text)
}

// shortDir is a folder whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tuner")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestUntilEOF checks that a server stops properly when its stdin ends, with a file and with
// a broken pipe as stderr. It also checks the ready file.
func TestUntilEOF(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := shortDir(t)
	c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--http", "unix:b.sock", "--until-eof", "--rate", "-1")
	if c.state.GRPC != "unix:a.sock" || c.state.HTTP != "unix:b.sock" || c.state.TLS || c.state.Version == "" {
		t.Errorf("the ready file: %+v", c.state)
	}
	info, err := os.Stat(filepath.Join(dir, "ready.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the ready file: %v %v", info, err)
	}
	if got := list(t, dir, c.state.HTTP); got != "200 OK "+c.state.Version+" {}" {
		t.Errorf("the list: %s", got)
	}
	if _, err := io.WriteString(c.stdin, strings.Repeat("anything ", 100_000)); err != nil {
		t.Fatal(err)
	}
	if got := list(t, dir, c.state.HTTP); !strings.HasPrefix(got, "200 ") {
		t.Errorf("after something on stdin: %s", got)
	}
	c.stdin.Close()
	c.ends(t)
	if !strings.Contains(c.stderr.String(), "Listening for HTTP on unix:b.sock\n") || !strings.Contains(c.stderr.String(), "Stopped.") {
		t.Errorf("stderr: %s", c.stderr)
	}

	// The system chooses the ports here, and stderr is a pipe that ends with stdin.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c = startChild(t, dir, func(c *exec.Cmd) { c.Stderr = w }, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--until-eof", "-vv")
	w.Close()
	if got := list(t, dir, c.state.HTTP); !strings.HasPrefix(got, "200 ") || strings.HasSuffix(c.state.HTTP, ":0") || strings.HasSuffix(c.state.GRPC, ":0") {
		t.Errorf("%+v: %s", c.state, got)
	}
	r.Close()
	c.stdin.Close()
	c.ends(t)
}

// TestReadyFile checks that a server without the lock on the database leaves the ready file
// of the other alone. The file of a killed server is replaced.
func TestReadyFile(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := shortDir(t)
	c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--http", "unix:b.sock")
	before, err := os.ReadFile(filepath.Join(dir, "ready.json"))
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	loser := exec.Command(exe, "serve", "--ready-file", "ready.json", "--listen", "unix:c.sock", "--lock-timeout", "1ms")
	loser.Args[0], loser.Dir = "tuner", dir
	out, err := loser.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitUnavailable {
		t.Errorf("the second server: %v %s", err, out)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "ready.json")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the ready file of the first: %v %s", err, after)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	again := startChild(t, dir, nil, "--listen", "unix:a.sock", "--http", "unix:b.sock")
	if err := again.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	again.ends(t)
}

// TestServeMistakes checks that wrong flags are refused, and which of them before the
// database is made.
func TestServeMistakes(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
		made   bool
	}{
		"exposed":       {[]string{"--http", "0.0.0.0:0"}, cli.ExitUsage, "give --cert and --key, and --tokens or --client-ca, listen on 127.0.0.1, or allow it with --insecure-allow-remote", false},
		"no address":    {[]string{"--http", "nonsense"}, cli.ExitUsage, `--http: "nonsense" must be host:port or unix:path`, false},
		"no directory":  {[]string{"--http", "127.0.0.1:0", "--ready-file", "nowhere/ready.json"}, cli.ExitNotFound, "--ready-file", false},
		"the database":  {[]string{"--ready-file", "tuner.db"}, cli.ExitUsage, "--ready-file tuner.db exists and is no ready file", true},
		"taken port":    {[]string{"--listen", other.Addr().String()}, cli.ExitUnavailable, "another process is listening on " + other.Addr().String(), false},
		"taken metrics": {[]string{"--metrics", other.Addr().String()}, cli.ExitUnavailable, "metrics: another process is listening on " + other.Addr().String(), false},
		"no audit file": {[]string{"--audit", "nowhere/audit.jsonl"}, cli.ExitNotFound, "the audit file: open nowhere/audit.jsonl", false},
		"metrics":       {[]string{"--metrics", ":0"}, cli.ExitUsage, "refusing to serve metrics on :0, because other machines can reach it; listen on 127.0.0.1, or allow it with --metrics-allow-remote", false},
		"fields":        {[]string{"--listen", "x", "--metrics", "y", "--cert", "c", "--client-scope", "z=read", "--stop-timeout", "-1s"}, cli.ExitUsage, "--cert and --key must be given together", false},
		"a CA alone":    {[]string{"--client-ca", "c", "--allow-tls12"}, cli.ExitUsage, "--client-ca alone permits nothing; give --client-scope or --tokens too", false},
		"one address":   {[]string{"--listen", "unix:x", "--http", "unix:x"}, cli.ExitUsage, "--listen and --http are both unix:x; give each an address of its own", false},
		"two addresses": {[]string{"--http", "localhost:7070", "--metrics", "localhost:7070"}, cli.ExitUsage, "--http and --metrics are both localhost:7070", false},
	} {
		dir := shortDir(t)
		t.Chdir(dir)
		var stderr bytes.Buffer
		status := run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...), strings.NewReader(""), io.Discard, &stderr)
		if status != c.status || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: status %d, %s", name, status, &stderr)
		}
		if field := regexp.MustCompile(`[A-Z][a-z]+[A-Z]\w*`).FindString(stderr.String()); field != "" {
			t.Errorf("%s: the text names the field %s and not its flag: %s", name, field, &stderr)
		}
		if _, err := os.Stat("tuner.db"); (err == nil) != c.made {
			t.Errorf("%s: the database: %v", name, err)
		}
	}
}
