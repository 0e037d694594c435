//go:build browser

package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// browser is a window of Chromium. It notes what a page must never do.
type browser struct {
	context.Context
	origin  string
	profile cdp.BrowserContextID

	mu       sync.Mutex
	faults   []string // errors on the console, and reports of the policy
	outside  []string // requests to other origins
	requests int
	bytes    float64
}

// chromium skips a test where there is no browser. CI installs one.
func chromium(t testing.TB) {
	t.Helper()
	if chromiumPath() == "" {
		t.Skip("no chromium in PATH; install it with apt-get install chromium, or set BKB_CHROMIUM")
	}
}

// chromiumPath is the path of the browser, or empty.
func chromiumPath() string {
	if path := os.Getenv("BKB_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// oneBrowser starts the browser of all tests.
var oneBrowser = sync.OnceValues(func() (context.Context, error) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromiumPath()), chromedp.WSURLReadTimeout(2*time.Minute))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	first, closeFirst := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {})) // it logs events that it does not know
	whenDone(func() {
		closeFirst()
		stop()
	})
	return first, chromedp.Run(first)
})

// openBrowser opens a window for a server, with a profile of its own: cookies do not depend
// on the port, and a port may come again.
func openBrowser(t testing.TB, r *running) *browser {
	t.Helper()
	chromium(t)
	first, err := oneBrowser()
	if err != nil {
		t.Fatal(err)
	}
	limited, end := context.WithTimeout(first, 9*time.Minute)
	chrome := cdp.WithExecutor(limited, chromedp.FromContext(first).Browser)
	profile, err := target.CreateBrowserContext().WithDisposeOnDetach(true).Do(chrome)
	if err != nil {
		t.Fatal(err)
	}
	window, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(chrome) // a tab that is hidden follows nothing
	if err != nil {
		t.Fatal(err)
	}
	tab, closeTab := chromedp.NewContext(limited, chromedp.WithTargetID(window))
	b := &browser{Context: tab, origin: "http://" + r.http, profile: profile}
	t.Cleanup(func() {
		closeTab()
		end()
	})
	chromedp.ListenTarget(tab, b.note)
	b.do(t, log.Enable(), network.Enable(), performance.Enable().WithTimeDomain(performance.EnableTimeDomainThreadTicks))
	return b
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("exception: %s at %s:%d", e.ExceptionDetails.Error(), e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber+1))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			text, _ := json.Marshal(e.Args)
			b.faults = append(b.faults, "console: "+string(text))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.faults = append(b.faults, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		url := e.Request.URL
		b.requests++
		if !strings.HasPrefix(url, b.origin+"/") && !strings.HasPrefix(url, "blob:"+b.origin) && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			b.outside = append(b.outside, url)
		}
	case *network.EventLoadingFinished:
		b.bytes += e.EncodedDataLength
	}
}

func (b *browser) do(t testing.TB, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.Fatal(err, b.faults)
	}
}

// open navigates, even if only the part after # differs, and waits for the view.
func (b *browser) open(t testing.TB, path, ready string) {
	t.Helper()
	b.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate(b.origin+path), chromedp.WaitVisible(ready, chromedp.ByQuery))
	b.settle(t)
}

// settle waits until no script has run for a while.
func (b *browser) settle(t testing.TB) {
	t.Helper()
	for last := -1.0; ; {
		now := b.cpu(t)
		if now-last < 0.004 {
			return
		}
		last = now
		b.do(t, chromedp.Sleep(150*time.Millisecond))
	}
}

// cpu is the CPU time of the main thread in seconds.
func (b *browser) cpu(t testing.TB) (seconds float64) {
	t.Helper()
	b.do(t, chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if m.Name == "TaskDuration" {
				seconds = m.Value
			}
		}
		return err
	}))
	return seconds
}

// text is that of an element.
func (b *browser) text(t testing.TB, selector string) (s string) {
	t.Helper()
	b.do(t, chromedp.Text(selector, &s, chromedp.ByQuery))
	return s
}

