//go:build browser

package web_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// TestBrowserFile opens a study in one file with the network off.
func TestBrowserFile(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := sharedLively(t)
	b := openBrowser(t, start(t, s, server.Options{}, loopback))
	b.origin = "file://"
	dir := t.TempDir()
	address := func(study string) string {
		t.Helper()
		var out bytes.Buffer
		if err := web.WriteFile(t.Context(), s, study, "", time.Now(), &out); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, study+".html")
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s takes %d bytes", study, out.Len())
		return path
	}
	digits, two, empty := address("digits"), address("two"), address("empty")
	b.do(t, network.OverrideNetworkState(true, 0, 0, 0))
	for i, v := range []struct{ name, path, ready, text string }{
		{"overview", digits, ".history canvas", "last result"},
		{"parameters", digits + "#parameters", ".slices canvas", "lr"},
		{"trials", digits + "#trials", "table.trials td", "254 of 254"},
		{"curves", digits + "#curves", ".view canvas", "10 of the next best"},
		{"model", digits + "#model", ".words li", "are infeasible or failed. Suggestions"},
		{"cost", digits + "#cost", ".view td", "completed"},
		{"settings", digits + "#settings", "main pre", "<b>note</b>"},
		{"front", two + "#front", ".view canvas", "of 121 completed trials"},
		{"empty", empty, ".empty-page", "No trial yet"},
	} {
		for _, a := range appearances(i) {
			b.look(t, a.width, 900, a.scheme)
			name := fmt.Sprintf("file-%s-%s", v.name, a)
			b.open(t, v.path, v.ready)
			b.says(t, "main", v.text)
			b.settle(t)
			b.shoot(t, name)
			b.clean(t, name)
			if audited(i) {
				b.accessible(t, name)
				b.clean(t, name+" with axe")
			}
		}
	}
	var buttons []string
	b.open(t, digits, ".history canvas")
	b.do(t, chromedp.Evaluate(`[...document.querySelectorAll(".study-head button")].map(x => x.textContent)`, &buttons))
	if len(buttons) > 0 {
		t.Errorf("a file has the actions %q", buttons)
	}
	var drawn int
	b.do(t, chromedp.Evaluate(`(() => { const c = document.querySelector(".history canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()`, &drawn))
	if drawn < 2000 {
		t.Errorf("%d pixels of the chart are drawn", drawn)
	}
}
