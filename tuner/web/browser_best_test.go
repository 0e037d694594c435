//go:build browser

package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// unworthy makes a study of five trials. Only trial 0 counts for the best, and it has the
// greatest loss.
func unworthy(t testing.TB, s tuner.Service, name string, objectives ...string) {
	t.Helper()
	spec := study.Spec{Space: studySpace(t), Seed: 1, Proposer: study.Component{Name: propose.BKB, Options: `{"constraints": {"size": {"max": 5}}}`}}
	for _, o := range objectives {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: o, Direction: study.Minimize})
	}
	if _, err := s.CreateStudy(t.Context(), name, study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	for i, o := range []struct {
		state       study.TrialState
		value, size float64
	}{{study.Completed, 0.5, 1}, {study.Completed, 0.01, 9}, {study.Pruned, 0.001, 1}, {study.Failed, 0.0005, 1}, {study.Infeasible, 0.0001, 1}} {
		asked, err := s.Ask(t.Context(), name, study.Ask{New: true})
		if err != nil {
			t.Fatal(err)
		}
		outcome := study.Outcome{State: o.state, Metrics: []study.Metric{{Name: "size", Values: []float64{o.size}}}}
		if o.state == study.Failed {
			outcome.Reason = study.FailedCrash
		}
		for _, metric := range objectives {
			outcome.Metrics = append(outcome.Metrics, study.Metric{Name: metric, Values: []float64{o.value}})
		}
		if _, err := s.Tell(t.Context(), name, study.Tell{Trial: asked.Trials[0].Number, Outcome: outcome}); err != nil {
			t.Fatalf("trial %d: %v", i, err)
		}
	}
}

// TestBrowserFar opens a study with two objectives and one trial that is far worse than the
// others. The front takes most of its chart all the same.
func TestBrowserFar(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	defer s.Close()
	spec := study.Spec{Space: studySpace(t), Seed: 1, Proposer: study.Component{Name: "random"}, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}, {Name: "score", Direction: study.Maximize}}}
	if _, err := s.CreateStudy(t.Context(), "far", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		asked, err := s.Ask(t.Context(), "far", study.Ask{New: true})
		if err != nil {
			t.Fatal(err)
		}
		values := []float64{float64(i) - 5, float64(i)}
		if i == 11 {
			values = []float64{1e6, -1e6}
		}
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: values[:1]}, {Name: "score", Values: values[1:]}}}
		if _, err := s.Tell(t.Context(), "far", study.Tell{Trial: asked.Trials[0].Number, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/far", ".pairs canvas")
	if text := b.text(t, ".view .readout"); text != "11 of 12 completed trials are on the front, 1 far value of loss at the edge, 1 far value of score at the edge" {
		t.Errorf("the front is %q", text)
	}
	var red struct{ Width, Height float64 } // of the front, as shares of the canvas
	b.do(t, chromedp.Evaluate(`(() => {
		const c = document.querySelector(".pairs canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		const best = getComputedStyle(document.documentElement).getPropertyValue("--best").trim(), n = parseInt(best.slice(1), 16);
		const xs = [], ys = [];
		for (let i = 0; i < d.length; i += 4) if (d[i] === n >> 16 && d[i + 1] === ((n >> 8) & 255) && d[i + 2] === (n & 255)) { xs.push((i / 4) % c.width); ys.push(Math.floor(i / 4 / c.width)); }
		return {width: (Math.max(...xs) - Math.min(...xs)) / c.width, height: (Math.max(...ys) - Math.min(...ys)) / c.height};
	})()`, &red))
	if red.Width < 0.25 || red.Height < 0.2 {
		t.Errorf("the front takes %.2f × %.2f of its chart", red.Width, red.Height)
	}
	b.shoot(t, "far-1280-light")
}

// TestBrowserBest opens a study whose best trial is not the one with the least told value.
func TestBrowserBest(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	defer s.Close()
	unworthy(t, s, "one", "loss")
	unworthy(t, s, "both", "loss", "seconds")
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/one", ".history canvas")
	if text := b.text(t, ".answer .result"); !strings.Contains(text, "0.5\ntrial 0\n") {
		t.Errorf("the answer is %q, want that 0.5 in trial 0 is the best", text)
	}
	if text := b.text(t, ".parallel ~ .readout"); text != "2 completed trials" {
		t.Errorf("the parallel coordinates have %q", text)
	}
	var rows [][]string
	b.do(t, chromedp.Evaluate(`[...document.querySelectorAll("[aria-labelledby='figure-one-history'] .figure-foot button")].find(x => x.textContent === "Show as table").click()`, nil),
		chromedp.Evaluate(`[...document.querySelectorAll("[aria-labelledby='figure-one-history'] .as-table tbody tr")].map(r => [...r.cells].map(c => c.textContent))`, &rows))
	if got, want := fmt.Sprint(rows), "[[0 completed 0.5 0.5] [1 breaks a constraint 0.01 0.5] [2 pruned – 0.5] [3 failed – 0.5] [4 infeasible – 0.5]]"; got != want {
		t.Errorf("the history is\n%s, want\n%s", got, want)
	}
	b.shoot(t, "constraints-1280-light")
	b.open(t, "/studies/one#trials", "table.trials td")
	var muted []string
	b.do(t, chromedp.Evaluate(`[...document.querySelectorAll("table.trials tr.muted")].map(r => r.cells[0].textContent.trim() + " " + r.cells[1].textContent)`, &muted))
	if fmt.Sprint(muted) != "[1 breaks a constraint]" {
		t.Errorf("the muted trials are %q", muted)
	}
	b.open(t, "/studies/both#front", ".view canvas")
	if text := b.text(t, ".view .readout"); !strings.HasPrefix(text, "1 of 2 completed trials") || !strings.HasSuffix(text, "and 1 breaks a constraint") {
		t.Errorf("the front is %q", text)
	}
	if text := b.text(t, "[aria-label='List of the front'] tbody"); !strings.HasPrefix(text, "#0\t") || strings.Contains(text, "\n") {
		t.Errorf("the trials on the front are %q", text)
	}
	b.clean(t, "best")
}
