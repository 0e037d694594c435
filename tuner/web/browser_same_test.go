//go:build browser && unix

package web_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// program builds the command line and returns its folder.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tuner")
	if err != nil {
		return "", err
	}
	whenDone(func() { os.RemoveAll(dir) })
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "tuner"), "../../cmd/tuner").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building cmd/tuner: %w: %s", err, out)
	}
	return dir, nil
})

// shell makes a command of a line for a shell, in which tuner calls a server.
func shell(t testing.TB, r *running, dir, line string) *exec.Cmd {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TUNER_SERVER="+r.grpc)
	return c
}

// acting is a service whose events can be read, with a study that has finished and running
// trials.
type acting struct {
	*engine.Engine
	store store.Store
}

func newActing(t testing.TB) *acting {
	t.Helper()
	a := &acting{store: memory.New()}
	a.Engine = engine.Open(a.store, engine.Options{LongLived: true})
	t.Cleanup(func() { a.Close() })
	imported(t, a, "digits", 12)
	if _, err := a.Ask(t.Context(), "digits", study.Ask{Worker: "w", Lease: time.Hour, New: true}); err != nil {
		t.Fatal(err)
	}
	if err := a.SetAttributes(t.Context(), "digits", study.SetAttributes{Trial: study.OfStudy, Attributes: study.Attributes{"old": "text"}}); err != nil {
		t.Fatal(err)
	}
	return a
}

