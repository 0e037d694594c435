//go:build browser

package web_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/chromedp/chromedp"
)

// kind is a study as people have them, with what its trials come to.
type kind struct {
	name, space string
	spec        study.Spec
	trials      int
	running     int // trials that run at the end
	steps       int // reports of a trial
	worker      func(k int) string
	outcome     func(k int, c space.Config, r *rand.Rand) study.Outcome
	end         string // state of the study at the end
}

var (
	leastLoss   = []study.Objective{{Name: "loss", Direction: study.Minimize}}
	shortSpace  = "parameters:\n  lr: {type: float, low: 1e-5, high: 0.1, scale: log}\n  depth: {type: int, low: 2, high: 12}\n  dropout: {type: float, low: 0, high: 0.6}\n"
	longName    = "a-study-whose-name-tells-the-model-the-data-set-the-date-and-the-person-who-started-it-2026-11"
	fullSpace   = shortSpace + "  batch: {type: int, low: 16, high: 512, scale: log}\n  optimizer: {type: categorical, values: [sgd, adam, rmsprop]}\n  momentum: {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}\n"
	choiceSpace = "parameters:\n  model: {type: categorical, values: [resnet-50, efficientnet-b0, vit-small-patch16, convnext-tiny]}\n  optimizer: {type: categorical, values: [sgd, adam, lamb]}\n  size: {type: ordinal, values: [s, m, l]}\n  heads: {type: int, low: 2, high: 12, when: {model: vit-small-patch16}}\n  precision: {type: categorical, values: [fp16, fp32]}\n"
	longSpace   = "parameters:\n  model.encoder.layers.attention.dropout_probability_of_the_residual_connection: {type: float, low: 0, high: 0.6}\n  lr: {type: float, low: 1e-5, high: 0.1, scale: log}\n  checkpoint: {type: categorical, values: [\"s3://bucket/of/the/department/models/2026-11-05/encoder-large-cased-finetuned.safetensors\", \"s3://bucket/of/the/department/models/2026-11-05/encoder-small-cased-finetuned.safetensors\"]}\n"
)

// measured is an outcome with metrics, in pairs of a name and a value.
func measured(pairs ...any) study.Outcome {
	o := study.Outcome{State: study.Completed}
	for i := 0; i < len(pairs); i += 2 {
		o.Metrics = append(o.Metrics, study.Metric{Name: pairs[i].(string), Values: []float64{pairs[i+1].(float64)}})
	}
	slices.SortFunc(o.Metrics, func(a, b study.Metric) int { return strings.Compare(a.Name, b.Name) })
	return o
}

// lossOf is least near lr = 2.5e-3 and dropout = 0.2.
func lossOf(c space.Config, r *rand.Rand) float64 {
	v := 0.05
	if _, ok := c.Get("lr"); ok {
		v += 0.1 * math.Pow(math.Log10(c.Number("lr"))+2.6, 2)
	}
	if _, ok := c.Get("dropout"); ok {
		v += 0.3 * math.Pow(c.Number("dropout")-0.2, 2)
	}
	if m, ok := c.Get("model"); ok {
		v += 0.03 * float64(len(m.String())%5)
	}
	return v * math.Exp(0.03*r.NormFloat64())
}

