package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/study"
)

// show writes what a line says, for comparison.
func show(s said) string {
	if s.infeasible != nil {
		return "infeasible: " + *s.infeasible
	}
	text := ""
	if s.hasStep {
		text = fmt.Sprintf("step %d:", s.step)
	}
	for _, m := range s.metrics {
		text += fmt.Sprintf(" %s=%v", m.Name, m.Values)
		if m.HasStdErr {
			text += fmt.Sprintf("±%v", m.StdErr)
		}
	}
	return strings.TrimSpace(text)
}

func TestParseLine(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "",
		"nothing to see":                     "",
		"loss=0.5":                           "loss=[0.5]",
		"  epoch 3: loss=0.5, acc=0.9;":      "loss=[0.5] acc=[0.9]",
		"step=3 loss=nan":                    "step 3: loss=[NaN]",
		"step=-1 loss=1":                     "loss=[1]",
		"loss=0.3±0.01":                      "loss=[0.3]±0.01",
		"loss=0.3 ± .01 acc=9.0 +/- 1e-2 s":  "loss=[0.3]±0.01 acc=[9]±0.01",
		"loss=0.3+/-0.01, a=1 - 2 b=3 + 4":   "loss=[0.3]±0.01 a=[1] b=[3]",
		"loss=1,2,3":                         "loss=[1 2 3]",
		"loss=1,234.5 acc=0.5,0.6":           "acc=[0.5 0.6]",
		"loss=1.0,234.5 acc=1.2340,5":        "loss=[1 234.5] acc=[1.234 5]",
		"loss=1.234,5 acc=1,234,567":         "",
		"loss=0.123,5 acc=1000,234.5":        "loss=[0.123 5] acc=[1000 234.5]",
		"loss=1 234 acc=1\u00a0234.5":        "",
		"loss=1 23 acc=0 234 a=1 2345 b=1 s": "loss=[1] acc=[0] a=[1] b=[1]",
		"loss=0x10 acc=1_0":                  "",
		"http://x/?a=1":                      "",
		`{"loss": 0.5, "acc": [1, 2]}`:       "acc=[1 2] loss=[0.5]",
		`{"loss": NaN, "b": -Infinity}`:      "b=[-Inf] loss=[NaN]",
		`{"loss": "inf", "model": "NaN \""}`: "loss=[+Inf]",
		`{"step": 4, "loss": 1e-3}`:          "step 4: loss=[0.001]",
		`{"step": 4.0, "loss": 1}`:           "step 4: loss=[1]",
		"step=2. loss=1":                     "step 2: loss=[1]",
		"step=2.5 loss=1":                    "loss=[1]",
		`{"loss": {"deep": 1}, "acc": true}`: "",
		`{"loss": 1`:                         "",
		"infeasible=out of memory":           "infeasible: out of memory",
		`{"infeasible": "too deep"}`:         "infeasible: too deep",
		`{"val_acc@1": 1, "F1 score": 2, "R²": 3, "größe": 4}`: "F1 score=[2] R²=[3] größe=[4] val_acc@1=[1]",
		"val_acc@1=1 R²=3 größe=4 [a]=5 =6":                    "val_acc@1=[1] R²=[3] größe=[4] [a]=[5]",
	} {
		if got := show(newReading([]study.Objective{{Name: "[a]"}}).parse(line)); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestReading(t *testing.T) {
	for _, c := range []struct{ output, want, missing string }{
		{"loss=1\nloss=2\n", "loss=[2]", ""},
		{"loss=1\nstep=9 loss=5", "loss=[1]", ""},
		{"step=1 loss=3 acc=1\nstep=2 loss=2", "loss=[2]", ""},
		{"acc=0.9\n", "", "loss"},
		{"{\n  \"loss\": 0.5,\n  \"acc\": [\n    1,\n    2\n  ],\n  \"m\": {\n    \"x\": 1\n  }\n}\n", "acc=[1 2] loss=[0.5]", ""},
		{"  {\r\n\"loss\": NaN\r\n}\r\n  }\r\n", "", "loss"},
		{" {\r\n\"loss\": NaN\r\n }\r\n", "loss=[NaN]", ""},
		{"{\nloss=1\nso far {\n{\n\"loss\": 2\n}", "loss=[2]", ""},
		{"{\nloss=1\n", "loss=[1]", ""},
		{"{\n\"step\": 3,\n\"loss\": 2\n}\n{\n\"step\": 4,\n\"loss\": 1\n}", "loss=[1]", ""},
		{"loss=1 acc=inf extra=2", "loss=[1] extra=[2]", ""},
		{"loss=31 %\n", "", "loss"},
		{"loss=1 time=3 s acc=90 %\nloss=5 min", "loss=[1] time=[3] acc=[90]", ""},
		{"loss=1 min 0.5 loss\n", "loss=[1]", ""},
		{"loss=1\nlr=3 batch=4\n", "loss=[1]", ""},
		{"\x1b[32mloss\x1b[0m=\x1b[1;31m0.5\x1b[0m\x1b[K\n", "loss=[0.5]", ""},
	} {
		r := newReading([]study.Objective{{Name: "loss", Direction: study.Minimize}})
		w := &lines{f: r.line}
		for _, b := range []byte(c.output) { // in the smallest pieces
			if _, err := w.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		w.flush()
		metrics, _, missing := r.outcome()
		if got := show(said{metrics: metrics}); got != c.want || missing != c.missing {
			t.Errorf("%q: got %q, missing %q; want %q, %q", c.output, got, missing, c.want, c.missing)
		}
	}
}

// Names that look the same are the same, however their accents are coded.
func TestSpelling(t *testing.T) {
	const composed, apart = "pr\u00e9cision", "pre\u0301cision"
	for _, c := range []struct{ objective, output, want string }{
		{composed, apart + "=1", composed},
		{apart, composed + "=1", apart},
		{composed, `{"pre\u0301cision": 1}`, composed},
		{composed, composed + "=1 " + apart + "x=2", composed},
	} {
		r := newReading([]study.Objective{{Name: c.objective}}, "d\u00e9lai")
		r.line(c.output)
		if _, _, missing := r.outcome(); missing != "" {
			t.Errorf("%q: missing %q", c.output, missing)
		}
		r.line("de\u0301lai=nan other=4 " + c.objective + "=1")
		metrics, _, missing := r.outcome()
		if missing != "" || metrics[0].Name != c.want {
			t.Errorf("%q: %v, missing %q", c.output, metrics, missing)
		}
		if !slices.ContainsFunc(metrics, func(m study.Metric) bool { return m.Name == "d\u00e9lai" }) {
			t.Errorf("the limited metric is not among %v", metrics)
		}
	}
}

// An objective and a limited metric are read among more metrics than a study keeps, also if they
// come from steps.
func TestObjectiveAmongMany(t *testing.T) {
	many := func(prefix string) string {
		fields := []string{`"zloss": 7`, `"zlimited": 8`}
		for i := range study.MaxMetrics + 10 {
			fields = append(fields, fmt.Sprintf(`"%s%d": %d`, prefix, i, i))
		}
		return strings.Join(fields, ", ")
	}
	for name, lines := range map[string][]string{
		"one object": {"{" + many("a") + "}"},
		"steps":      {`{"step": 1, ` + many("a") + "}"},
		"both":       {strings.Replace(`{"step": 1, `+many("a")+"}", `"zloss": 7, `, `"zloss": 3, `, 1), "zloss=7"},
	} {
		r := newReading([]study.Objective{{Name: "zloss"}}, "zlimited")
		for _, line := range lines {
			r.line(line)
		}
		metrics, _, missing := r.outcome()
		if limit := firstMissing(metrics, []string{"zlimited"}); len(metrics) != study.MaxMetrics || missing != "" || limit != "" {
			t.Errorf("%s: %d metrics, missing %q and %q", name, len(metrics), missing, limit)
		}
		for _, m := range metrics {
			if m.Name == "zloss" && m.Mean() != 7 {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func TestLongLinesAreCut(t *testing.T) {
	var got []string
	w := &lines{f: func(s string) { got = append(got, s) }}
	fmt.Fprintf(w, "%s\nloss=1\n", strings.Repeat("x", 3*maxLine))
	if len(got) != 2 || len(got[0]) != maxLine || got[1] != "loss=1" {
		t.Errorf("%d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

// FuzzParseLine looks for output that could hurt.
func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"step=3 loss=0.5", `{"loss": NaN, "x": "\\"}`, "infeasible=x", "{", "a=1±2", "a=+-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, m := range newReading(nil).parse(line).metrics {
			if m.Name == "" || len(m.Values) == 0 {
				t.Errorf("%q gave %v", line, m)
			}
		}
	})
}

// What a line says in another form than name=NUMBER is no value. The error says how to
// write it.
func TestAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"score: 0,5":               `"score: 0,5" looks like a decimal comma, so write score=0.5`,
		"score=0,5":                `"score=0,5" looks like a decimal comma, so write score=0.5`,
		"the score: -1,25e-3 ok":   `"score: -1,25e-3" looks like a decimal comma, so write score=-1.25e-3`,
		"score: 0.5":               `write "score: 0.5" as score=0.5`,
		"score 7":                  `write "score 7" as score=7`,
		`{"score": "0,5"}`:         `"score\": \"0,5" looks like a decimal comma, so write score=0.5`,
		"myscore: 0,5":             "",
		"my_score 3, score: 0,5":   `"score: 0,5" looks like a decimal comma, so write score=0.5`,
		"score: bad":               "",
		"score=50%":                `"score=50%" has "%" behind the number, so print the number alone, as in score=50`,
		"score=0.5s":               `"score=0.5s" has "s" behind the number, so print the number alone, as in score=0.5`,
		"score=31 %":               `"score=31 %" has "%" behind the number, so print the number alone, as in score=31`,
		"at score=31 percent, ok":  `"score=31 percent" has "percent" behind the number, so print the number alone, as in score=31`,
		"score=5 s":                `"score=5 s" has "s" behind the number, so print the number alone, as in score=5`,
		"score=5±1 ms; loss=3":     `"score=5 ms" has "ms" behind the number, so print the number alone, as in score=5`,
		"score=5 min":              `"score=5 min" has "min" behind the number, so print the number alone, as in score=5`,
		"limited=5 h.":             `"limited=5 h" has "h" behind the number, so print the number alone, as in limited=5`,
		"score=0.5 acc=0.9":        "",
		"score=0.5 (best 0.4)":     "",
		"score=0.5 epoch 3":        "",
		"score=0.5 min 0.4":        "",
		"score=0.5, s 3":           "",
		"score=0.5 size 3":         "",
		"score=1.2.3":              `"score=1.2.3" has ".3" behind the number, so print the number alone, as in score=NUMBER`,
		"score=0x10":               `"score=0x10" has "x10" behind the number, so print the number alone, as in score=NUMBER`,
		"score=1e":                 `"score=1e" has "e" behind the number, so print the number alone, as in score=1`,
		"score=0.5.":               `"score=0.5." has "." behind the number, so print the number alone, as in score=0.5`,
		"[score=0.5]":              `"[score=0.5]" has "[]" around it, so print score=0.5 as a word of its own`,
		"at (score=0.5":            `"(score=0.5" has "(" around it, so print score=0.5 as a word of its own`,
		"score=0.5)":               `"score=0.5)" has ")" around it, so print score=0.5 as a word of its own`,
		"score=1e999":              `"1e999" is too large for a float64; write inf if that is what is meant`,
		"score=0.5;loss=3":         `"score=0.5;loss=3" goes on behind the number, so print score=0.5 as a word of its own, with a space behind it`,
		"score=0.5,loss=3 ok":      `"score=0.5,loss=3" goes on behind the number, so print score=0.5 as a word of its own, with a space behind it`,
		"score=0.5,0.6,x":          `"score=0.5,0.6,x" goes on behind the number, so print score=0.5 as a word of its own, with a space behind it`,
		"score=1,234.5":            `"score=1,234.5" could be one number or replicates, so write score=1234.5, or for replicates score=1.0,234.5`,
		"score=-1,234,567.5":       `"score=-1,234,567.5" could be one number or replicates, so write score=-1234567.5, or for replicates score=-1.0,234,567.5`,
		"score=1,234":              `"score=1,234" could be one number or replicates, so write score=1.234 or score=1234, or for replicates score=1.0,234`,
		"score=1.234,5 ok":         `"score=1.234,5" could be one number or replicates, so write score=1234.5, or for replicates score=1.2340,5`,
		"F1 score=1,234.5":         `"F1 score=1,234.5" could be one number or replicates, so write {"F1 score": 1234.5}, or for replicates {"F1 score": [1.0,234.5]}`,
		"score=1 234":              `"score=1 234" could be a number with spaces, so write all digits without, or text between two numbers`,
		"score: 1\u202f234,5":      "\"score: 1\\u202f234,5\" could be a number with spaces, so write all digits without, or text between two numbers",
		"score=1 234 567.5 ok":     `"score=1 234 567.5" could be a number with spaces, so write all digits without, or text between two numbers`,
		`"score": 0.5`:             `write "score": 0.5 as score=0.5, or print an object of JSON on one line`,
		`score="0.5"`:              `write score="0.5" as score=0.5, or print an object of JSON on one line`,
		`{'score': 0.5}`:           `{'score': 0.5} is no JSON, so print it with json.dumps, or write score=0.5`,
		`{'a': 1, 'score': 0.5}`:   `{'a': 1, 'score': 0.5} is no JSON, so print it with json.dumps, or write score=0.5`,
		`[{"score":0.5}]`:          `[{"score":0.5}] is a list, so print the object in it alone, or write score=0.5`,
		`{"score": null}`:          `score is null, so print a number, or score=nan if there is none`,
		`score=None`:               `score is None, so print a number, or score=nan if there is none`,
		`score: Nonesuch`:          "",
		"score=tensor(0.5)":        `"score=tensor(0.5)" is not a number, so print the number itself, in Python with float(…), as in score=0.5`,
		"score=np.float64(nan)":    `"score=np.float64(nan)" is not a number, so print the number itself, in Python with float(…), as in score=nan`,
		"score: nan":               `write "score: nan" as score=nan`,
		"score: nano":              "",
		"F1 score=0.5":             `write "F1 score=0.5" as {"F1 score": 0.5}`,
		"other=1 score: .5":        `write "score: .5" as score=.5`,
		"\x1b[1mscore\x1b[0m: 0.5": `write "score: 0.5" as score=0.5`,
		"scores 3":                 "",
		"loss=1":                   "",
		"":                         "",
		"limited=1,5":              `"limited=1,5" looks like a decimal comma, so write limited=1.5`,
	} {
		r := newReading([]study.Objective{{Name: "other"}, {Name: "F1 score"}, {Name: "score"}}, "limited")
		r.line(text)
		r.line("epoch 7 done")
		if _, got := r.heard(); got != want {
			t.Errorf("%q: %s\nwant %s", text, got, want)
		}
	}
}