// events are those of all studies by name. They leave out what two equal histories differ in,
// which is times, ids of requests, and callers.
func (a *acting) events(t testing.TB) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for info, err := range a.store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		list := []string{}
		for record, err := range a.store.Read(t.Context(), info.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			e := record.Event
			e.Request, e.Caller, e.Time = study.Request{}, "", time.Unix(1_800_000_000, 0)
			text := fmt.Sprintf("%T %+v", e.Body, e.Body)
			switch b := e.Body.(type) {
			case study.Started:
				text = fmt.Sprint("started ", b.Trial, b.Epoch, b.Worker)
			case study.Created: // the space is a pointer
				text = fmt.Sprintf("created %s %+v", must(b.Spec.Space.MarshalJSON()), func() study.Spec { b.Spec.Space = nil; return b.Spec }())
			}
			list = append(list, text)
		}
		all[info.Name] = list
	}
	return all
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestBrowserSame does each action of the page in the browser, and by the command that the
// page shows on a server with the same history. Both leave the same events.
func TestBrowserSame(t *testing.T) {
	chromium(t)
	t.Parallel()
	page, line := newActing(t), newActing(t)
	byPage, byLine := start(t, page, server.Options{}, loopback), start(t, line, server.Options{}, loopback)
	b := openBrowser(t, byPage)
	b.look(t, 1280, 900, "light")
	dir := t.TempDir()
	type step struct{ field, text string }
	for _, c := range []struct {
		name, path, ready string
		press             string // the button that opens the form, none if it is the page
		steps             []step
		adds              int // events on the study digits
	}{
		{"create", "/new", ".samples td", "", []step{{"#new-space", "parameters:\n  lr: {type: float, low: 1e-5, high: 0.1, scale: log}\n  n: {type: int, low: 1, high: 8}\n"}, {"#new-name", "fresh"}, {".objective input", "accuracy"}, {"#new-max-trials", "50"}, {"#new-timeout", "1h30m"}, {"#new-max-cost", "2.5"}, {"#new-lease", "90s"}, {"#new-max-retries", "1"}, {"#new-proposer-options", "start=7,cost=told"}, {"#new-pruner", "median"}, {"#new-pruner-options", "warmup_steps=5"}}, 0},
		{"create another", "/new", ".samples td", "", []step{{"#new-name", "plain"}, {"#new-proposer", "sobol"}}, 0},
		{"pause", "/studies/digits", ".history canvas", "Pause", nil, 1},
		{"resume", "/studies/digits", ".history canvas", "Resume", nil, 1},
		{"enqueue", "/studies/digits", ".history canvas", "Enqueue", []step{{"dialog #enqueue-0", "0.0123"}}, 1},
		{"enqueue again", "/studies/digits/trials/3", ".config td", "Enqueue again", nil, 1},
		{"note on a study", "/studies/digits#settings", "main pre", "Add a note", []step{{"#note-key", "owner"}, {"#note-value", "Anna's $HOME \"x\""}}, 1},
		{"edit a note", "/studies/digits#settings", "main pre", "Edit", []step{{"#note-value", ""}}, 1},
		{"note on a trial", "/studies/digits/trials/3", ".config td", "Add a note", []step{{"#note-key", "seen"}, {"#note-value", "two\nlines"}}, 1},
		{"stop", "/studies/digits/trials/12", ".config td", "Stop", []step{{"#stop-reason", "it's over"}}, 1},
		{"withdraw", "/studies/digits/trials/12", ".config td", "Let it go on", nil, 1},
		{"stop as usual", "/studies/digits", ".running button", "Stop", nil, 1},
		{"finish", "/studies/digits", ".history canvas", "Finish", []step{{"#detail", "good enough"}}, 1},
		{"delete", "/studies/digits", ".history canvas", "Delete", []step{{"#typed", "digits"}}, 0},
	} {
		before := len(page.events(t)["digits"])
		form := "dialog"
		b.open(t, c.path, c.ready)
		if c.press == "" {
			form = "main form"
		} else {
			b.until(t, fmt.Sprintf(`(() => { const e = [...document.querySelectorAll("button")].find(x => x.textContent === %q && !x.hasAttribute("aria-disabled")); e?.click(); return e !== undefined; })()`, c.press))
			b.until(t, `document.querySelector("dialog .same") !== null`)
		}
		for _, s := range c.steps {
			b.fill(t, s.field, s.text)
		}
		if c.press == "" {
			var text string
			b.until(t, `document.querySelector("main form button[type=submit]").getAttribute("aria-disabled") === null`)
			b.do(t, chromedp.Evaluate(`document.querySelector("#new-space").value`, &text))
			if err := os.WriteFile(filepath.Join(dir, "space.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := ""
		b.do(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector("%s .same code").textContent`, form), &command))
		b.do(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector("%s button[type=submit]").click()`, form), nil))
		if c.press == "" {
			b.do(t, chromedp.WaitVisible(".study-head", chromedp.ByQuery))
		} else {
			b.do(t, chromedp.WaitNotPresent("dialog", chromedp.ByQuery))
		}
		if out, err := shell(t, byLine, dir, command).CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v\n%s", c.name, command, err, out)
		}
		got, want := page.events(t), line.events(t)
		if diff := different(want, got); diff != "" {
			t.Errorf("%s: the page and %s leave different events: %s", c.name, command, diff)
		}
		if c.adds > 0 && len(got["digits"]) != before+c.adds {
			t.Errorf("%s: %d events more, want %d", c.name, len(got["digits"])-before, c.adds)
		}
	}
	if all := page.events(t); len(all) != 2 || all["fresh"] == nil || all["plain"] == nil {
		t.Errorf("the studies are %v", all)
	}
}

// different tells where two sets of events differ.
func different(a, b map[string][]string) string {
	for _, pair := range [][2]map[string][]string{{a, b}, {b, a}} {
		for name, list := range pair[0] {
			other, ok := pair[1][name]
			if !ok {
				return "only one has the study " + name
			}
			for i := range min(len(list), len(other)) {
				if list[i] != other[i] {
					return fmt.Sprintf("event %d of %s is\n%s\nor\n%s", i+1, name, a[name][i], b[name][i])
				}
			}
			if len(list) != len(other) {
				return fmt.Sprintf("%s has %d or %d events", name, len(a[name]), len(b[name]))
			}
		}
	}
	return ""
}

// losing is a proxy before a server that loses the answers to calls of a method. The
// server has done them then.
type losing struct {
	method atomic.Pointer[string]
	lost   atomic.Int32
}

