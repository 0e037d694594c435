//go:build browser

package web_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/web"
)

// TestBrowserExact compares the values in tables and downloads with those of the command
// line, on the page of a server and in a file.
func TestBrowserExact(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := engine.Open(memory.New(), engine.Options{})
	t.Cleanup(func() { s.Close() })
	sp, _, err := space.Parse([]byte(`
parameters:
  batch: {type: int, low: 1, high: 1024, scale: log}
  wide: {type: int, low: -9000000000000000000, high: 9000000000000000000}
  lr: {type: float, low: 1.0e-9, high: 1, scale: log}
  shift: {type: float, low: -1.0e+6, high: 1.0e+6}
  level: {type: ordinal, values: [-1, 0.12341, 2]}
  kind: {type: categorical, values: [sgd, "=sum", true]}
  momentum: {type: float, low: 0.5, high: 0.99, when: {kind: sgd}}
`))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1}
	if _, err := s.CreateStudy(t.Context(), "s", study.Create{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	const n, seed = 18, 7
	rng := rand.New(rand.NewPCG(seed, 1))
	u := make([]float64, sp.Dim())
	for i := range n {
		for k := range u {
			u[k] = rng.Float64()
		}
		c, err := sp.Decode(u)
		if err != nil {
			t.Fatal(err)
		}
		o := study.Measured("loss", rng.NormFloat64()*1e-7)
		if _, err := s.AddAll(t.Context(), "s", []study.Command{study.Add{RequestID: fmt.Sprint(i), Config: c, Outcome: o}}); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, s, server.Options{}, loopback)
	command := shell(t, r, t.TempDir(), "tuner trials s -f csv")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	list, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(list) != n+1 {
		t.Fatalf("%v, %d rows", err, len(list))
	}
	want := make(map[string][]string) // by column, then by trial
	for k, title := range list[0] {
		for _, row := range list[1:] {
			want[title] = append(want[title], row[k])
		}
	}
	var file bytes.Buffer
	if err := web.WriteFile(t.Context(), s, "s", "", time.Now(), &file); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s.html")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	// same compares rows with titles, of which the first cell is the trial.
	same := func(where string, rows [][]string) {
		t.Helper()
		if len(rows) != n+1 || len(rows[0]) < 9 {
			t.Fatalf("%s: %d rows, seed %d: %q", where, len(rows), seed, rows)
		}
		for k, title := range rows[0] {
			column := "config." + title
			if title == "loss" {
				column = "value.loss"
			}
			switch title {
			case "worker":
				column = "worker"
			case "trial", "state", "duration", "seconds", "message", "message, metrics":
				continue
			}
			if want[column] == nil {
				t.Fatalf("%s: tuner trials has no %s among %q", where, column, list[0])
			}
			for _, row := range rows[1:] {
				i, err := strconv.Atoi(strings.TrimLeft(strings.TrimSpace(row[0]), "#"))
				if err != nil {
					t.Fatal(where, err)
				}
				if got, want := row[k], want[column][i]; !sameValue(got, want) {
					t.Errorf("%s, trial %d: %s is %q, and tuner trials has %q (seed %d)", where, i, title, got, want, seed)
				}
			}
		}
	}
	b := openBrowser(t, r)
	b.look(t, 1280, 1200, "light")
	read := func(script string) (rows [][]string) {
		t.Helper()
		b.do(t, chromedp.Evaluate(script, &rows))
		return rows
	}
	const cells = `[...document.querySelectorAll(%q)].map(r => [...r.cells].map(c => c.textContent.replace(/[↓↑]/, "").trim())).filter(r => r.length > 1)`
	download := func(label, form string) (text string) {
		t.Helper()
		b.do(t, chromedp.Evaluate(fmt.Sprintf(`(() => { window.saved = ""; URL.createObjectURL = (b) => { b.text().then((t) => (window.saved = t)); return "#saved"; };
			[...document.querySelectorAll("[aria-labelledby='figure-%s'] button")].find((x) => x.textContent === %q).click(); })()`, label, form), nil))
		b.until(t, `window.saved !== ""`)
		b.do(t, chromedp.Evaluate(`window.saved`, &text))
		return text
	}
	saved := func(figure string) [][]string {
		t.Helper()
		text := download("s-"+figure, "CSV")
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	origin := b.origin
	for _, place := range []struct{ name, origin, path string }{{"page", b.origin, "/studies/s"}, {"file", "file://", path}} {
		b.origin = place.origin
		b.open(t, place.path, ".parallel canvas")
		same(place.name+", download of the parallel coordinates", saved("parallel"))
		b.do(t, chromedp.Click(`//section[@aria-labelledby="figure-s-parallel"]//button[text()="Show as table"]`, chromedp.BySearch))
		b.until(t, `document.querySelector("[aria-labelledby='figure-s-parallel'] .as-table td")`)
		same(place.name+", parallel coordinates as a table", read(fmt.Sprintf(cells, "[aria-labelledby='figure-s-parallel'] .as-table tr")))
		b.open(t, place.path+"#trials", "table.trials td")
		same(place.name+", table", read(fmt.Sprintf(cells, "table.trials tr")))
		for i := range 3 {
			b.do(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector('[data-compare="%d"]').click()`, i), nil))
		}
		compared := saved("compared")
		for _, row := range compared[2:] { // below the titles and the states
			column := map[bool]string{true: "value.loss", false: "config." + row[0]}[row[0] == "loss"]
			for i, got := range row[1:] {
				if !sameValue(got, want[column][i]) {
					t.Errorf("%s, compared: %s of trial %d is %q, and tuner trials has %q", place.name, row[0], i, got, want[column][i])
				}
			}
		}
		b.open(t, place.path+"#trials", "table.trials td")
		same(place.name+", download of the trials", saved("trials"))
		b.clean(t, place.name)
	}

	// The JSON of a study with replicates, an infinity and failures says what tuner trials does.
	for i, o := range []study.Outcome{
		{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{0.1, 0.2, 0.7}}, {Name: "size", Values: []float64{1e300}}, {Name: "speed", Values: []float64{3}, StdErr: 0.1, HasStdErr: true}}, Cost: 2.5},
		{State: study.Failed, Reason: study.FailedNaN, Message: "loss was NaN\n", Attributes: study.Attributes{"host": "a,b"}},
		study.Measured("loss", math.Inf(1)),
	} {
		if i == 0 {
			if _, err := s.CreateStudy(t.Context(), "j", study.Create{Spec: spec}); err != nil {
				t.Fatal(err)
			}
		}
		asked, err := s.Ask(t.Context(), "j", study.Ask{Worker: "w", New: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tell(t.Context(), "j", study.Tell{Trial: i, Epoch: asked.Trials[0].Epoch, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	command = shell(t, r, t.TempDir(), "tuner trials j -f json")
	command.Stderr = os.Stderr
	if out, err = command.Output(); err != nil {
		t.Fatal(err)
	}
	records := func(text []byte) (list []map[string]any) {
		t.Helper()
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&list); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return list
	}
	file.Reset()
	if err := web.WriteFile(t.Context(), s, "j", "", time.Now(), &file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	all := records(out)
	for _, place := range []struct{ origin, path string }{{origin, "/studies/j"}, {"file://", path}} {
		b.origin = place.origin
		b.open(t, place.path, ".failures section")
		if text := b.text(t, ".failures"); !strings.Contains(text, "1 × nan") || !strings.Contains(text, "loss was NaN") {
			t.Errorf("%s: the failures are %q", place.path, text)
		}
		b.open(t, place.path+"#trials", "table.trials td")
		got := records([]byte(download("j-trials", "JSON")))
		if len(got) != len(all) {
			t.Fatalf("%s: %d of %d trials", place.path, len(got), len(all))
		}
		for i, want := range all {
			for _, key := range []string{"trial", "state", "reason", "message", "config", "values", "stderr", "cost", "attributes", "worker", "started", "ended"} {
				if got, want := flat(got[i][key]), flat(want[key]); !slices.EqualFunc(got, want, sameValue) {
					t.Errorf("%s, trial %d: %s is %q in the download, and tuner trials has %q", place.path, i, key, got, want)
				}
				delete(got[i], key)
			}
			if len(got[i]) > 0 {
				t.Errorf("%s, trial %d: the download has %v, which tuner trials has not", place.path, i, got[i])
			}
		}
	}
	b.clean(t, "JSON")
}

// flat lists what a value of JSON holds, in order. A time loses zeros at its end.
func flat(v any) (out []string) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(append(out, k), flat(v[k])...)
		}
	case []any:
		for _, x := range v {
			out = append(out, flat(x)...)
		}
	default:
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(v)); err == nil {
			v = at.UTC()
		}
		out = []string{fmt.Sprint(v)}
	}
	return out
}

// sameValue tells whether two cells hold the same value. Go and JavaScript write a float
// differently, and both put a quote before what a spreadsheet would compute.
func sameValue(a, b string) bool {
	if a, b = strings.TrimPrefix(a, "'"), strings.TrimPrefix(b, "'"); a == b {
		return true
	}
	_, intA := strconv.ParseInt(a, 10, 64)
	_, intB := strconv.ParseInt(b, 10, 64)
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return (intA != nil || intB != nil) && errX == nil && errY == nil && x == y
}
