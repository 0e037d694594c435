package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestEveryCodeHasOneStatus(t *testing.T) {
	for _, code := range []tuner.Code{
		tuner.OK, tuner.Invalid, tuner.NotFound, tuner.AlreadyExists, tuner.Finished, tuner.Paused, tuner.NoneLeft,
		tuner.TrialState, tuner.LeaseLost, tuner.AlreadyTold, tuner.Denied, tuner.Exhausted, tuner.Unavailable, tuner.Unknown,
		tuner.Cancelled, tuner.Deadline, tuner.Damaged, tuner.Unsupported, tuner.Internal,
	} {
		n := 0
		for _, e := range exits() {
			n += len(slices.DeleteFunc(slices.Clone(e.codes), func(c tuner.Code) bool { return c != code }))
		}
		if n != 1 {
			t.Errorf("code %q is in %d rows of the table", code, n)
		}
		if err := (&tuner.RemoteError{Code: code}); code != tuner.OK && statusOf(err) == exitOK {
			t.Errorf("code %q is a success", code)
		}
	}
	for i, e := range exits() {
		if i > 0 && e.status <= exits()[i-1].status {
			t.Errorf("status %d is not in order, or twice", e.status)
		}
	}
}

// How long an ask waits for a suggestion reaches the file's service, from every command
// that asks.
func TestProposeTimeout(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"ask s":                       tuner.DefaultProposeTimeout,
		"ask s --propose-timeout 7s":  7 * time.Second,
		"run s --propose-timeout 1m":  time.Minute,
		"auto --propose-timeout 90s":  90 * time.Second,
		"serve --propose-timeout 10s": 10 * time.Second,
	} {
		g := &globals{}
		cmd, rest, err := newRoot(g).Find(strings.Fields(line))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = g.checkPropose(cmd, "")
		}
		if err != nil || g.service().ProposeTimeout != want {
			t.Errorf("%s: %v, %v; want %v", line, g.service().ProposeTimeout, err, want)
		}
		if err := g.checkPropose(cmd, "unix:socket"); (err != nil) != strings.Contains(line, "--") {
			t.Errorf("%s, on a server: %v", line, err)
		}
	}
}