// kinds are the thirteen kinds of studies that the page is looked at with.
func kinds() []kind {
	plain := func(_ int, c space.Config, r *rand.Rand) study.Outcome { return measured("loss", lossOf(c, r)) }
	random := study.Component{Name: "random"}
	return []kind{
		{name: "one", space: fullSpace, trials: 60, running: 3, steps: 10, spec: study.Spec{Objectives: leastLoss, MaxTrials: 120}, outcome: func(k int, c space.Config, r *rand.Rand) study.Outcome {
			if k == 17 {
				return study.Outcome{State: study.Failed, Message: "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB\n  File \"train.py\", line 214, in forward"}
			}
			return plain(k, c, r)
		}, worker: func(k int) string {
			if k%5 == 3 {
				return "gpu-slow"
			}
			return fmt.Sprintf("gpu-%d", k%3)
		}},
		{name: "two", space: shortSpace, trials: 50, spec: study.Spec{Objectives: []study.Objective{{Name: "accuracy", Direction: study.Maximize}, {Name: "seconds", Direction: study.Minimize}}}, outcome: func(_ int, c space.Config, r *rand.Rand) study.Outcome {
			return measured("accuracy", 0.98-lossOf(c, r)*8/(6+c.Number("depth")), "seconds", 3+math.Pow(c.Number("depth"), 1.5)*(1+0.1*r.Float64()))
		}},
		{name: "three", space: shortSpace, trials: 40, spec: study.Spec{Objectives: []study.Objective{{Name: "accuracy", Direction: study.Maximize}, {Name: "seconds", Direction: study.Minimize}, {Name: "memory", Direction: study.Minimize}}}, outcome: func(_ int, c space.Config, r *rand.Rand) study.Outcome {
			return measured("accuracy", 0.98-lossOf(c, r)*8/(6+c.Number("depth")), "seconds", 3+math.Pow(c.Number("depth"), 1.5), "memory", 2+c.Number("depth")*(1-c.Number("dropout")))
		}},
		{name: "limits", space: shortSpace, trials: 40, spec: study.Spec{Objectives: leastLoss, Proposer: study.Component{Name: "bkb", Options: `{"constraints": {"latency": {"max": 9}}}`}}, outcome: func(_ int, c space.Config, r *rand.Rand) study.Outcome {
			return measured("loss", lossOf(c, r), "latency", 2+c.Number("depth"))
		}},
		{name: "broken", space: shortSpace, trials: 12, end: "finish", spec: study.Spec{Objectives: leastLoss, Proposer: random}, outcome: func(k int, _ space.Config, _ *rand.Rand) study.Outcome {
			return study.Outcome{State: study.Failed, Message: []string{"exit status 1\nTraceback (most recent call last):\n  File \"train.py\", line 3\nModuleNotFoundError: No module named 'torch'", "exit status 1\nTraceback (most recent call last):\n  File \"train.py\", line 3\nModuleNotFoundError: No module named 'torch'", fmt.Sprintf("killed after %d s: out of memory", 40+k)}[k%3]}
		}},
		{name: "empty", space: shortSpace, spec: study.Spec{Objectives: leastLoss}},
		{name: "young", space: shortSpace, trials: 3, spec: study.Spec{Objectives: leastLoss}, outcome: plain},
		{name: "pruned", space: shortSpace, trials: 40, steps: 12, spec: study.Spec{Objectives: leastLoss, Proposer: random, Pruner: study.Component{Name: "median"}}, outcome: func(k int, c space.Config, r *rand.Rand) study.Outcome {
			if v := lossOf(c, r); k < 6 || v < 0.15 {
				return measured("loss", v)
			}
			return study.Outcome{State: study.Pruned, Message: "the median pruner stopped it at step 12"}
		}},
		{name: "paused", space: shortSpace, trials: 20, end: "pause", spec: study.Spec{Objectives: leastLoss, MaxTrials: 100}, outcome: plain},
		{name: "waiting", space: shortSpace, trials: 8, spec: study.Spec{Objectives: leastLoss, Timeout: 8 * time.Hour, MaxTrials: 100}, outcome: plain},
		{name: "choices", space: choiceSpace, trials: 60, spec: study.Spec{Objectives: leastLoss, Proposer: random}, outcome: plain, end: "finish"},
		{name: longName, space: longSpace, trials: 15, running: 1, spec: study.Spec{Objectives: []study.Objective{{Name: "validation_loss_of_the_exponential_moving_average", Direction: study.Minimize}}}, outcome: func(k int, c space.Config, r *rand.Rand) study.Outcome {
			if k == 4 {
				return study.Outcome{State: study.Failed, Message: strings.Repeat("averylongwordwithoutanyspaceinit", 12)}
			}
			return measured("validation_loss_of_the_exponential_moving_average", lossOf(c, r)/3)
		}, worker: func(int) string { return "ip-10-0-113-207.eu-central-1.compute.internal:48213" }},
		{name: "noisy", space: shortSpace, trials: 300, spec: study.Spec{Objectives: []study.Objective{{Name: "score", Direction: study.Maximize}}, Proposer: random, MaxCost: 5000}, outcome: func(_ int, c space.Config, r *rand.Rand) study.Outcome {
			o := measured("score", -100*lossOf(c, r)+12*r.NormFloat64())
			o.Cost = 1 + 10*r.Float64()
			return o
		}},
	}
}

