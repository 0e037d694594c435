package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/store/postgres"
)

// TestDatabaseAway freezes, stops, and locks the database of a server. Meanwhile probes tell
// that the server cannot serve, and metrics are answered.
func TestDatabaseAway(t *testing.T) {
	t.Parallel() // it waits more than it computes
	pg, err := pgtest.Start()
	if err != nil {
		pgtest.Skip(t, err)
	}
	defer pg.Stop()
	if _, _, err := postgres.Init(t.Context(), pg.Address(), postgres.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	at := [2]string{freeport.Address(t), freeport.Address(t)}
	s := startInProcess(t, "serve", "--store", pg.Address()+"?sslmode=disable", "--listen", at[0], "--metrics", at[1])
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: patience}
	get := func(path string) (int, string) {
		answer, err := c.Get("http://" + at[1] + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return 0, ""
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	want := func(when string, serving, sized bool) {
		t.Helper()
		code, status, said := 503, cli.ExitFailure, "NOT_SERVING\n"
		if serving {
			code, status, said = 200, cli.ExitOK, "SERVING\n"
		}
		for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			var stdout bytes.Buffer
			gotCode, _ := get("/readyz")
			gotStatus := run(t.Context(), []string{"--server", at[0], "health"}, strings.NewReader(""), &stdout, io.Discard)
			metrics, text := get("/metrics")
			if metrics != 200 || !strings.Contains(text, "\ntuner_server_alive ") {
				t.Fatalf("%s: /metrics answers %d:\n%s", when, metrics, text)
			}
			if gotCode == code && gotStatus == status && stdout.String() == said && sized == strings.Contains(text, "\ntuner_store_bytes{") {
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("%s: /readyz answers %d, and health ends with %d and says %q\n%s\n%s", when, gotCode, gotStatus, stdout.String(), text, s.log())
			}
		}
	}
	setting := func(value string) {
		t.Helper()
		if err := pg.Set("default_transaction_read_only = " + value); err != nil {
			t.Fatal(err)
		}
	}
	want("at first", true, true)
	thaw, err := freeze(pg)
	if err != nil {
		t.Fatal(err)
	}
	defer thaw() // so that it can end
	want("frozen", false, false)
	thaw()
	want("after that", true, true)
	setting("on")
	want("read-only", false, true)
	setting("off")
	want("after that", true, true)
	pg.Shutdown()
	want("stopped", false, false)
	if err := pg.Run(); err != nil {
		t.Fatal(err)
	}
	want("after that", true, true)
	if status := s.stop(); status != cli.ExitOK {
		t.Errorf("it ended with %d:\n%s", status, s.log())
	}
}

// patience is much longer than a probe may take, and shorter than the database's time limits.
const patience = 9 * time.Second

// freeze stops all processes of a database, as a machine that hangs does, until thaw lets
// them go on.
func freeze(pg *pgtest.Server) (thaw func(), err error) {
	state, err := os.ReadFile(filepath.Join(pg.Dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(state), "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}
	_ = syscall.Kill(main, syscall.SIGSTOP) // it starts no more
	all := []int{main}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ") // state, parent …
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(rest) > 2 && strings.HasPrefix(rest[2:], fmt.Sprint(main, " ")) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			all = append(all, pid)
		}
	}
	return func() {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, nil
}
