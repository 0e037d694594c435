//go:build browser

package web_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestBrowserEpochs opens a trial that began again. Its lines have the last epoch alone.
func TestBrowserEpochs(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{LongLived: true})
	defer s.Close()
	spec := study.Spec{Space: studySpace(t), Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, MaxRetries: 1}
	if _, err := s.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	report := func(epoch int, values ...float64) {
		t.Helper()
		var reports []study.Report
		for k, v := range values {
			reports = append(reports, study.Report{Step: int64(k + 1), Values: []study.NamedValue{{Name: "loss", Value: v}}})
		}
		if _, err := s.Report(t.Context(), "s", study.ReportValues{Trial: 0, Epoch: epoch, Reports: reports}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(worker string, epoch int, lease time.Duration) {
		t.Helper()
		asked, err := s.Ask(t.Context(), "s", study.Ask{Worker: worker, Lease: lease})
		if err != nil || asked.Trials[0].Number != 0 || asked.Trials[0].Epoch != epoch {
			t.Fatalf("the ask gives %+v, %v", asked, err)
		}
	}
	const lease = 4 * time.Second
	ask("first", 1, lease)
	ctx, die := context.WithCancel(t.Context())
	var worker sync.WaitGroup
	worker.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.Heartbeat(ctx, "s", study.Heartbeat{Lease: lease}); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	defer worker.Wait()
	defer die()
	report(1, 90, 80, 70, 60)
	r := start(t, s, server.Options{}, loopback)
	defer r.stop()
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/s", ".running li")
	b.until(t, `document.querySelector(".running").textContent.includes("60, step 4")`)
	die()
	for {
		trial, err := s.Trial(t.Context(), "s", 0)
		if err != nil {
			t.Fatal(err)
		}
		if trial.State == study.Queued {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	ask("second", 2, time.Hour)
	b.until(t, `document.querySelector(".running").textContent.includes("second") && document.querySelector(".running").textContent.includes("no report yet")`)
	report(2, 9, 8, 7)
	b.until(t, `document.querySelector(".running").textContent.includes("7, step 3")`)
	var line string
	b.do(t, chromedp.Evaluate(`document.querySelector(".running polyline").getAttribute("points")`, &line))
	if n := len(strings.Fields(line)); n != 3 {
		t.Errorf("the small line has %d points, want those of the last epoch, which are 3", n)
	}
	b.open(t, "/studies/s/trials/0", ".chart canvas")
	var rows [][]string
	b.do(t, chromedp.Evaluate(`[...document.querySelectorAll(".figure-foot button")].filter(x => x.textContent === "Show as table").at(-1).click()`, nil),
		chromedp.Evaluate(`[...document.querySelectorAll(".as-table:not([hidden]) tr")].map(r => [...r.cells].map(c => c.textContent))`, &rows))
	want := "[[metric epoch step value] [loss 1 1 90] [loss 1 2 80] [loss 1 3 70] [loss 1 4 60] [loss 2 1 9] [loss 2 2 8] [loss 2 3 7]]"
	if fmt.Sprint(rows) != want {
		t.Errorf("the table is\n%s, want\n%s", fmt.Sprint(rows), want)
	}
	if text := b.text(t, ".figure.wide .hint"); !strings.Contains(text, "the lines begin with epoch 2") {
		t.Errorf("the hint is %q", text)
	}
	b.shoot(t, "epochs-1280-light")
	b.clean(t, "epochs")
}
