//go:build browser

package web_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/web"
)

// TestBrowserLive follows a study through results, a server that cannot be reached for a
// while, and the deletion of the study.
func TestBrowserLive(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := lively(t)
	r := start(t, s, server.Options{}, loopback)
	// The browser sees the server through a proxy, which can fail.
	target := &url.URL{Scheme: "http", Host: r.http}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}
	address := ""
	listen := func() *http.Server {
		front := &http.Server{Handler: proxy}
		l, err := net.Listen("tcp", "127.0.0.1:"+address)
		if err != nil {
			t.Fatal(err)
		}
		_, address, _ = net.SplitHostPort(l.Addr().String())
		go func() { _ = front.Serve(l) }()
		return front
	}
	front := listen()
	t.Cleanup(func() { front.Close() })
	through := *r
	through.http = "127.0.0.1:" + address
	b := openBrowser(t, &through)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/digits", ".history canvas")
	b.until(t, `document.querySelector("#live").textContent.includes("live")`)
	tell := func(loss float64) int {
		t.Helper()
		asked, err := s.Ask(t.Context(), "digits", study.Ask{Worker: "w", New: true})
		if err != nil {
			t.Fatal(err)
		}
		n := asked.Trials[0].Number
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{loss}}}}
		if _, err := s.Tell(t.Context(), "digits", study.Tell{Trial: n, Outcome: o}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := tell(0.0101)
	b.until(t, fmt.Sprintf(`document.querySelector(".answer .result").textContent.includes("0.0101trial %d")`, n))
	if _, err := s.Report(t.Context(), "digits", study.ReportValues{Trial: 252, Reports: []study.Report{{Step: 13, Values: []study.NamedValue{{Name: "loss", Value: 0.777}}}}}); err != nil {
		t.Fatal(err)
	}
	b.until(t, `document.querySelector(".running").textContent.includes("0.777, step 13")`)
	b.clean(t, "live")

	front.Close()
	b.until(t, `!document.querySelector("#banner").hidden`)
	b.shoot(t, "offline-1280-light")
	if !strings.Contains(b.text(t, ".answer"), "0.0101") {
		t.Error("the last data are gone while the server cannot be reached")
	}
	n = tell(0.0099)
	front = listen()
	back := time.Now()
	b.until(t, fmt.Sprintf(`document.querySelector("#banner").hidden && document.querySelector(".answer .result").textContent.includes("0.0099trial %d")`, n))
	t.Logf("the page was live again after %s", time.Since(back))
	view, err := s.Study(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	if text := b.text(t, ".study-head"); !strings.Contains(text, fmt.Sprintf("trials %d ", view.Trials-view.Added)) && !strings.Contains(strings.Join(strings.Fields(text), " "), fmt.Sprint(view.Trials)) {
		t.Errorf("the study has %d trials, but the page says %q", view.Trials, text)
	}
	b.mu.Lock()
	b.faults = nil // of the connections that failed
	b.mu.Unlock()
	if err := s.DeleteStudy(t.Context(), "digits"); err != nil {
		t.Fatal(err)
	}
	b.until(t, `document.querySelector(".failure") !== null && document.querySelector("#live").textContent.includes("ended")`)
	var rest int
	b.do(t, chromedp.Evaluate(`document.querySelectorAll(".facts, .actions, .tabs").length`, &rest))
	if rest > 0 {
		t.Errorf("%d parts of the deleted study are left", rest)
	}
}

// TestBrowserList follows the list of studies, which asks for no list again.
func TestBrowserList(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := lively(t)
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/", "table.studies")
	b.until(t, `document.querySelectorAll("table.studies tbody tr").length === 5`)
	b.mu.Lock()
	before := b.requests
	b.mu.Unlock()
	b.do(t, chromedp.Focus(`a[href="/studies/done"]`, chromedp.ByQuery))
	imported(t, s, "another", 3)
	b.until(t, `[...document.querySelectorAll("table.studies tbody tr")].some(r => r.textContent.trim().startsWith("another") && r.textContent.includes("3"))`)
	if _, err := s.Resume(t.Context(), "price", study.Resume{}); err != nil {
		t.Fatal(err)
	}
	b.until(t, `[...document.querySelectorAll("table.studies tbody tr")].some(r => r.textContent.trim().startsWith("price") && r.textContent.includes("active"))`)
	if err := s.DeleteStudy(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
	b.until(t, `!document.querySelector("table.studies").textContent.includes("empty") && document.querySelectorAll("table.studies tbody tr").length === 5`)
	b.until(t, `document.activeElement.textContent === "done"`)
	b.mu.Lock()
	if b.requests != before { // neither for the list nor for its changes
		t.Errorf("the page made %d more requests to follow the studies", b.requests-before)
	}
	b.mu.Unlock()
	b.clean(t, "list")

	tick := func(name string) {
		t.Helper()
		b.until(t, fmt.Sprintf(`(() => { const e = document.querySelector('[data-compare=%q]'); if (!e) return false; if (!e.checked) e.click(); return true; })()`, name))
	}
	tick("digits")
	tick("done")
	b.until(t, `[...document.querySelectorAll(".page-head a")].some(a => a.textContent === "Compare 2" && !a.hidden)`)
	b.shoot(t, "list-1280-light")
	b.accessible(t, "list")
	b.do(t, chromedp.Click(`//a[text()="Compare 2"]`, chromedp.BySearch), chromedp.WaitVisible(".view canvas", chromedp.ByQuery))
	if text := b.text(t, ".view table.studies tbody"); !strings.Contains(text, "digits") || !strings.Contains(text, "done") {
		t.Errorf("the comparison is %q", text)
	}
}

// TestBrowserWorkers follows a lease that expires, until another worker has the trial.
func TestBrowserWorkers(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	t.Cleanup(func() { s.Close() })
	c := spec(t)
	c.Lease, c.MaxRetries = 3*time.Second, 1
	if _, err := s.CreateStudy(t.Context(), "s", study.Create{Spec: c}); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/workers", ".empty-page")
	b.accessible(t, "no workers")
	ask := func(worker string) study.Trial {
		t.Helper()
		asked, err := s.Ask(t.Context(), "s", study.Ask{Worker: worker})
		if err != nil {
			t.Fatal(err)
		}
		return asked.Trials[0]
	}
	if n := ask("first").Number; n != 0 {
		t.Fatalf("the trial is %d", n)
	}
	const row = `[...document.querySelectorAll(".workers tbody tr")].map(r => r.innerText).join(";")`
	seen, live := make(chan struct{}), make(chan struct{})
	go func() { // until the page has it
		defer close(live)
		for {
			select {
			case <-seen:
				return
			case <-time.After(200 * time.Millisecond):
				if _, err := s.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: 0}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		close(seen)
		<-live
	})
	defer stop()
	b.until(t, row+`.includes("first") && `+row+`.includes("ends in")`)
	stop()
	begun := time.Now()
	b.until(t, row+`.includes("first") && `+row+`.includes("expired, queued again")`)
	t.Logf("the row read expired %s after the trial was seen to run, under a lease of %s", time.Since(begun), c.Lease)
	b.accessible(t, "expired")
	b.shoot(t, "expired-1280-light")
	if n := ask("second").Number; n != 0 {
		t.Fatalf("the second worker got trial %d", n)
	}
	if _, err := s.Heartbeat(t.Context(), "s", study.Heartbeat{Trial: 0, Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	b.until(t, row+`.includes("second") && !`+row+`.includes("first") && `+row+`.includes("ends in 59 min")`)
	b.clean(t, "workers")
}

// TestBrowserActs does with the page what the command line can do.
func TestBrowserActs(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := lively(t)
	path := tokenPath(t)
	admin := strings.TrimPrefix(addToken(t, path, server.Scope{Role: server.RoleAdmin}), "Bearer ")
	reader := strings.TrimPrefix(addToken(t, path, server.Scope{Role: server.RoleRead}), "Bearer ")
	r := start(t, s, server.Options{TokenFile: path}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	login := func(token string) {
		t.Helper()
		b.fill(t, "#token", token)
		b.until(t, `(() => { const e = document.querySelector("#token"); e?.form.requestSubmit(); return e !== null; })()`)
	}
	press := func(name string) {
		t.Helper()
		b.until(t, fmt.Sprintf(`(() => { const e = [...document.querySelectorAll("button")].find(x => x.textContent === %q); e?.click(); return e !== undefined; })()`, name))
	}
	confirm := func(command string) {
		t.Helper()
		b.until(t, `document.querySelector("dialog .same") !== null`)
		if text := b.text(t, "dialog .same"); !strings.Contains(text, command) {
			t.Errorf("the dialog says %q, want the command %q", text, command)
		}
		// Twice, as an impatient visitor does. The second has no effect.
		b.do(t, chromedp.Evaluate(`(() => { const f = document.querySelector("dialog form"); f.requestSubmit(); f.requestSubmit(); })()`, nil), chromedp.WaitNotPresent("dialog", chromedp.ByQuery))
	}
	state := func() tuner.Study {
		t.Helper()
		v, err := s.Study(t.Context(), "digits")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	b.do(t, chromedp.Navigate(b.origin+"/studies/digits"))
	login("wrong")
	b.until(t, `document.querySelector(".login .error").textContent.includes("does not know this token")`)
	b.accessible(t, "login")
	b.shoot(t, "login-1280-light")
	login(reader)
	b.until(t, `document.querySelector("header").textContent.includes("read")`)
	b.do(t, chromedp.WaitVisible(".history canvas", chromedp.ByQuery))
	before := state().Position
	press("Pause") // it says why it does nothing
	var open bool
	b.do(t, chromedp.Evaluate(`document.querySelector("dialog") !== null`, &open))
	if open || state().Position != before {
		t.Error("a reader can pause a study")
	}
	b.open(t, "/studies/digits/trials/240", ".config td")
	press("Add a note")
	b.do(t, chromedp.Evaluate(`document.querySelector("dialog") !== null`, &open))
	if open {
		t.Error("a reader can add a note")
	}
	b.open(t, "/studies/digits", ".history canvas")
	press("Log out")
	login(admin)
	b.do(t, chromedp.WaitVisible(".history canvas", chromedp.ByQuery))

	press("Pause")
	b.do(t, chromedp.WaitVisible("dialog", chromedp.ByQuery))
	b.accessible(t, "dialog")
	confirm("tuner pause digits")
	if v := state(); v.Status != study.StatusPaused || v.Position != before+1 {
		t.Errorf("after Pause the study is %v, with %d events more", v.Status, v.Position-before)
	}
	press("Resume")
	confirm("tuner resume digits")
	if v := state(); v.Status != study.StatusActive {
		t.Errorf("after Resume the study is %v", v.Status)
	}
	b.until(t, `[...document.querySelectorAll("button")].some(x => x.textContent === "Pause")`)

	press("Enqueue")
	b.fill(t, "dialog #enqueue-0", "0.0123")
	trials := state().Trials
	b.shoot(t, "enqueue-1280-light")
	confirm("lr=0.0123")
	if v := state(); v.Trials != trials+1 || v.Counts[study.Queued] != 1 {
		t.Errorf("after Enqueue there are %d trials more, and %d queued", v.Trials-trials, v.Counts[study.Queued])
	}
	if trial, err := s.Trial(t.Context(), "digits", trials); err != nil || trial.Config.Number("lr") != 0.0123 {
		t.Errorf("the queued trial has lr = %g, %v", trial.Config.Number("lr"), err)
	}

	b.open(t, "/studies/digits/trials/252", ".config td")
	press("Stop")
	b.fill(t, "#stop-reason", "it diverges")
	b.accessible(t, "stop")
	b.shoot(t, "stop-1280-light")
	confirm("tuner stop digits 252 --reason 'it diverges'")
	stops := func(want string) {
		t.Helper()
		if v, err := s.Heartbeat(t.Context(), "digits", study.Heartbeat{Trial: 252}); err != nil || v.Reason != want || v.Stop != (want != "") {
			t.Errorf("the verdict is %+v, %v, want %q", v, err, want)
		}
	}
	stops("it diverges")
	press("Let it go on")
	confirm("tuner stop digits 252 --withdraw")
	stops("")
	b.open(t, "/studies/digits", ".running button")
	press("Stop")
	confirm("tuner stop digits 25")
	b.until(t, `document.querySelector(".running").textContent.includes("stopping")`)

	b.open(t, "/studies/digits/trials/240", ".config td")
	press("Add a note")
	b.fill(t, "#note-key", "seen")
	b.fill(t, "#note-value", "looks fine")
	confirm("tuner note digits 240 'seen=looks fine'")
	b.until(t, `document.querySelector("main").textContent.includes("looks fine")`)
	if trial, err := s.Trial(t.Context(), "digits", 240); err != nil || trial.Attributes["seen"] != "looks fine" {
		t.Errorf("the notes of the trial are %v, %v", trial.Attributes, err)
	}

	b.open(t, "/studies/digits", ".history canvas")
	press("Finish")
	b.fill(t, "#detail", "good enough")
	confirm("tuner finish digits --detail 'good enough'")
	if v := state(); v.Status != study.StatusFinished || v.Finished.Detail != "good enough" {
		t.Errorf("after Finish the study is %v: %q", v.Status, v.Finished.Detail)
	}
	press("Delete")
	b.fill(t, "#typed", "digit")
	var disabled bool
	b.do(t, chromedp.Evaluate(`document.querySelector("dialog button[type=submit]").disabled`, &disabled))
	if !disabled {
		t.Error("a study can be deleted without its name")
	}
	b.fill(t, "#typed", "digits")
	confirm("tuner delete-study digits --yes")
	b.do(t, chromedp.WaitVisible("table.studies", chromedp.ByQuery))
	if _, err := s.Study(t.Context(), "digits"); tuner.CodeOf(err) != tuner.NotFound {
		t.Errorf("after Delete: %v", err)
	}
	b.mu.Lock()
	var rest []string
	for _, f := range b.faults { // 401 before the logins, 404 after the deletion
		if !strings.Contains(f, "401") && !strings.Contains(f, "404") {
			rest = append(rest, f)
		}
	}
	b.faults = rest
	b.mu.Unlock()
	b.clean(t, "acts")
}

// TestBrowserTabs opens a study in eight tabs. A browser has six connections for them.
func TestBrowserTabs(t *testing.T) {
	chromium(t)
	t.Parallel()
	r := start(t, sharedLively(t), server.Options{}, loopback)
	b := openBrowser(t, r)
	b.open(t, "/studies/digits", ".history canvas")
	for i := range 7 {
		tab, closeTab := chromedp.NewContext(b, chromedp.WithExistingBrowserContext(b.profile))
		defer closeTab()
		limited, cancel := context.WithTimeout(tab, time.Minute)
		defer cancel()
		if err := chromedp.Run(limited, chromedp.Navigate(b.origin+"/studies/digits"), chromedp.WaitVisible(".history canvas", chromedp.ByQuery)); err != nil {
			t.Fatalf("tab %d: %v", i+2, err)
		}
	}
}

// TestBrowserKey opens the page of tuner ui without its key, as after a restart, and with it.
func TestBrowserKey(t *testing.T) {
	chromium(t)
	t.Parallel()
	r := start(t, sharedLively(t), server.Options{}, loopback, web.WithKey("right"))
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	refused := func(want string) {
		t.Helper()
		b.do(t, chromedp.WaitVisible(".login", chromedp.ByQuery))
		b.until(t, fmt.Sprintf(`document.querySelector(".login .error").textContent.includes(%q)`, want))
		var fields int
		b.do(t, chromedp.Evaluate(`document.querySelectorAll("input").length`, &fields))
		if fields > 0 {
			t.Error("the page asks for a token that does not exist")
		}
	}
	b.do(t, chromedp.Navigate(b.origin+"/studies/digits"))
	refused("open the address that tuner ui printed when it started.")
	b.shoot(t, "key-1280-light")
	b.accessible(t, "key")
	b.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate(b.origin+"/#key=wrong"))
	refused("the key is not that of this server")
	b.open(t, "/#key=right", "table.studies")
	b.do(t, chromedp.Click(`//button[text()="Log out"]`, chromedp.BySearch))
	refused("open the address that tuner ui printed when it started.")
}
