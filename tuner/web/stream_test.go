package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// watching is a stream under way.
type watching struct {
	body  io.Closer
	lines *bufio.Reader
}

func (r *running) watch(t testing.TB, body string, headers ...string) *watching {
	t.Helper()
	res, err := r.client.Do(r.request(t, "Watch", body, headers...))
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("status %d, %v", res.StatusCode, res.Header)
	}
	w := &watching{res.Body, bufio.NewReader(res.Body)}
	t.Cleanup(w.close)
	return w
}

func (w *watching) close() { w.body.Close() }

// line is the next line.
func (w *watching) line(t testing.TB) string {
	t.Helper()
	line, err := w.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	return line
}

// rest is what comes until the end, which is a proper one.
func (w *watching) rest(t testing.TB) string {
	t.Helper()
	text, err := io.ReadAll(w.lines)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// traced notes whether a request uses a connection again.
func traced(ctx context.Context, reused *bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { *reused = i.Reused }})
}

// syncBuffer is a buffer for a log.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// gated is a service whose looks at studies wait.
type gated struct {
	tuner.Service
	entered, leave chan struct{}
}

func newGated(s tuner.Service) *gated {
	return &gated{Service: s, entered: make(chan struct{}, 100), leave: make(chan struct{})}
}

func (g *gated) Study(ctx context.Context, name string) (tuner.Study, error) {
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		return g.Service.Study(ctx, name)
	case <-ctx.Done():
		return tuner.Study{}, ctx.Err()
	}
}

// TestWatch reads events as they happen, an empty line in silence, and an error as the last
// line.
func TestWatch(t *testing.T) {
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback, web.Impatient(50*time.Millisecond, time.Minute))
	w := r.watch(t, `{"parent":"studies/mine","after":"1"}`, "Authorization", admin)
	next := func() map[string]any {
		t.Helper()
		for {
			line := w.line(t)
			if line == "\n" {
				continue
			}
			var m map[string]map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil || m["result"] == nil {
				t.Fatalf("%v: %s", err, line)
			}
			return m["result"]
		}
	}
	if e := next(); e["position"] != "2" || e["event"] != "started" {
		t.Errorf("the first event: %v", e)
	}
	if line := w.line(t); line != "\n" {
		t.Errorf("after silence: %q", line)
	}
	if a := r.call(t, "PauseStudy", getMine, "Authorization", admin); a.status != 200 {
		t.Fatal(a.text)
	}
	if e := next(); e["position"] != "3" || e["studyState"] != "STUDY_STATE_PAUSED" {
		t.Errorf("the pause: %v", e)
	}
	if a := r.call(t, "DeleteStudy", getMine, "Authorization", admin); a.status != 200 {
		t.Fatal(a.text)
	}
	last := strings.TrimSpace(w.rest(t))
	var m map[string]map[string]any
	if err := json.Unmarshal([]byte(last), &m); err != nil || m["error"]["code"] != 5.0 || !strings.Contains(last, "NOT_FOUND") {
		t.Errorf("the last line: %v %s", err, last)
	}
}

// TestStreamRefused checks the status of streams that are refused at once.
func TestStreamRefused(t *testing.T) {
	path := tokenPath(t)
	worker := addToken(t, path, server.Scope{Role: server.RoleWorker, Studies: []string{"theirs", "none"}})
	reader := addToken(t, path, server.Scope{Role: server.RoleRead})
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	r.call(t, "Watch", `{"parent":"studies/mine"}`).want(t, "without a token", 401, 16, "DENIED")
	r.call(t, "Watch", `{"parent":"studies/mine"}`, "Authorization", worker).want(t, "without permission", 403, 7, "DENIED")
	r.call(t, "Watch", `{"parent":"studies/none"}`, "Authorization", worker).want(t, "no such study", 404, 5, "NOT_FOUND")
	r.call(t, "Watch", `{"parent":"none"}`, "Authorization", reader).want(t, "no name", 400, 3, "INVALID")
	r.call(t, "Backup", `{}`, "Authorization", worker).want(t, "a backup", 403, 7, "DENIED")
}

// TestBackup puts a backup together from its pieces. An empty one has no lines.
func TestBackup(t *testing.T) {
	s := withStudies(t)
	r := start(t, s, server.Options{}, loopback)
	a := r.call(t, "Backup", `{}`, "Accept-Encoding", "gzip")
	var got []byte
	for line := range strings.Lines(a.text) {
		var m struct{ Result struct{ Chunk string } }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		chunk, err := base64.StdEncoding.DecodeString(m.Result.Chunk)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, chunk...)
	}
	if !bytes.Equal(got, s.BackupData) || a.header.Get("Content-Encoding") != "" {
		t.Errorf("%d bytes came, want %d; %v", len(got), len(s.BackupData), a.header)
	}
	s.BackupData = nil
	if a := r.call(t, "Backup", `{}`); a.status != 200 || a.text != "" {
		t.Errorf("an empty backup: %d %q", a.status, a.text)
	}
}

// TestRevoked checks that a stream ends when its token is revoked.
func TestRevoked(t *testing.T) {
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	w := r.watch(t, `{"parent":"studies/mine"}`, "Authorization", admin)
	w.line(t)
	infos, err := server.ListTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	other := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	if err := server.RevokeToken(path, infos[0].ID); err != nil {
		t.Fatal(err)
	}
	if a := r.call(t, "PauseStudy", getMine, "Authorization", other); a.status != 200 { // an event, which is not sent
		t.Fatal(a.text)
	}
	if text := w.rest(t); !strings.Contains(text, `"error":`) || !strings.Contains(text, "DENIED") || strings.Contains(text, "PAUSED") {
		t.Errorf("after its token was revoked: %s", text)
	}
}

// TestSlowReader checks that a stream ends if its caller does not read.
func TestSlowReader(t *testing.T) {
	s := withStudies(t)
	s.BackupData = make([]byte, 64<<20) // more than the system buffers
	r := start(t, s, server.Options{Limits: server.Limits{MaxBackups: 1}}, loopback, web.Impatient(time.Minute, 100*time.Millisecond))
	c, err := net.Dial("tcp", r.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := r.request(t, "Backup", `{}`).Write(c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := r.client.Do(r.request(t, "Backup", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the slow reader still has the one backup")
		}
	}
}