// fill types text into a field as soon as it is there. It is done in one step, because the
// page may draw the field again at any time.
func (b *browser) fill(t testing.TB, selector, text string) {
	t.Helper()
	b.until(t, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (e === null) return false;
		e.value = %q;
		e.dispatchEvent(new Event("input", {bubbles: true}));
		return true;
	})()`, selector, text))
}

// until waits until a condition in JavaScript holds.
func (b *browser) until(t testing.TB, condition string) {
	t.Helper()
	if err := chromedp.Run(b, chromedp.Poll(condition, nil, chromedp.WithPollingTimeout(time.Minute), chromedp.WithPollingInterval(100*time.Millisecond))); err != nil {
		var body string
		_ = chromedp.Run(b, chromedp.Text("body", &body, chromedp.ByQuery))
		t.Fatalf("%s: %v\n%s", condition, err, body)
	}
}

// says waits until an element has a text.
func (b *browser) says(t testing.TB, selector, text string) {
	t.Helper()
	b.until(t, fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, text))
}

// look sets the size and the scheme.
func (b *browser) look(t testing.TB, width, height int64, scheme string) {
	t.Helper()
	b.do(t, emulation.SetDeviceMetricsOverride(width, height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// shoot saves a picture of the whole page in $BKB_SHOTS.
func (b *browser) shoot(t testing.TB, name string) {
	t.Helper()
	dir := os.Getenv("BKB_SHOTS")
	if dir == "" {
		return
	}
	var picture []byte
	b.do(t, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(60).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(dir, name+".webp"), picture, 0o644); err != nil {
		t.Error(err)
	}
}

// clean fails the test if the page did what it must not.
func (b *browser) clean(t testing.TB, name string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		t.Errorf("%s: %s", name, f)
	}
	for _, url := range b.outside {
		t.Errorf("%s: a request to %s", name, url)
	}
	b.faults, b.outside = nil, nil
}

// accessible runs axe-core in the page.
func (b *browser) accessible(t testing.TB, name string) {
	t.Helper()
	script, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	var violations []string
	b.do(t, chromedp.Evaluate(string(script)+";0", nil), chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]}).then(r =>
		r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 160) + " " + n.failureSummary.replaceAll("\n", " "))))`,
		&violations, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range violations {
		t.Errorf("%s: axe: %s", name, v)
	}
}

// twoObjectives makes the study two, in which a faster training is less accurate.
func twoObjectives(t testing.TB, s tuner.Service) {
	t.Helper()
	sp, _, err := space.Parse([]byte("parameters: {width: {type: int, low: 1, high: 1000, scale: log}, rate: {type: float, low: 0, high: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "accuracy", Direction: study.Maximize}, {Name: "seconds", Direction: study.Minimize}}, Seed: 1}
	if _, err := s.CreateStudy(t.Context(), "two", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 3))
	var fastest study.Add
	least := math.Inf(1)
	for range 120 {
		c, err := sp.Decode([]float64{r.Float64(), r.Float64()})
		if err != nil {
			t.Fatal(err)
		}
		w := c.Number("width")
		accuracy := 1 - 0.5*math.Pow(w, -0.3) - 0.2*math.Abs(c.Number("rate")-0.3)
		seconds := 2 + w*(0.5+r.Float64())
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "accuracy", Values: []float64{accuracy}}, {Name: "seconds", Values: []float64{seconds}}}}
		add := study.Add{Config: c, Outcome: o}
		if seconds < least {
			least, fastest = seconds, add
		}
		if _, err := s.Add(t.Context(), "two", add); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Add(t.Context(), "two", fastest); err != nil { // its configuration is on the front, with both trials
		t.Fatal(err)
	}
}

// fixture is a service that the tests which do not change it share.
type fixture struct {
	sync.Once
	service *engine.Engine
}

// get makes the service the first time.
func (f *fixture) get(t testing.TB, service func() *engine.Engine) *engine.Engine {
	t.Helper()
	f.Do(func() {
		f.service = service()
		whenDone(func() { f.service.Close() })
	})
	if f.service == nil {
		t.Fatal("the service that tests share could not be made")
	}
	return f.service
}