func TestGuardNegatives(t *testing.T) {
	for line, want := range map[string]string{
		"tell s 3 -0.5":                  "tell s 3 =-0.5",
		"tell s 3 -.5":                   "tell s 3 =-.5",
		"tell s 3 -inf":                  "tell s 3 =-inf",
		"tell s 3 --message -5 -1":       "tell s 3 --message -5 =-1",
		"tell s 3 --message=x -1":        "tell s 3 --message=x =-1",
		"tell s 3 -q -1":                 "tell s 3 -q =-1",
		"tell s 3 --db -1 -1":            "tell s 3 --db -1 =-1",
		"tell s 3 -- -1":                 "tell s 3 -- -1",
		"--db x tell s 3 -1":             "--db x tell s 3 =-1",
		"run s -- tell -1":               "run s -- tell -1",
		"report s 3 --step 1 loss=-1 -v": "report s 3 --step 1 loss=-1 -v",
	} {
		got := strings.Join(guardNegatives(newRoot(&globals{}), strings.Fields(line)), " ")
		if got != want {
			t.Errorf("%s became %s, want %s", line, got, want)
		}
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                      "plain",
		"a\x1b[31mred":               "a[31mred",
		"line\nline\ttab\r":          "line line tab ",
		"\u202egnp.exe\u2066 \u0085": "gnp.exe ",
		"größe 5 µm":                 "größe 5 µm",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := short("0123456789", 5); got != "0123…" {
		t.Errorf("short: %q", got)
	}
	line, err := jsonLine(map[string]string{"x": "\u202e\u0085\x1b<&>"})
	if err != nil || string(line) != `{"x":"\u202e\u0085\u001b<&>"}` {
		t.Errorf("JSON: %s, %v", line, err)
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a b": "'a b'", "it's": `'it'\''s'`, "--lr=1e-05": "--lr=1e-05", "$x`y`": "'$x`y`'", "~": "'~'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestParseComponent(t *testing.T) {
	for text, want := range map[string]study.Component{
		"sobol":                  {Name: "sobol"},
		`asha:{"factor": 3}`:     {Name: "asha", Options: `{"factor": 3}`},
		"asha:factor=3,min=1e-3": {Name: "asha", Options: `{"factor":3,"min":1e-3}`},
		"x:metric=loss,on=true":  {Name: "x", Options: `{"metric":"loss","on":true}`},
	} {
		got, err := parseComponent("pruner", text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := parseComponent("pruner", "x:y"); statusOf(err) != exitUsage {
		t.Errorf("x:y: %v", err)
	}
}

func TestSimilar(t *testing.T) {
	names := []string{"digits", "letters", "a"}
	for in, want := range map[string]string{"digit": "digits", "dgiits": "digits", "leters": "letters", "words": "", "": "a", "xy": ""} {
		if got := similar(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	p := &progress{study: tuner.Study{
		Spec:   study.Spec{MaxTrials: 48, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}},
		Trials: 28, Counts: map[study.TrialState]int{study.Running: 4, study.Completed: 24},
	}, running: 4, already: 12}
	p.best = &study.Trial{Number: 7, State: study.Completed, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{0.25}}}}}
	want := "████████████░░░░░░░░░░░░ 24/48  4 running  best loss=0.25 (trial 7)  1m0s, about 2m0s left"
	if got := p.bar(time.Minute); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.study.Spec.MaxTrials, p.best = 0, nil
	if got := p.bar(time.Minute); got != "24 trials  4 running  1m0s" {
		t.Errorf("without a limit: %s", got)
	}
}

func TestDemoHasTheOptimumItNames(t *testing.T) {
	c := space.NewConfig(space.Assignment{Name: "lr", Value: space.Float(0.003)}, space.Assignment{Name: "batch", Value: space.Int(64)},
		space.Assignment{Name: "optimizer", Value: space.String("adam")})
	if got := simulatedLoss(c); got != 0.1 {
		t.Errorf("%v", got)
	}
	if _, _, err := space.Parse([]byte(demoSpace)); err != nil {
		t.Error(err)
	}
}

// Late results are in no table. The text lists them, because without them the
// recommendation of a trial that measured worse looks like a mistake.
func TestLuckText(t *testing.T) {
	told := func(state study.TrialState, x float64) study.Outcome {
		return study.Outcome{State: state, Metrics: []study.Metric{{Name: "loss", Values: []float64{x}}}}
	}
	o := study.Objective{Name: "loss"}
	best := study.Trial{Number: 10, State: study.Completed, Outcome: told(study.Completed, 1.9)}
	measured := study.Trial{Number: 8, State: study.Completed, Outcome: told(study.Completed, 1)}
	const plain = "Trial 10 is the best by the prediction of the model, which allows for luck.\nThe best measured value is loss=1 (trial 8)."
	if got := luckText(best, measured, o); got != plain {
		t.Errorf("without late results: %q", got)
	}
	best.Late = []study.LateResult{
		{Epoch: 1, Outcome: study.Outcome{State: study.Failed}},
		{Epoch: 2, Outcome: told(study.Completed, 0.25)},
	}
	measured.Late = []study.LateResult{{Epoch: 1, Outcome: told(study.Completed, 3)}}
	const late = plain + "\nThe model knows late results too: loss=0.25 (trial 10), loss=3 (trial 8)."
	if got := luckText(best, measured, o); got != late {
		t.Errorf("with late results: %q", got)
	}
	if x, _ := best.Outcome.Metric("loss"); x.Mean() != 1.9 {
		t.Error("the trial was changed")
	}
}
