package main

import (
	"bytes"
	"context"
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

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// newDatabase returns the address of an empty database for studies.
func newDatabase(t *testing.T) string {
	t.Helper()
	if !pgtest.Available() {
		pgtest.Skip(t, pgtest.ErrNone)
	}
	pg, err := database()
	if err != nil {
		t.Fatal(err)
	}
	scripted.Store(true)
	address := fmt.Sprintf("%s?schema=s%d", pg.Address(), schemas.Add(1))
	if _, _, err := postgres.Init(t.Context(), address, postgres.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	return address
}

// TestSeveralServers runs two servers on one database, with TLS and tokens. A client of
// the second uses a study of the first, which then stops, and the second has the study.
// Then others take over the studies of the second.
func TestSeveralServers(t *testing.T) {
	address := newDatabase(t)
	dir := t.TempDir()
	authority := wiretest.NewAuthority(t)
	tokens, tokenFile := filepath.Join(dir, "tokens.json"), filepath.Join(dir, "token")
	token, _, err := server.AddToken(tokens, server.Scope{Role: server.RoleAdmin}, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	writePrivate(t, tokenFile, token.Reveal())
	var servers [2]*inProcess
	var at, metrics [2]string
	for i := range servers {
		for _, where := range []*string{&at[i], &metrics[i]} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			*where = l.Addr().String()
			l.Close()
		}
		name := fmt.Sprintf("tuner-%d.example.org", i)
		pair := authority.Issue(t, name, "127.0.0.1", name)
		servers[i] = startInProcess(t, "serve", "--store", address, "--listen", at[i], "--advertise", at[i], "--takeover", "2s", "--metrics", metrics[i],
			"--cert", pair.CertFile, "--key", pair.KeyFile, "--tokens", tokens, "--client-ca", authority.CAFile,
			"--client-scope", "tuner-0.example.org=peer", "--client-scope", "tuner-1.example.org=peer")
	}
	call := func(i int, args ...string) (status int, out string) {
		var stdout, stderr bytes.Buffer
		args = append(args, "--server", at[i], "--ca", authority.CAFile, "--token-file", tokenFile, "--retry-for", "20s")
		status = run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		return status, stdout.String() + stderr.String()
	}
	must := func(i int, args ...string) {
		t.Helper()
		if status, out := call(i, args...); status != cli.ExitOK {
			t.Fatalf("%v: status %d: %s", args, status, out)
		}
	}
	space := filepath.Join(dir, "space.yaml")
	writePrivate(t, space, "parameters:\n  x: {type: float, low: 0, high: 1}\n")
	must(0, "create-study", "s", "--space", space, "--minimize", "loss")
	must(1, "ask", "s")
	must(1, "tell", "s", "0", "loss=1")
	if log := servers[0].log(); !strings.Contains(log, "what=Tell") {
		t.Errorf("the call was not forwarded:\n%s", log)
	}
	answer, err := http.Get("http://" + metrics[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if !strings.Contains(string(text), "\ntuner_server_alive 1\n") || strings.Contains(string(text), "\ntuner_forwarded_total 0\n") || !strings.Contains(string(text), "\ntuner_forwarded_total ") {
		t.Errorf("the metrics of the second server: %v\n%s", err, text)
	}
	if status := servers[0].stop(); status != cli.ExitOK {
		t.Errorf("the first server ended with %d:\n%s", status, servers[0].log())
	}
	must(1, "ask", "s")
	if log := servers[1].log(); !strings.Contains(log, "what=Ask") {
		t.Errorf("the study was not taken over:\n%s", log)
	}

	st, err := postgres.Open(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all, err := st.Servers(t.Context())
	if err != nil || len(all) != 1 || all[0].Address != at[1] {
		t.Fatalf("the servers are %+v, %v", all, err)
	}
	if err := st.Unregister(t.Context(), all[0].ID); err != nil {
		t.Fatal(err)
	}
	if status := servers[1].wait(); status != cli.ExitBuried {
		t.Errorf("a server that was buried ended with %d:\n%s", status, servers[1].log())
	}
	if log := servers[1].log(); !strings.Contains(log, "did not renew its lease in time") {
		t.Errorf("it does not say why:\n%s", log)
	}
}

// TestSecondServer starts a second server that cannot forward calls to the first one, or the
// other way round. It is refused while the first one lives, and starts when that one is dead.
func TestSecondServer(t *testing.T) {
	for _, test := range []struct{ first, second string }{{"", ""}, {"127.0.0.1:1", ""}, {"", "127.0.0.1:1"}} {
		address := newDatabase(t)
		serve := func(advertise string) []string {
			args := []string{"serve", "--store", address, "--listen", "127.0.0.1:0", "--takeover", "2s"}
			if advertise != "" {
				args = append(args, "--advertise", advertise)
			}
			return args
		}
		first := startInProcess(t, serve(test.first)...)
		var stderr bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // it ends by itself
		status := run(ctx, serve(test.second), strings.NewReader(""), io.Discard, &stderr)
		cancel()
		for _, part := range []string{fmt.Sprintf("--advertise %q", test.second), fmt.Sprintf("the address %q", test.first), "server 1", "start each of them with --advertise"} {
			if status != cli.ExitUsage || !strings.Contains(stderr.String(), part) {
				t.Errorf("%q beside %q ended with %d and does not say %q:\n%s", test.second, test.first, status, part, stderr.String())
			}
		}
		if status := first.stop(); status != cli.ExitOK {
			t.Errorf("the first server ended with %d:\n%s", status, first.log())
		}
		st, err := postgres.Open(t.Context(), address, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Register(t.Context(), test.first, time.Second); err != nil { // it dies at once
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if second := startInProcess(t, serve(test.second)...); second.stop() != cli.ExitOK {
			t.Errorf("after the death of the first server:\n%s", second.log())
		}
	}
}

// inProcess is the program in this process.
type inProcess struct {
	cancel context.CancelFunc
	status chan int

	mu     sync.Mutex
	stderr bytes.Buffer
}

// startInProcess runs the program until it listens.
func startInProcess(t *testing.T, args ...string) *inProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &inProcess{cancel: cancel, status: make(chan int, 1)}
	t.Cleanup(cancel)
	go func() { p.status <- run(ctx, args, strings.NewReader(""), io.Discard, p) }()
	for begun := time.Now(); !strings.Contains(p.log(), "Listening on"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("it does not listen:\n%s", p.log())
		}
	}
	return p
}

func (p *inProcess) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(text)
}

func (p *inProcess) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *inProcess) stop() int {
	p.cancel()
	return p.wait()
}

func (p *inProcess) wait() int {
	select {
	case status := <-p.status:
		return status
	case <-time.After(30 * time.Second):
		return -1
	}
}

func writePrivate(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
