//go:build browser

package web_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestCheckSpace checks what the page learns of spaces with faults, with advice, without an
// end and of another format.
func TestCheckSpace(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback)
	check := func(text string) (out struct {
		Faults, Advice []struct {
			Line int
			Text string
		}
		Read, Space string
		Size        *float64
		Samples     []map[string]string
	},
	) {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"space": text})
		a := r.do(t, r.post(t, "/api/space", string(body)))
		if a.status != 200 {
			t.Fatalf("%q: %d %s", text, a.status, a.text)
		}
		if err := json.Unmarshal([]byte(a.text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := check("parameters:\n  lr: {type: float, low: 1, high: 0}\n  n: {type: int, low: 1, hihg: 3}\n")
	if len(got.Faults) < 2 || got.Faults[0].Line != 2 || !strings.Contains(got.Faults[0].Text, `"lr"`) || got.Space != "" {
		t.Errorf("two faults: %+v", got)
	}
	got = check("parameters:\n  n: {type: int, low: 1, high: 3}\n  k: {type: categorical, values: [a, b]}\n")
	if got.Size == nil || *got.Size != 6 || len(got.Samples) != 5 || got.Samples[0]["k"] == "" || got.Faults != nil {
		t.Errorf("six configurations: %+v", got)
	}
	sp, _, err := space.Parse([]byte(got.Space))
	if err != nil || sp.Len() != 2 {
		t.Errorf("the space %s: %v", got.Space, err)
	}
	got = check("parameters: {lr: {type: float, low: 1e-6, high: 1}}")
	if got.Size != nil || len(got.Advice) != 1 || got.Advice[0].Line != 1 || !strings.Contains(got.Advice[0].Text, "log") {
		t.Errorf("a range for a logarithmic scale: %+v", got)
	}
	if got = check(`{"x": {"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": false, "step": null}}}`); got.Read == "" || got.Faults != nil {
		t.Errorf("a space of Optuna: %+v", got)
	}
	if got = check(""); len(got.Faults) == 0 {
		t.Errorf("no text: %+v", got)
	}
	for body, status := range map[string]int{`{"space": 3}`: 400, `{"space": "` + strings.Repeat("x", 3<<20) + `"}`: 413} {
		if a := r.do(t, r.post(t, "/api/space", body)); a.status != status {
			t.Errorf("%.20s: %d, want %d", body, a.status, status)
		}
	}
	if a := r.do(t, r.post(t, "/api/space", "{}", "Content-Type", "", "Content-Type", "text/plain")); a.status != 415 {
		t.Errorf("plain text: %d", a.status)
	}
}

// TestBrowserNew writes a space with a fault, mends it, and creates the study.
func TestBrowserNew(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	t.Cleanup(func() { s.Close() })
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	for _, a := range appearances(1) {
		name := "new-" + a.String()
		b.look(t, a.width, 900, a.scheme)
		b.open(t, "/new", ".samples td")
		var wide bool
		b.do(t, chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide))
		if wide {
			t.Errorf("%s: the page scrolls sideways", name)
		}
		b.shoot(t, name)
		b.clean(t, name)
		b.accessible(t, name)
	}
	b.look(t, 1280, 900, "light")
	b.open(t, "/", ".empty-page")
	b.do(t, chromedp.Click(`.page-head a[href="/new"]`, chromedp.ByQuery), chromedp.WaitVisible(".samples td", chromedp.ByQuery))
	b.fill(t, "#new-space", "parameters:\n  lr: {type: float, low: 0, high: 1, scale: log}\n")
	b.until(t, `document.querySelector(".findings").textContent.includes("One fault") && document.querySelector(".findings").textContent.includes("line 2")`)
	b.shoot(t, "new-fault-1280-light")
	b.accessible(t, "a fault")
	create := func() {
		t.Helper()
		b.do(t, chromedp.Evaluate(`(() => { const f = document.querySelector("form"); f.requestSubmit(); f.requestSubmit(); })()`, nil))
	}
	create() // it has no effect
	b.until(t, `document.querySelector("form").textContent.includes("The study needs a name")`)
	b.fill(t, "#new-name", "mine")
	create()
	b.fill(t, "#new-space", "parameters:\n  lr: {type: float, low: 1e-5, high: 0.1, scale: log}\n")
	b.until(t, `document.querySelector(".findings").textContent.includes("is valid")`)
	b.fill(t, "#new-max-trials", "many")
	b.until(t, `document.querySelector("form").textContent.includes("many must be a whole number")`)
	create()
	for field, text := range map[string]string{"max-trials": "50", "timeout": "1h30m", "proposer-options": "start=7,cost=told", "seed": "123"} {
		b.fill(t, "#new-"+field, text)
	}
	b.do(t, chromedp.Evaluate(`(() => { const s = document.querySelector(".objective select"); s.value = "maximize"; s.dispatchEvent(new Event("input", {bubbles: true})); })()`, nil))
	b.fill(t, ".objective input", "accuracy")
	const line = "tuner create-study mine --space space.yaml --maximize accuracy --max-trials 50 --timeout 1h30m --seed 123 --proposer 'bkb:start=7,cost=told'"
	if text := b.text(t, "form .same code"); text != line {
		t.Errorf("the command is %q, want %q", text, line)
	}
	if _, more, err := s.Studies(t.Context(), "", 1); err != nil || more {
		t.Fatal(err)
	}
	create()
	b.do(t, chromedp.WaitVisible(".study-head", chromedp.ByQuery))
	got, err := s.Study(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	spec := got.Spec
	if spec.MaxTrials != 50 || spec.Timeout != 90*time.Minute || spec.Seed != 123 || spec.MaxRetries != 3 || spec.Objectives[0] != (study.Objective{Name: "accuracy", Direction: study.Maximize}) ||
		spec.Proposer != (study.Component{Name: propose.BKB, Options: `{"cost":"told","start":7}`}) || spec.Pruner.Name != "" || spec.Space.Len() != 1 {
		t.Errorf("the study has %+v", spec)
	}
	all, _, err := s.Studies(t.Context(), "", 0)
	if err != nil || len(all) != 1 {
		t.Errorf("there are %d studies, %v", len(all), err)
	}
	b.clean(t, "created")

	b.open(t, "/new", ".samples td")
	b.fill(t, "#new-name", "mine")
	create()
	b.until(t, `document.querySelector("form [role=alert]").textContent.includes("exists")`)
}