var everyKind fixture

// sharedKinds is a service with a study of each kind, for tests that do not change it.
func sharedKinds(t testing.TB) *engine.Engine {
	t.Helper()
	return everyKind.get(t, func() *engine.Engine { return allKinds(t) })
}

// allKinds makes a study of each kind. Their trials took the last hours.
func allKinds(t testing.TB) *engine.Engine {
	t.Helper()
	const began = 3 * time.Hour
	var passed atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load()) - began) }
	s := engine.Open(memory.New(), engine.Options{LongLived: true, Now: now})
	for _, k := range kinds() {
		passed.Store(0)
		k.make(t, s, &passed, began)
	}
	passed.Store(int64(began))
	return s
}

// make creates the study. Two of its trials run at a time.
func (k kind) make(t testing.TB, s *engine.Engine, passed *atomic.Int64, last time.Duration) {
	t.Helper()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
	}
	sp, _, err := space.Parse([]byte(k.space))
	ok(err)
	k.spec.Space, k.spec.Seed = sp, 1
	_, err = s.CreateStudy(ctx, k.name, study.Create{Spec: k.spec})
	ok(err)
	r := rand.New(rand.NewPCG(7, 7))
	worker := k.worker
	if worker == nil {
		worker = func(i int) string { return fmt.Sprintf("node-%d", i%2) }
	}
	step := (last - 20*time.Minute) / time.Duration(max(1, k.trials))
	for i := range k.trials + k.running {
		asked, err := s.Ask(ctx, k.name, study.Ask{Worker: worker(i), New: true})
		ok(err)
		trial := asked.Trials[0]
		if i < k.trials {
			took := time.Duration(float64(step) * (0.4 + 0.3*r.Float64()))
			if worker(i) == "gpu-slow" {
				took = step * 9 / 10
			}
			passed.Add(int64(took))
			o := k.outcome(i, trial.Config, r)
			k.report(t, s, trial, o)
			_, err = s.Tell(ctx, k.name, study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: o})
			ok(err)
			passed.Add(int64(step - took))
		} else {
			passed.Add(int64(time.Minute))
			k.report(t, s, trial, k.outcome(i, trial.Config, r))
		}
	}
	switch k.end {
	case "pause":
		_, err = s.Pause(ctx, k.name, study.Pause{})
	case "finish":
		_, err = s.Finish(ctx, k.name, study.Finish{Detail: "all values were tried"})
	}
	ok(err)
}

// report reports a curve that ends at the outcome of a trial.
func (k kind) report(t testing.TB, s *engine.Engine, trial study.Trial, o study.Outcome) {
	t.Helper()
	if k.steps == 0 {
		return
	}
	final := 0.3
	if len(o.Metrics) > 0 {
		final = o.Metrics[0].Values[0]
	}
	var reports []study.Report
	for i := range k.steps {
		loss := final * (1 + 2*math.Exp(-float64(i)/3))
		reports = append(reports, study.Report{Step: int64(i + 1), Values: []study.NamedValue{{Name: "loss", Value: loss}, {Name: "train_loss", Value: 0.8 * loss}}})
	}
	if _, err := s.Report(t.Context(), k.name, study.ReportValues{Trial: trial.Number, Epoch: trial.Epoch, Reports: reports}); err != nil {
		t.Fatal(err)
	}
}

// TestBrowserKinds opens the pages of all kinds of studies, and with BKB_SHOTS saves
// pictures of them.
func TestBrowserKinds(t *testing.T) {
	chromium(t)
	t.Parallel()
	b := openBrowser(t, start(t, sharedKinds(t), server.Options{}, loopback))
	seen := 0
	look := func(name, path, ready string) {
		for _, a := range appearances(seen) {
			b.look(t, a.width, 900, a.scheme)
			b.open(t, path, ready)
			b.sound(t, fmt.Sprintf("%s-%s", name, a), audited(seen))
		}
		seen++
	}
	for _, k := range kinds() {
		views := []string{"overview"}
		for i, view := range []string{"parameters", "trials", "curves", "model", "settings", "cost"} {
			if k.name == longName && (i%2 == 0 || everyView()) || k.name == "two" && (i%2 == 1 || everyView()) {
				views = append(views, view)
			}
		}
		for _, view := range views {
			look(k.name[:min(8, len(k.name))]+"-"+view, "/studies/"+k.name+"#"+view, ".view > *")
		}
	}
	look("studies", "/", "table.studies")
}

