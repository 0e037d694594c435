//go:build browser && unix

package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestBrowserPeer shows the same trials with this page and with optuna-dashboard, and reports
// what each costs. Times on the clock are from the request to the points of the history.
func TestBrowserPeer(t *testing.T) {
	python := os.Getenv("BKB_OPTUNA_DASHBOARD")
	if python == "" {
		t.Skip("set BKB_OPTUNA_DASHBOARD to a Python with optuna-dashboard, as make bench-ui does")
	}
	chromium(t)
	n := 10_000
	if text := os.Getenv("BKB_PEER_TRIALS"); text != "" {
		n = must(strconv.Atoi(text))
	}
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	defer s.Close()
	imported(t, s, "big", n)
	var rows bytes.Buffer
	for first := 0; first < n; {
		trials, _, err := s.Trials(t.Context(), "big", tuner.Filter{First: first, Limit: 10_000})
		if err != nil || len(trials) == 0 {
			t.Fatal(len(trials), err)
		}
		first += len(trials)
		for _, trial := range trials {
			row := map[string]any{"config": trial.Config}
			if m, ok := trial.Outcome.Metric("loss"); ok && trial.State == study.Completed {
				row["loss"] = m.Mean()
			}
			if err := json.NewEncoder(&rows).Encode(row); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	peer := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(peer)
	c := exec.CommandContext(t.Context(), python, "../../bench/python/uipeer.py", port)
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = &rows, &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	version, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", peer); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("optuna-dashboard does not listen: %s", &stderr)
		}
	}
	ours := start(t, s, server.Options{}, loopback)
	defer ours.stop()
	for _, p := range []struct {
		name, host, path, ready string // a condition in JavaScript
	}{
		{"this page", ours.http, "/studies/big", `document.querySelector(".history canvas") !== null`},
		{"optuna-dashboard " + strings.TrimSpace(version), peer, "/dashboard/studies/0", fmt.Sprintf(
			`[...document.querySelectorAll(".js-plotly-plot")].some(e => e.data?.some(d => d.x?.length > %d) && e.querySelector(".trace, .gl-canvas") !== null)`, n/2)},
	} {
		b := openBrowser(t, &running{http: p.host})
		b.look(t, 1280, 1400, "light")
		before, begun := b.cpu(t), time.Now()
		b.do(t, chromedp.Navigate(b.origin+p.path))
		b.until(t, p.ready)
		points := time.Since(begun)
		b.settle(t)
		used := b.cpu(t) - before
		b.shoot(t, "peer-"+strings.Fields(p.name)[0])
		b.mu.Lock()
		t.Logf("%s, %d trials: %.2f MB in %d requests, %.2f s of main thread CPU, points after %.2f s", p.name, n, b.bytes/1e6, b.requests, used, points.Seconds())
		b.mu.Unlock()
		// All pages are in one browser, and this one would cost the next time.
		if err := chromedp.Cancel(b.Context); err != nil {
			t.Fatal(err)
		}
	}
}