// lose loses the answers to a method until it is called with another.
func (l *losing) lose(method string) {
	l.lost.Store(0)
	l.method.Store(&method)
}

// through starts the proxy and returns the server as seen through it.
func (l *losing) through(t testing.TB, r *running) *running {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: r.http}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		ModifyResponse: func(res *http.Response) error {
			if m := l.method.Load(); m == nil || !strings.HasSuffix(res.Request.URL.Path, *m) {
				return nil
			}
			l.lost.Add(1)
			panic(http.ErrAbortHandler)
		},
	}
	at, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: proxy}
	go func() { _ = front.Serve(at) }()
	t.Cleanup(func() { front.Close() })
	out := *r
	out.http = at.Addr().String()
	return &out
}

// TestBrowserLostAnswers sends each of three changes with a double click, and again when its
// answer was lost. Each has one effect.
func TestBrowserLostAnswers(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := newActing(t)
	r := start(t, s, server.Options{}, loopback)
	var proxy losing
	b := openBrowser(t, proxy.through(t, r))
	b.look(t, 1280, 900, "light")
	press := func(name string) {
		t.Helper()
		b.until(t, fmt.Sprintf(`(() => { const e = [...document.querySelectorAll("button")].find(x => x.textContent === %q); e?.click(); return e !== undefined; })()`, name))
	}
	twice := func(form string) { // as a double click does
		t.Helper()
		b.do(t, chromedp.Evaluate(fmt.Sprintf(`(() => { const e = document.querySelector("%s button[type=submit]"); e.click(); e.click(); })()`, form), nil))
	}
	lost := func(form string) { // the page says so, and offers the button again
		t.Helper()
		b.until(t, fmt.Sprintf(`(() => { const f = document.querySelector(%q), e = f?.querySelector("[role=alert]"), s = f?.querySelector("button[type=submit]"); return Boolean(e) && !e.hidden && e.textContent.includes("cannot be reached") && !s.disabled && s.getAttribute("aria-disabled") === null; })()`, form))
		if proxy.lost.Load() == 0 { // a browser may try again by itself
			t.Fatal("no answer was lost")
		}
		proxy.lose("/none")
	}

	b.open(t, "/new", ".samples td")
	b.fill(t, "#new-name", "once")
	proxy.lose("/CreateStudy")
	twice("main form")
	lost("main form")
	twice("main form")
	b.do(t, chromedp.WaitVisible(".study-head", chromedp.ByQuery))
	if got := s.events(t)["once"]; len(got) != 1 {
		t.Errorf("the study has the events %q", got)
	}

	b.open(t, "/studies/digits", ".history canvas")
	before := len(s.events(t)["digits"])
	press("Enqueue")
	b.fill(t, "dialog #enqueue-0", "0.0123")
	proxy.lose("/EnqueueTrial")
	twice("dialog")
	lost("dialog")
	twice("dialog")
	b.do(t, chromedp.WaitNotPresent("dialog", chromedp.ByQuery))
	if got := s.events(t)["digits"]; len(got) != before+1 {
		t.Errorf("%d events more after an enqueue: %q", len(got)-before, got[before:])
	}

	press("Delete")
	b.fill(t, "#typed", "digits")
	proxy.lose("/DeleteStudy")
	twice("dialog")
	lost("dialog")
	imported(t, s, "digits", 3) // somebody makes another study of the name meanwhile
	twice("dialog")
	b.do(t, chromedp.WaitVisible("table.studies", chromedp.ByQuery))
	if got := s.events(t)["digits"]; len(got) != 4 {
		t.Errorf("the study of the same name has the events %q", got)
	}
}