var unchanged fixture

// lively is a service with a study that runs, and others in other states.
func lively(t testing.TB) *engine.Engine {
	t.Helper()
	s := makeLively(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// sharedLively is the same for tests that do not change it.
func sharedLively(t testing.TB) *engine.Engine {
	t.Helper()
	return unchanged.get(t, func() *engine.Engine { return makeLively(t) })
}

func makeLively(t testing.TB) *engine.Engine {
	t.Helper()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	ctx := t.Context()
	imported(t, s, "digits", 240)
	r := rand.New(rand.NewPCG(2, 2))
	var trials []study.Trial // all asked for before one is told, after which the model is fitted again
	for k := range 14 {
		asked, err := s.Ask(ctx, "digits", study.Ask{Worker: fmt.Sprintf("gpu-%d", k%4), New: true})
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, asked.Trials[0])
	}
	for k, trial := range trials {
		final := loss(trial.Config, r)
		var reports []study.Report
		for step := range 12 {
			reports = append(reports, study.Report{Step: int64(step + 1), Values: []study.NamedValue{{Name: "loss", Value: final * (1 + 2*math.Exp(-float64(step)/3))}}})
		}
		if _, err := s.Report(ctx, "digits", study.ReportValues{Trial: trial.Number, Epoch: trial.Epoch, Reports: reports}); err != nil {
			t.Fatal(err)
		}
		if k < 11 {
			o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{final}}}}
			if _, err := s.Tell(ctx, "digits", study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: o}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.SetAttributes(ctx, "digits", study.SetAttributes{Trial: study.OfStudy, Attributes: map[string]string{"<b>note</b>": `"><img src=x onerror=alert(1)>`}}); err != nil {
		t.Fatal(err)
	}
	imported(t, s, "price", 40)
	if _, err := s.Pause(ctx, "price", study.Pause{}); err != nil {
		t.Fatal(err)
	}
	imported(t, s, "done", 9)
	if _, err := s.Finish(ctx, "done", study.Finish{Detail: "good enough"}); err != nil {
		t.Fatal(err)
	}
	imported(t, s, "empty", 0)
	twoObjectives(t, s)
	return s
}

// appearance is a size and scheme of the page.
type appearance struct {
	width  int64
	scheme string
}

func (a appearance) String() string { return fmt.Sprintf("%d-%s", a.width, a.scheme) }

// appearances are those of the i-th view: light and wide, or dark and narrow, in turn. If
// BKB_LONG or BKB_SHOTS is set, they are all there are.
func appearances(i int) []appearance {
	all := []appearance{{1280, "light"}, {390, "dark"}, {1280, "dark"}, {390, "light"}, {768, "light"}, {768, "dark"}}
	if !everyView() {
		return all[i%2 : i%2+1]
	}
	return all
}

// everyView tells whether views are checked in each size and scheme, as make test-ci and make
// pictures want, and not every day.
func everyView() bool { return os.Getenv("BKB_LONG") != "" || os.Getenv("BKB_SHOTS") != "" }

// audited tells whether axe checks the i-th view of a test, which takes longer than all else.
// Every day that is one of three.
func audited(i int) bool {
	return i%3 == 0 || everyView()
}