// sound fails the test if the page is wider than the window, says a word of a program or did
// what it must not, and where it is audited if it is not accessible.
func (b *browser) sound(t testing.TB, name string, audited bool) {
	t.Helper()
	var wide []string
	b.do(t, chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth ? [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth).slice(0, 3).map(e => e.outerHTML.slice(0, 120)) : []`, &wide))
	if len(wide) > 0 {
		t.Errorf("%s: the page scrolls sideways, because of %q", name, wide)
	}
	var odd []string
	b.do(t, chromedp.Evaluate(`document.body.innerText.split("\n").filter(l => /\b(false|undefined|null|NaN)\b/.test(l))`, &odd))
	if len(odd) > 0 {
		t.Errorf("%s: the page says %q", name, odd)
	}
	var narrow []string
	b.do(t, chromedp.Evaluate(`[...document.querySelectorAll("main .table-frame tbody th")].filter(e => e.offsetHeight > 1.2 * e.offsetWidth).map(e => e.textContent)`, &narrow))
	if len(narrow) > 0 {
		t.Errorf("%s: the names of rows are broken into few letters a line: %q", name, narrow)
	}
	var cut []string
	b.do(t, chromedp.Evaluate(`innerWidth > 600 ? [] : [...document.querySelectorAll(".running .worker")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)`, &cut))
	if len(cut) > 0 {
		t.Errorf("%s: the names of workers are cut: %q", name, cut)
	}
	b.shoot(t, name)
	b.clean(t, name)
	if audited {
		b.accessible(t, name)
		b.clean(t, name+" with axe")
	}
}

// TestBrowserQuestions answers each question of a visitor within two clicks from the list.
func TestBrowserQuestions(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := sharedKinds(t)
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	best, err := s.Best(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	front := measuredFront(t, s, "two")
	for _, q := range []struct {
		question string
		clicks   []string // selectors, from the list on
		place    string
		answers  []string // texts in the place
	}{
		{"what is the best configuration, and may I trust it?", []string{`a[href="/studies/one"]`}, ".answer", []string{
			fmt.Sprintf("trial %d", best[0].Number), best[0].Worker, fmt.Sprint(best[0].Config.Number("lr")), "The model expects", "(95 %)",
		}},
		{"why did trial 17 fail?", []string{`a[href="/studies/one"]`, `.failures a[href$="/trials/17"]`}, ".why", []string{"CUDA out of memory", "train.py"}},
		{"which worker is slow?", []string{`a[href="/studies/one"]`, `.tabs a[href="#cost"]`}, "[aria-labelledby='figure-one-workers']", []string{"gpu-slow takes 1."}},
		{"is it worth going on?", []string{`a[href="/studies/one"]`}, ".verdicts", []string{"Is it worth going on?", "By the model nothing is better by more than", "57 trials are left"}},
		{"what did the two objectives trade?", []string{`a[href="/studies/two"]`}, ".view", []string{fmt.Sprintf("%d of 50 completed trials are on the front", front), "the best accuracy, to", "the best seconds: accuracy 0."}},
		{"does the best keep the limit?", []string{`a[href="/studies/limits"]`}, ".answer", []string{"latency", ", at most 9"}},
		{"why is there no result?", []string{`a[href="/studies/broken"]`}, ".view", []string{"All 12 trials failed", "8 × crash", "No module named 'torch'", "4 × crash"}},
	} {
		b.open(t, "/", "table.studies")
		for _, c := range q.clicks {
			b.until(t, fmt.Sprintf(`document.querySelector(%q) !== null`, c))
			b.do(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).click()`, c), nil), chromedp.Sleep(200*time.Millisecond)) // a list may be drawn again at any time
			b.settle(t)
		}
		for _, text := range q.answers {
			b.says(t, q.place, text)
		}
		if len(q.clicks) > 2 {
			t.Errorf("%s needs %d clicks", q.question, len(q.clicks))
		}
	}
	b.clean(t, "questions")
}

