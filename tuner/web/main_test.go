package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// atEnd is done after the tests.
var (
	atEnd   []func()
	atEndMu sync.Mutex
)

func whenDone(f func()) {
	atEndMu.Lock()
	defer atEndMu.Unlock()
	atEnd = append(atEnd, f)
}

func TestMain(m *testing.M) {
	racetest.Waiting()
	code := m.Run()
	for _, f := range atEnd {
		f()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// running is a server with both faces that runs until its test ends.
type running struct {
	*server.Server
	grpc, http string // addresses
	client     *http.Client
	stop       func()
}

// start runs a server, over HTTP at an address for a listener.
func start(t testing.TB, service tuner.Service, o server.Options, address string, changes ...func(*web.Face)) *running {
	t.Helper()
	if o.DrainDelay == 0 {
		o.DrainDelay = time.Millisecond
	}
	o.Address = "127.0.0.1:0"
	serving := make(chan struct{})
	o.OnServing = func() { close(serving) }
	s, err := server.New(service, o)
	if err != nil {
		t.Fatal(err)
	}
	face, err := web.New(s, web.Options{Version: "v1.2.3", Components: engine.Components(), Page: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(face)
	}
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.ListenAt(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, faced := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	<-serving
	go func() { faced <- face.Serve(h) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, h.Addr().Network(), h.Addr().String())
	}}
	r := &running{Server: s, grpc: l.Addr().String(), http: h.Addr().String(), client: &http.Client{Transport: transport}}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
		if err := face.Close(); err != nil {
			t.Errorf("closing the face: %v", err)
		}
		if err := <-faced; err != nil {
			t.Errorf("serving HTTP: %v", err)
		}
		transport.CloseIdleConnections()
	}
	t.Cleanup(r.stop)
	return r
}

const loopback = "127.0.0.1:0"

// request makes a call's request. Headers are pairs, and one with an empty value is removed.
func (r *running) request(t testing.TB, method, body string, headers ...string) *http.Request {
	t.Helper()
	host := r.http
	if strings.Contains(host, "/") {
		host = "localhost"
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/tuner.v1.Tuner/"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			q.Host = headers[i+1]
		case headers[i+1] == "":
			q.Header.Del(headers[i])
		default:
			q.Header.Add(headers[i], headers[i+1])
		}
	}
	return q
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func (r *running) do(t testing.TB, q *http.Request) answer {
	t.Helper()
	res, err := r.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, text: string(text)}
	_ = json.Unmarshal(text, &a.body) // other answers have no object
	return a
}

func (r *running) call(t testing.TB, method, body string, headers ...string) answer {
	t.Helper()
	return r.do(t, r.request(t, method, body, headers...))
}

// want fails the test unless an answer is an error with a status, code and reason.
func (a answer) want(t testing.TB, name string, status int, code float64, reason string) {
	t.Helper()
	got := ""
	for _, d := range a.details("google.rpc.ErrorInfo") {
		got, _ = d["reason"].(string)
		if d["domain"] != wire.Domain {
			t.Errorf("%s: the domain is %v", name, d["domain"])
		}
	}
	if a.status != status || a.body["code"] != code || got != reason || a.body["message"] == "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: status %d, reason %q, %s: %s; want %d, code %v, %q", name, a.status, got, a.header.Get("Content-Type"), a.text, status, code, reason)
	}
}

// details are those of a type in an error.
func (a answer) details(kind string) (all []map[string]any) {
	list, _ := a.body["details"].([]any)
	for _, d := range list {
		if d := d.(map[string]any); d["@type"] == "type.googleapis.com/"+kind {
			all = append(all, d)
		}
	}
	return all
}

// withStudies is a service with the studies mine and theirs, with one running trial each.
func withStudies(t testing.TB) *wiretest.Service {
	t.Helper()
	s := wiretest.New(t)
	s.BackupData = bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for _, name := range []string{"mine", "theirs"} {
		if _, err := s.CreateStudy(t.Context(), name, study.Create{Spec: spec(t)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask(t.Context(), name, study.Ask{Worker: "w"}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// addToken adds a token to a file and returns its header.
func addToken(t testing.TB, path string, scope server.Scope) string {
	t.Helper()
	token, _, err := server.AddToken(path, scope, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + token.Reveal()
}

func tokenPath(t testing.TB) string { return filepath.Join(t.TempDir(), "tokens.json") }

func spec(t testing.TB) study.Spec {
	t.Helper()
	s, _, err := space.Parse([]byte(`{"version":1,"parameters":{"x":{"type":"float","low":-1.0,"high":1.0},"n":{"type":"int","low":0,"high":9007199254740993}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return study.Spec{Space: s, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1}
}
