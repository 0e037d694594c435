//go:build browser

package web_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
