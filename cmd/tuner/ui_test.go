package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
)

// tunerIn runs a command in a folder and returns what it prints.
func tunerIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, args...)
	c.Args[0], c.Dir = "tuner", dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("tuner %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// startUI starts tuner ui in a folder and returns the address that it prints. The function
// ends it as Ctrl-C does.
func startUI(t *testing.T, dir string, args ...string) (address *url.URL, end func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, append([]string{"ui", "--http", "127.0.0.1:0"}, args...)...)
	c.Args[0], c.Dir = "tuner", dir
	stderr := new(bytes.Buffer)
	c.Stderr = stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, stderr)
	}
	if address, err = url.Parse(strings.TrimSpace(line)); err != nil || !strings.HasPrefix(address.Fragment, "key=") {
		t.Fatal(line, err)
	}
	return address, func() {
		t.Helper()
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("tuner ui ended with %v: %s", err, stderr)
			}
		case <-time.After(time.Minute):
			t.Error("tuner ui goes on after Ctrl-C")
		}
	}
}

// visit sends a request as a page does and returns status and body.
func visit(t *testing.T, client *http.Client, address *url.URL, path, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if body == "" {
		q.Method, q.Body = http.MethodGet, nil
	}
	res, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// enter logs in with the key.
func enter(t *testing.T, address *url.URL) *http.Client {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	key := strings.TrimPrefix(address.Fragment, "key=")
	if status, body := visit(t, client, address, "/api/login", fmt.Sprintf(`{"token":%q}`, key)); status != 204 {
		t.Fatalf("the key: %d %s", status, body)
	}
	return client
}

// look logs in with the key and lists the studies.
func look(t *testing.T, address *url.URL) string {
	t.Helper()
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	if status, body := visit(t, client, address, "/", ""); status != 200 || !strings.Contains(body, "<!doctype html>") {
		t.Errorf("the page: %d %s", status, body)
	}
	if status, _ := visit(t, client, address, "/tuner.v1.Tuner/ListStudies", "{}"); status != 401 {
		t.Errorf("without the key: status %d, want 401", status)
	}
	client = enter(t, address)
	status, body := visit(t, client, address, "/tuner.v1.Tuner/ListStudies", "{}")
	if status != 200 {
		t.Errorf("the studies: %d %s", status, body)
	}
	if status, _ := visit(t, client, address, "/api/studies/digits/columns", ""); status != 200 {
		t.Errorf("the columns: status %d", status)
	}
	return body
}

// TestUI looks at a file that another command uses meanwhile, and at a server.
func TestUI(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := shortDir(t)
	if err := os.WriteFile(filepath.Join(dir, "space.yaml"), []byte("parameters: {x: {type: float, low: 0, high: 1}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	tunerIn(t, dir, "create-study", "digits", "--space", "space.yaml", "--minimize", "loss")
	address, end := startUI(t, dir)
	if body := look(t, address); !strings.Contains(body, `"studies/digits"`) || strings.Contains(body, "later") {
		t.Errorf("the studies of the file: %s", body)
	}
	tunerIn(t, dir, "create-study", "later", "--space", "space.yaml", "--minimize", "loss")
	if body := look(t, address); !strings.Contains(body, `"studies/later"`) {
		t.Errorf("after another command: %s", body)
	}
	end()

	token := strings.TrimSpace(tunerIn(t, dir, "token", "add", "--tokens", "tokens.json", "--scope", "read", "-q"))
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	served := startChild(t, dir, nil, "--listen", "unix:s", "--tokens", "tokens.json", "--until-eof")
	address, end = startUI(t, dir, "--server", "unix:s", "--token-file", "token")
	if body := look(t, address); !strings.Contains(body, `"studies/digits"`) {
		t.Errorf("the studies of the server: %s", body)
	}
	if _, body := visit(t, enter(t, address), address, "/tuner.v1.Tuner/GetCaller", "{}"); !strings.Contains(body, `"role":"read"`) {
		t.Errorf("with a read token the caller is %s", body)
	}
	end()
	token = strings.TrimSpace(tunerIn(t, dir, "token", "add", "--tokens", "tokens.json", "--scope", "worker:digits", "-q"))
	if err := os.WriteFile(filepath.Join(dir, "worker"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	address, end = startUI(t, dir, "--server", "unix:s", "--token-file", "worker")
	client := enter(t, address)
	if _, body := visit(t, client, address, "/tuner.v1.Tuner/GetCaller", "{}"); !strings.Contains(body, `"role":"worker","studies":["digits"]`) {
		t.Errorf("with a worker's token the caller is %s", body)
	}
	if status, body := visit(t, client, address, "/api/studies/digits/columns", ""); status != 200 {
		t.Errorf("the study of the worker: status %d %s", status, body)
	}
	end()
	served.stdin.Close()
	served.ends(t)
}

// TestUIMistakes checks refusals.
func TestUIMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"exposed":           {[]string{"ui", "--http", "0.0.0.0:0"}, cli.ExitUsage, "--http 0.0.0.0:0: must be host:port on this machine"},
		"no port":           {[]string{"ui", "--http", "localhost"}, cli.ExitUsage, "must be host:port on this machine"},
		"no file":           {[]string{"ui", "--http", "127.0.0.1:0"}, cli.ExitNotFound, "tuner.db"},
		"a page of nothing": {[]string{"serve", "--listen", "127.0.0.1:0", "--no-ui"}, cli.ExitUsage, "--no-ui: has no effect without --http"},
	} {
		t.Chdir(shortDir(t))
		var stderr bytes.Buffer
		if status := run(t.Context(), c.args, strings.NewReader(""), io.Discard, &stderr); status != c.status || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: status %d, %s", name, status, &stderr)
		}
	}
}