// measuredFront is the number of trials that none beats, by comparing each with each.
func measuredFront(t testing.TB, s *engine.Engine, name string) (n int) {
	t.Helper()
	view, err := s.Study(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := s.Trials(t.Context(), name, tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	better := func(a, b study.Trial) (somewhere, nowhere bool) {
		nowhere = true
		for _, o := range view.Spec.Objectives {
			x, _ := a.Outcome.Metric(o.Name)
			y, _ := b.Outcome.Metric(o.Name)
			c := o.Direction.Compare(x.Mean(), y.Mean())
			somewhere, nowhere = somewhere || c < 0, nowhere && c >= 0
		}
		return somewhere, nowhere
	}
	for _, a := range all {
		beaten := slices.ContainsFunc(all, func(b study.Trial) bool {
			somewhere, _ := better(b, a)
			_, nowhere := better(a, b)
			return somewhere && nowhere
		})
		if a.State == study.Completed && !beaten {
			n++
		}
	}
	return n
}

// TestBrowserCopies compares the copied forms of a configuration with what tuner best
// prints, and runs the commands that pages show as they stand.
func TestBrowserCopies(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := allKinds(t)
	t.Cleanup(func() { s.Close() })
	sp, _, err := space.Parse([]byte("parameters:\n  n: {type: int, low: 0, high: 9007199254740993}\n  word: {type: categorical, values: [\"it's\", \"1e3\", \"true\"]}\n  on: {type: categorical, values: [true, false]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateStudy(t.Context(), "odd", study.Create{Spec: study.Spec{Space: sp, Objectives: leastLoss, MaxTrials: 2, Seed: 1}}); err != nil {
		t.Fatal(err)
	}
	c, err := sp.Decode([]float64{1, 0.9, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), "odd", study.Add{Config: c, Outcome: measured("loss", 0.5)}); err != nil {
		t.Fatal(err)
	}
	var face *web.Face
	r := start(t, s, server.Options{}, loopback, func(f *web.Face) { face = f })
	if err := web.Connect(face, "--server "+r.grpc); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "python"), []byte("#!/bin/sh\necho loss=0.25\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(line string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "sh", "-c", line)
		command.Dir, command.Env = dir, append(os.Environ(), "PATH="+dir+":"+bin+":"+os.Getenv("PATH"), "TUNER_DB=none.db", "TUNER_SERVER=", "TUNER_STORE=")
		out, err := command.Output()
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		return string(out)
	}
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	b.open(t, "/studies/odd", ".answer .value")
	copied := func(shape string) string {
		t.Helper()
		b.do(t, chromedp.Click(`//div[@class="choice"]/button[text()="`+shape+`"]`, chromedp.BySearch))
		return b.text(t, ".copied pre")
	}
	if got, want := copied("Flags"), strings.TrimSpace(run("tuner best odd -f args --server "+r.grpc)); got != want {
		t.Errorf("as flags it is %q, want %q", got, want)
	}
	if got := copied("YAML"); got != "\"n\": 9007199254740993\n\"on\": true\nword: \"true\"\n" {
		t.Errorf("as YAML it is %q", got)
	}
	if got := strings.Join(strings.Fields(copied("Python")), " "); got != `{ "n": 9007199254740993, "on": True, "word": "true", }` {
		t.Errorf("as Python it is %q", got)
	}
	done := make(map[string]bool)
	for _, path := range []string{"/workers", "/studies/odd", "/studies/odd#settings", "/studies/" + longName, "/studies/one#parameters", "/studies/one#curves", "/studies/one#model", "/studies/one#cost", "/studies/one/trials/17", "/studies/two", "/studies/paused", "/studies/choices", "/studies/broken"} {
		b.open(t, path, ".command code")
		var lines []string
		b.do(t, chromedp.Evaluate(`[...document.querySelectorAll(".command code")].map(e => e.textContent)`, &lines))
		for _, line := range lines {
			if done[line] {
				continue
			}
			done[line] = true
			if strings.Contains(line, "{args}") && !strings.HasPrefix(line, "tuner run odd ") {
				continue // it would run all trials of a large study
			}
			run(line)
		}
	}
	if len(done) < 20 {
		t.Errorf("only %d commands are shown", len(done))
	}
	b.clean(t, "copies")
}

// TestBrowserFilter filters the list of trials, reads why one failed, and compares the
// hypervolume with counting cells of a grid.
func TestBrowserFilter(t *testing.T) {
	chromium(t)
	t.Parallel()
	s := sharedKinds(t)
	r := start(t, s, server.Options{}, loopback)
	b := openBrowser(t, r)
	b.look(t, 1280, 900, "light")
	all, _, err := s.Trials(t.Context(), "one", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	slow := 0
	for _, trial := range all {
		if trial.Worker == "gpu-slow" && trial.Config.Number("lr") < 0.003 {
			slow++
		}
	}
	b.open(t, "/studies/one#trials", "table.trials td")
	b.fill(t, "input[type=search]", "lr<0.003 gpu-slow")
	b.until(t, fmt.Sprintf(`document.querySelector(".view .readout").textContent === "%d of %d trials"`, slow, len(all)))
	b.fill(t, "input[type=search]", "rate<1")
	b.until(t, `document.querySelector(".view .readout").textContent.includes("rate<1 names no column")`)
	b.fill(t, "input[type=search]", "state=failed")
	b.until(t, `document.querySelectorAll("table.trials [data-compare]").length === 1 && document.querySelector(".told").title.includes("CUDA out of memory")`)
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	for d := 2; d <= 4; d++ {
		const cells = 8 // points lie on the grid, so counting is exact
		var points [][]float64
		for range 7 {
			p := make([]float64, d)
			for k := range p {
				p[k] = float64(rng.IntN(cells)) / cells
			}
			points = append(points, p)
		}
		covered, total := 0, 1
		for range d {
			total *= cells
		}
		for c := range total {
			if slices.ContainsFunc(points, func(p []float64) bool {
				rest := c
				for _, v := range p {
					if float64(rest%cells)/cells < v {
						return false
					}
					rest /= cells
				}
				return true
			}) {
				covered++
			}
		}
		want := float64(covered) / float64(total)
		b.until(t, fmt.Sprintf(`(() => { if (!window.front) import(document.querySelector("script[type=module]").src.replace("app.js", "front.js")).then((m) => (window.front = m)); return window.front !== undefined; })() && Math.abs(window.front.volume(%s) - %g) < 1e-12`, strings.ReplaceAll(fmt.Sprint(points), " ", ","), want))
	}
	// Labels of long words keep what differs, and leave short ones as they are.
	for words, want := range map[string]string{
		`["s3://bucket/of/large/x.safetensors", "s3://bucket/of/small/x.safetensors"]`: "…f/large/x… …f/small/x…",
		`["sgd", "adam"]`: "sgd adam", `["one-word-that-is-long"]`: "one-word-that-is-long", `["resnet-50-of-the-year", "vit-small-patch16-224"]`: "resnet-50-of-the-year vit-small-patch16-224",
	} {
		b.until(t, fmt.Sprintf(`(() => { if (!window.columns) import(document.querySelector("script[type=module]").src.replace("app.js", "columns.js")).then((m) => (window.columns = m)); return window.columns !== undefined; })() && window.columns.brief(%s).join(" ") === %q`, words, want))
	}
	// A duration never has 60 of its smaller unit.
	for s, want := range map[float64]string{0.9999: "1 s", 59.4: "59 s", 59.6: "1 min", 1439.7: "24 min", 3599.7: "1 h", 7170: "2 h", 15420: "4 h 17 min", 172700: "2 d"} {
		b.until(t, fmt.Sprintf(`(() => { if (!window.dom) import(document.querySelector("script[type=module]").src.replace("app.js", "dom.js")).then((m) => (window.dom = m)); return window.dom !== undefined; })() && window.dom.duration(%g) === %q`, s, want))
	}
	b.clean(t, "filter")
}
