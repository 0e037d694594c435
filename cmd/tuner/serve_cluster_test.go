package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
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
	t.Parallel() // it waits more than it computes
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
		at[i], metrics[i] = freeport.Address(t), freeport.Address(t)
		name := fmt.Sprintf("tuner-%d.example.org", i)
		pair := authority.Issue(t, name, "127.0.0.1", name)
		servers[i] = startInProcess(t, "serve", "--store", address, "--listen", at[i], "--advertise", at[i], "--takeover", "6s", "--metrics", metrics[i],
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
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) { // until its lease is renewed in time
		answer, err := http.Get("http://" + metrics[1] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if strings.Contains(string(text), "\ntuner_forwarded_total 0\n") || !strings.Contains(string(text), "\ntuner_forwarded_total ") {
			t.Fatalf("the metrics of the second server: %v\n%s", err, text)
		}
		if strings.Contains(string(text), "\ntuner_server_alive 1\n") {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("the second server is not alive:\n%s", text)
		}
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
	t.Parallel() // it waits more than it computes
	for _, test := range []struct{ first, second string }{{"", ""}, {"127.0.0.1:1", ""}, {"", "127.0.0.1:1"}} {
		address := newDatabase(t)
		serve := func(advertise string) []string {
			args := []string{"serve", "--store", address, "--listen", "127.0.0.1:0", "--takeover", "6s"}
			if advertise != "" {
				args = append(args, "--advertise", advertise)
			}
			return args
		}
		first := startInProcess(t, serve(test.first)...)
		var stderr bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it ends by itself
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
		if time.Since(begun) > 2*time.Minute {
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
	case <-time.After(2 * time.Minute):
		return -1
	}
}

func writePrivate(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestServerList has a run and a Python script at three servers on one database, named as a
// list or as one name with three addresses. The servers that answer them are killed, one
// after the other, amid the trials. Each trial is there once, with its value.
func TestServerList(t *testing.T) {
	if testing.Short() {
		t.Skip("other processes: nothing for the race detector; go test ./cmd/tuner runs it")
	}
	t.Parallel() // it waits more than it computes
	database := newDatabase(t)
	port := map[string]string{"grpc": freePort(t), "http": freePort(t)}
	hosts := filepath.Join(t.TempDir(), "hosts")
	writePrivate(t, hosts, "127.0.0.1 localhost\n127.0.0.2 localhost\n127.0.0.3 localhost\n")
	folders := [...]string{shortDir(t), shortDir(t), shortDir(t)}
	var servers [3]*child
	start := func(i int) {
		at, takeover := fmt.Sprintf("127.0.0.%d:", i+1), "2s"
		if i == 2 { // the one that is not killed
			takeover = "1m"
		}
		servers[i] = startChild(t, folders[i], nil, "--store", database, "--listen", at+port["grpc"], "--advertise", at+port["grpc"], "--http", at+port["http"], "--takeover", takeover, "--rate", "-1")
	}
	for i := range servers {
		start(i)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writePrivate(t, filepath.Join(dir, "space.yaml"), "parameters:\n  x: {type: float, low: 0, high: 1}\n")
	if err := os.Symlink(exe, filepath.Join(dir, "tuner")); err != nil {
		t.Fatal(err)
	}
	const trials = 36
	script := fmt.Sprintf(`import bkb, time
study = bkb.create_study("s", {"x": bkb.Float(0, 1)}, minimize="loss", max_trials=%d, proposer="random")
study.optimize(lambda trial: time.sleep(0.05) or trial["x"], n_jobs=3)`, trials)
	list := func(kind string) string {
		return fmt.Sprintf("127.0.0.1:%s,127.0.0.2:%[1]s,127.0.0.3:%[1]s", port[kind])
	}
	run := []string{"./tuner", "run", "s", "--space", "space.yaml", "--minimize", "loss", "--max-trials", fmt.Sprint(trials), "--proposer", "random", "--parallel", "3", "-q", "--format", "none", "--", "sh", "-c", "sleep 0.05; echo loss=$TUNER_PARAM_X"}
	for _, test := range []struct {
		name, server string
		args         []string
	}{
		{"command line", list("grpc"), run},
		{"command line by name", "localhost:" + port["grpc"], append([]string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts}, run...)},
		{"Python", list("http"), []string{python(), "-c", script}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.args[0] == "unshare" {
				if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
					t.Skipf("a file of hosts of its own needs root: %v", err)
				}
			}
			home := t.TempDir()
			source, err := filepath.Abs("../../python/src")
			if err != nil {
				t.Fatal(err)
			}
			work := exec.CommandContext(t.Context(), test.args[0], test.args[1:]...)
			work.Dir, work.Env = dir, append(os.Environ(), "HOME="+home, "TUNER_SERVER="+test.server, "PYTHONPATH="+source)
			var output bytes.Buffer
			work.Stdout, work.Stderr = &output, &output
			if err := work.Start(); err != nil {
				t.Fatal(err)
			}
			look, err := client.Dial(servers[2].state.GRPC, client.Options{Plaintext: true})
			if err != nil {
				t.Fatal(err)
			}
			defer look.Close()
			reach := func(n int) {
				t.Helper()
				for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
					if s, err := look.Study(t.Context(), "s"); err == nil && s.Counts[study.Completed] >= n {
						return
					} else if time.Now().After(deadline) {
						t.Fatalf("no %d trials after 3 minutes: %+v, %v\n%s", n, s.Counts, err, &output)
					}
				}
			}
			for i := range 2 {
				reach(trials / 3 * (i + 1) / 2)
				_ = servers[i].Process.Kill()
				_ = servers[i].Wait()
			}
			if err := work.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			all, _, err := look.Trials(t.Context(), "s", tuner.Filter{})
			if err != nil || len(all) != trials {
				t.Errorf("%d trials, %v, want %d", len(all), err, trials)
			}
			for _, trial := range all {
				if trial.State != study.Completed || trial.Epoch != 1 {
					t.Errorf("trial %d is %v, started %d times", trial.Number, trial.State, trial.Epoch)
				}
			}
			if t.Failed() {
				t.Log(output.String())
			}
			if err := look.DeleteStudy(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "s.logs")); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				start(i)
			}
		})
	}
}
