//go:build browser

package web_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestBrowserTrials compares trials of the list, and reads what each worker cost, also after
// another worker came.
func TestBrowserTrials(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := lively(t)
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/digits#trials", "table.trials td")
	for _, n := range []int{253, 250, 243} {
		b.do(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector('[data-compare="%d"]').click()`, n), nil))
	}
	trial, err := s.Trial(t.Context(), "digits", 243)
	if err != nil {
		t.Fatal(err)
	}
	width, _ := trial.Config.Get("width")
	b.until(t, fmt.Sprintf(`(() => { const rows = [...document.querySelectorAll('[aria-label="Trials compared"] tr')].map(r => [...r.cells].map(c => c.textContent));
		return rows.length === 10 + 1 && rows[0].join() === ",#243,#250,#253" && rows.find(r => r[0] === "width")[1] === %q && rows.find(r => r[0] === "state").join() === "state,completed,completed,running"; })()`, width.String()))
	b.shoot(t, "compared-1280-light")
	b.accessible(t, "compared")
	for n := 244; n < 250; n++ {
		b.do(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector('[data-compare="%d"]').click()`, n), nil))
	}
	var ticked int
	b.do(t, chromedp.Evaluate(`document.querySelectorAll("[data-compare]:checked").length`, &ticked))
	if text := b.text(t, ".view .readout"); ticked != 8 || !strings.Contains(text, "At most 8 trials") {
		t.Errorf("%d trials are chosen, and the page says %q", ticked, text)
	}

	// workers are the rows of the table by worker.
	workers := func() map[string]int {
		t.Helper()
		all, _, err := s.Trials(t.Context(), "digits", tuner.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]int)
		for _, trial := range all {
			if trial.Worker != "" {
				out[trial.Worker]++
			}
		}
		return out
	}
	shows := func(want map[string]int) {
		t.Helper()
		for name, n := range want {
			b.until(t, fmt.Sprintf(`[...document.querySelectorAll('[aria-label="Time and cost by worker"] tbody tr')].some(r => r.cells[0].textContent === %q && r.cells[1].textContent === "%d")`, name, n))
		}
		var rows int
		b.do(t, chromedp.Evaluate(`document.querySelectorAll('[aria-label="Time and cost by worker"] tbody tr').length`, &rows))
		if rows != len(want) {
			t.Errorf("%d workers are listed, want %v", rows, want)
		}
	}
	b.open(t, "/studies/digits#cost", ".view td")
	shows(workers())
	all, _, err := s.Trials(t.Context(), "digits", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	best := math.Inf(1)
	for _, trial := range all {
		if m, ok := trial.Outcome.Metric("loss"); ok && trial.State == study.Completed {
			best = min(best, m.Mean())
		}
	}
	b.do(t, chromedp.Evaluate(`document.querySelector("[aria-labelledby='figure-digits-spent'] .figure-foot button").click()`, nil))
	b.until(t, fmt.Sprintf(`Number([...document.querySelectorAll("[aria-labelledby='figure-digits-spent'] tbody tr")].at(-1)?.cells[1].textContent) === %g`, best))
	asked, err := s.Ask(t.Context(), "digits", study.Ask{Worker: "another", New: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tell(t.Context(), "digits", study.Tell{Trial: asked.Trials[0].Number, Outcome: study.Measured("loss", 0.5)}); err != nil {
		t.Fatal(err)
	}
	shows(workers())
	b.clean(t, "trials")
}

// TestBrowserBackup downloads a backup, which is what the service writes.
func TestBrowserBackup(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := withStudies(t)
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	dir := t.TempDir()
	b.do(t, cdp.SetDownloadBehavior(cdp.SetDownloadBehaviorBehaviorAllow).WithBrowserContextID(b.profile).WithDownloadPath(dir))
	b.open(t, "/", "table.studies")
	b.do(t, chromedp.Click(`//button[text()="Backup"]`, chromedp.BySearch), chromedp.WaitVisible("dialog", chromedp.ByQuery))
	if text := b.text(t, "dialog .same code"); text != "tuner backup tuner-backup.db" {
		t.Errorf("the command is %q", text)
	}
	b.accessible(t, "backup")
	b.do(t, chromedp.Evaluate(`document.querySelector("dialog button[type=submit]").click()`, nil))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if data, err := os.ReadFile(filepath.Join(dir, "tuner-backup.db")); err == nil && bytes.Equal(data, s.BackupData) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no backup was downloaded")
		}
	}
	b.clean(t, "backup")
}