// TestBrowserKilledWorker kills a worker in the middle of a trial, until another one has the
// trial.
func TestBrowserKilledWorker(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	t.Cleanup(func() { s.Close() })
	c := spec(t)
	c.Lease, c.MaxRetries = 6*time.Second, 3
	if _, err := s.CreateStudy(t.Context(), "s", study.Create{Spec: c}); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, server.Options{}, loopback)
	dir := t.TempDir()
	work := func(name string) *exec.Cmd {
		t.Helper()
		w := shell(t, r, dir, "exec tuner run s --worker "+name+" -- sleep 600")
		w.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var out bytes.Buffer
		w.Stdout, w.Stderr = &out, &out
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-w.Process.Pid, syscall.SIGKILL)
			_ = w.Wait()
			if t.Failed() {
				t.Logf("%s said %s", name, &out)
			}
		})
		return w
	}
	first := work("first")
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/workers", ".workers td")
	const row = `[...document.querySelectorAll(".workers tbody tr")].map(r => r.innerText).join(";")`
	b.until(t, row+`.includes("first") && `+row+`.includes("ends in")`)
	time.Sleep(c.Lease + time.Second) // its heartbeats hold the lease
	var text string
	b.do(t, chromedp.Evaluate(row, &text))
	if !strings.Contains(text, "ends in") {
		t.Fatalf("the worker lives, and the page says %q", text)
	}
	if err := syscall.Kill(-first.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	b.until(t, row+`.includes("first") && `+row+`.includes("expired")`)
	t.Logf("the row read expired %s after the worker was killed, under a lease of %s", time.Since(killed), c.Lease)
	work("second")
	b.until(t, row+`.includes("second") && !`+row+`.includes("first") && `+row+`.includes("#0") && `+row+`.includes("ends in")`)
	b.clean(t, "workers")
}

// TestBrowserKilledServer kills the server under an open page, and starts it again.
func TestBrowserKilledServer(t *testing.T) {
	chromium(t)
	t.Parallel()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var r running
	r.grpc, r.http = freeport.Address(t), freeport.Address(t) // which stay the same
	dir := t.TempDir()
	serve := func() *exec.Cmd {
		t.Helper()
		c := exec.CommandContext(t.Context(), filepath.Join(bin, "tuner"), "--db", "tuner.db", "serve", "--listen", r.grpc, "--http", r.http, "--ready-file", "ready.json")
		c.Dir = dir
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			text, err := os.ReadFile(filepath.Join(dir, "ready.json"))
			if err == nil && bytes.Contains(text, fmt.Appendf(nil, `"pid":%d,`, c.Process.Pid)) {
				return c
			}
			if time.Now().After(deadline) {
				t.Fatalf("the server does not become ready: %s", &out)
			}
		}
	}
	line := func(text string) string {
		t.Helper()
		out, err := shell(t, &r, dir, text).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", text, err, out)
		}
		return string(out)
	}
	first := serve()
	if err := os.WriteFile(filepath.Join(dir, "space.yaml"), []byte("parameters: {lr: {type: float, low: 0, high: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line("tuner create-study digits --space space.yaml --minimize loss")
	tell := `i=0; while [ $i -lt 7 ]; do tuner ask digits > asked.json; n=$(grep -o '"trial":[0-9]*' asked.json | cut -d: -f2); tuner tell digits $n 0.$n; i=$((i+1)); done`
	line(tell)
	b := openBrowser(t, &r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/digits", ".history canvas")
	b.until(t, `document.querySelector("#live").textContent.includes("live")`)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	b.until(t, `!document.querySelector("#banner").hidden`)
	serve()
	back := time.Now()
	b.until(t, `document.querySelector("#banner").hidden && document.querySelector("#live").textContent.includes("live")`)
	t.Logf("the page was live %s after the server", time.Since(back))
	line(tell)
	rows := strings.Count(line("tuner trials digits -f csv"), "\n") - 1
	if rows != 14 {
		t.Fatalf("there are %d trials", rows)
	}
	b.until(t, fmt.Sprintf(`document.querySelector(".study-head").textContent.includes("trials%d")`, rows))
	b.do(t, chromedp.Evaluate(`location.hash = "#trials"`, nil))
	b.until(t, fmt.Sprintf(`document.querySelectorAll("table.trials [data-compare]").length === %d && document.querySelector(".view .readout").textContent.startsWith("%d of %d")`, rows, rows, rows))
}