// TestBrowserPages opens each view.
func TestBrowserPages(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := sharedLively(t)
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	views := []struct{ name, path, ready string }{
		{"studies", "/", "table.studies"},
		{"overview", "/studies/digits", ".history canvas"},
		{"parameters", "/studies/digits#parameters", ".slices canvas"},
		{"trials", "/studies/digits#trials", "table.trials td"},
		{"model", "/studies/digits#model", ".words li"},
		{"no-model", "/studies/done#model", ".words li"},
		{"settings", "/studies/digits#settings", "main pre"},
		{"curves", "/studies/digits#curves", ".view canvas"},
		{"no-curves", "/studies/done#curves", ".view .hint"},
		{"cost", "/studies/digits#cost", ".view td"},
		{"front", "/studies/two#front", ".view canvas"},
		{"workers", "/workers", ".workers td"},
		{"compare", "/compare?study=digits&study=price&study=done", ".view canvas"},
		{"trial", "/studies/digits/trials/243", ".config td"},
		{"running", "/studies/digits/trials/252", ".config td"},
		{"empty", "/studies/empty", ".empty-page"},
		{"none", "/studies/none", ".failure"},
	}
	for i, v := range views {
		for _, a := range appearances(i) {
			b.look(t, a.width, 900, a.scheme)
			name := fmt.Sprintf("%s-%s", v.name, a)
			b.open(t, v.path, v.ready)
			if v.name == "none" { // the failed requests are the point
				b.mu.Lock()
				b.faults = slices.DeleteFunc(b.faults, func(f string) bool { return strings.Contains(f, "404") })
				b.mu.Unlock()
			}
			b.sound(t, name, audited(i))
		}
	}
	b.open(t, "/studies/digits#curves", ".view canvas")
	b.says(t, ".view", "10 of the next best")
	b.says(t, ".view", "3 running")
	b.open(t, "/compare?study=digits&study=done", ".view canvas")
	if text := b.text(t, ".view table.studies tbody"); strings.Count(text, "#") != 2 || !strings.Contains(text, "digits") || !strings.Contains(text, "done") {
		t.Errorf("the comparison is %q", text)
	}
	best, err := s.Best(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	b.open(t, "/studies/two#front", ".view canvas")
	b.says(t, ".view .readout", fmt.Sprintf("%d of 121 completed trials", len(best)+1)) // one configuration has two
	diagnosis, err := s.Diagnose(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	b.open(t, "/studies/digits#model", ".words li")
	if diagnosis.Predicted == 0 {
		t.Error("no outcome was predicted")
	}
	b.says(t, ".words", fmt.Sprintf("%d of the last %d outcomes are in the 95 %% intervals", diagnosis.Covered, diagnosis.Predicted))
	b.says(t, ".words", "Under the model")
	var injected bool
	b.open(t, "/studies/digits#settings", "main pre")
	b.do(t, chromedp.Evaluate(`document.querySelector("main img, main b") !== null`, &injected))
	if injected || !strings.Contains(b.text(t, "main"), "<b>note</b>") {
		t.Error("a note became markup")
	}
}

// TestBrowserBudget measures a study of 100,000 trials. The limits are CPU time and counts,
// because times on the clock depend on what else the machine does.
func TestBrowserBudget(t *testing.T) {
	chromium(t)
	m := measureBrowser(t, 100_000)
	for _, x := range []struct {
		name      string
		got, most float64
	}{{"bytes", m.bytes, 2.6e6}, {"load in s", m.load, 0.8}, {"brush in s", m.brush, 0.15}, {"zoom in s", m.zoom, 0.04}, {"elements", m.elements, 3000}, {"requests", m.requests, 40}} {
		if x.got > x.most || x.got <= 0 {
			t.Errorf("%s: %g, want at most %g", x.name, x.got, x.most)
		}
	}
}

// TestBrowserMillion opens a study of a million trials.
func TestBrowserMillion(t *testing.T) {
	chromium(t)
	if os.Getenv("BKB_LONG") == "" {
		t.Skip("it adds a million trials; set BKB_LONG=1")
	}
	if m := measureBrowser(t, 1_000_000); m.brush > 0.3 {
		t.Errorf("a brush takes %g s, want at most 0.3 s", m.brush)
	}
}

// measures are costs of the page of a study. Times are CPU time of the main thread in s.
type measures struct{ bytes, requests, load, brush, zoom, elements float64 }

// measureBrowser opens a study of n trials, zooms and brushes as a visitor does.
func measureBrowser(t *testing.T, n int) (m measures) {
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	defer s.Close()
	imported(t, s, "big", n)
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	b := openBrowser(t, r)
	b.look(t, 1280, 1400, "light")
	b.open(t, "/", "table.studies")
	b.mu.Lock()
	b.bytes, b.requests = 0, 0
	b.mu.Unlock()
	before := b.cpu(t)
	b.do(t, chromedp.Navigate(b.origin+"/studies/big"), chromedp.WaitVisible(".history canvas", chromedp.ByQuery))
	b.settle(t)
	m.load = b.cpu(t) - before
	b.shoot(t, fmt.Sprintf("big-%d", n))
	b.do(t, chromedp.Evaluate(`document.querySelectorAll("*").length`, &m.elements))
	b.mu.Lock()
	m.bytes, m.requests = b.bytes, float64(b.requests)
	b.mu.Unlock()

	var box struct{ X, Y, Width, Height float64 }
	place := func(selector string) {
		b.do(t, chromedp.Evaluate(`(() => { const e = document.querySelector("`+selector+`"); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return {x: r.x, y: r.y, width: r.width, height: r.height}; })()`, &box))
	}
	if n >= 1000 { // imported trials are enough for a model, which no ask has made yet
		b.do(t, chromedp.Evaluate(`location.hash = "#model"`, nil), chromedp.WaitVisible(".words li", chromedp.ByQuery))
		if text := strings.ToLower(b.text(t, ".view")); !strings.Contains(text, "next ask") || strings.Contains(text, "too few") {
			t.Errorf("without an ask the model is %q", text)
		}
		b.do(t, chromedp.Evaluate(`location.hash = "#overview"`, nil), chromedp.WaitVisible(".history canvas", chromedp.ByQuery))
		b.settle(t)
	}

	place(".history canvas")
	b.do(t, chromedp.MouseEvent("mouseMoved", box.X+0.3*box.Width, box.Y+50))
	b.settle(t)
	b.do(t, chromedp.MouseEvent("mousePressed", box.X+0.3*box.Width, box.Y+50, chromedp.ButtonLeft), chromedp.MouseEvent("mouseMoved", box.X+0.5*box.Width, box.Y+52, chromedp.ButtonLeft))
	before = b.cpu(t)
	b.do(t, chromedp.MouseEvent("mouseReleased", box.X+0.5*box.Width, box.Y+52, chromedp.ButtonLeft), chromedp.Sleep(500*time.Millisecond))
	m.zoom = b.cpu(t) - before

	place(".parallel canvas")
	x, from, to := box.X+14, box.Y+100, box.Y+160
	b.do(t, chromedp.MouseEvent("mouseMoved", x, from))
	b.settle(t)
	b.do(t, chromedp.MouseEvent("mousePressed", x, from, chromedp.ButtonLeft))
	before = b.cpu(t)
	b.do(t, chromedp.MouseEvent("mouseMoved", x, to, chromedp.ButtonLeft), chromedp.Sleep(700*time.Millisecond))
	m.brush = b.cpu(t) - before
	b.do(t, chromedp.MouseEvent("mouseReleased", x, to, chromedp.ButtonLeft))
	b.settle(t)
	if status := b.text(t, ".parallel ~ .readout"); !strings.Contains(status, " of ") || !strings.Contains(status, "pass the filters") {
		t.Errorf("after the brush the page says %q", status)
	}
	b.shoot(t, fmt.Sprintf("brushed-%d", n))
	b.clean(t, "big") // before the test reads pixels, which Chromium warns of
	// Beside the axis, lines are where the brush lets them pass, and nowhere else.
	var drawn struct{ Above, Within, Below int }
	b.do(t, chromedp.Evaluate(`(() => {
		const g = document.querySelector(".parallel canvas").getContext("2d");
		const count = (from, to) => { const d = g.getImageData(16, from, 2, to - from).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; };
		return {above: count(30, 75), within: count(110, 150), below: count(190, 200)};
	})()`, &drawn))
	if drawn.Within < 70 || drawn.Above > 8 || drawn.Below > 8 { // marks of the axis are there
		t.Errorf("pixels drawn beside the brushed axis: %+v", drawn)
	}
	t.Logf("%d trials: %.0f requests, %.2f MB, load %.0f ms, brush %.0f ms, zoom %.0f ms of main thread CPU, %.0f elements", n, m.requests, m.bytes/1e6, m.load*1e3, m.brush*1e3, m.zoom*1e3, m.elements)
	return m
}
