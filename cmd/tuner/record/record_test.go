package record_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

func testSpec(t rapid.TB) study.Spec {
	sp, err := space.New(
		space.NewFloat("lr", 1e-5, 1).WithScale(space.Log),
		space.NewInt("n", -5, 5),
		space.NewCategorical("word", space.String(""), space.String("=1+1"), space.String("'quoted"), space.String("-x"), space.String("a,b;\"c\""), space.String("7")),
		space.NewBool("on"),
		space.NewConstant("k", space.Int(3)),
		space.NewFloat("momentum", 0, 1).Given("on", space.Bool(true)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}, {Name: "acc", Direction: study.Maximize}}}
}

// drawTrial draws a finished trial that a study would take.
func drawTrial(t *rapid.T, spec study.Spec) study.Trial {
	u := make([]float64, spec.Space.Dim())
	for i := range u {
		u[i] = rapid.Float64Range(0, 1).Draw(t, "u")
	}
	config, err := spec.Space.Decode(u)
	if err != nil {
		t.Fatal(err)
	}
	value := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.NaN(), 0, math.MaxFloat64, 5e-324}))
	loss := study.Metric{Name: "loss", Values: rapid.SliceOfN(value, 1, 3).Draw(t, "loss")}
	loss.Values = slices.DeleteFunc(loss.Values, func(x float64) bool { return math.IsInf(x, -1) })
	if len(loss.Values) == 0 {
		loss.Values = []float64{1}
	}
	acc := study.Metric{Name: "acc", Values: []float64{rapid.Float64Range(-1, 1).Draw(t, "acc")}, StdErr: 0.25, HasStdErr: rapid.Bool().Draw(t, "hasStdErr")}
	if !acc.HasStdErr {
		acc.StdErr = 0
	}
	text := rapid.SampledFrom([]string{"", "fine", "=cmd()", "'", "+1", "a\tb", "two\nlines", "größe, \"x\""})
	trial := study.Trial{
		Config: config, Attributes: study.Attributes{"note": text.Draw(t, "note"), "=k": "1"},
		Reports: []study.Report{{Step: 3, Values: []study.NamedValue{{Name: "loss", Value: value.Draw(t, "report")}}}},
		Outcome: study.Outcome{
			State: study.Completed, Message: text.Draw(t, "message"), Cost: rapid.Float64Range(0, 9).Draw(t, "cost"),
			Metrics: []study.Metric{loss, acc, {Name: "extra", Values: []float64{1, 2}}},
		},
	}
	trial.State = trial.Outcome.State
	return trial
}

// take has a study take in a trial, and returns it as it stands there.
func take(t *rapid.T, s *study.Study, c study.Add) study.Trial {
	reply, events, err := s.Decide(time.Unix(1, 0), c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	trial, _ := s.Trial(reply.Trials[0])
	return trial
}

// A trial that is written in any format and read again is the same.
func TestTrialsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := testSpec(t)
		var s study.Study
		_, events, err := s.Decide(time.Unix(1, 0), study.Create{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(events[0]); err != nil {
			t.Fatal(err)
		}
		drawn := drawTrial(t, spec)
		want := take(t, &s, study.Add{Config: drawn.Config, Reports: drawn.Reports, Outcome: drawn.Outcome, Attributes: drawn.Attributes})
		r := record.OfTrial(want)
		for form, data := range map[record.Form][]byte{record.JSONL: jsonOf(t, r), record.JSON: jsonOf(t, []record.Trial{r}), record.CSV: csvOf(t, r, spec)} {
			if got := record.Detect(data); got != form {
				t.Fatalf("%s was taken for %s:\n%s", form, got, data)
			}
			n := 0
			for item, err := range record.Read(data, form) {
				if err != nil {
					t.Fatalf("%s: %v\n%s", form, err, data)
				}
				n++
				add, err := item.Trial.Add(spec.Space)
				if err != nil {
					t.Fatalf("%s: %v\n%s", form, err, data)
				}
				if diff := difference(want, take(t, &s, add)); diff != "" {
					t.Fatalf("%s: %s\n%s", form, diff, data)
				}
			}
			if n != 1 {
				t.Fatalf("%s: %d trials\n%s", form, n, data)
			}
		}
	})
}

func difference(a, b study.Trial) string {
	switch {
	case !a.Config.Equal(b.Config):
		return fmt.Sprintf("config %v, was %v", b.Config, a.Config)
	case !a.Outcome.Equal(b.Outcome):
		return fmt.Sprintf("outcome %+v, was %+v", b.Outcome, a.Outcome)
	case fmt.Sprint(a.Reports) != fmt.Sprint(b.Reports):
		return fmt.Sprintf("reports %v, were %v", b.Reports, a.Reports)
	case fmt.Sprint(a.Attributes) != fmt.Sprint(b.Attributes):
		return fmt.Sprintf("attributes %v, were %v", b.Attributes, a.Attributes)
	}
	return ""
}

func jsonOf(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func csvOf(t *rapid.T, r record.Trial, spec study.Spec) []byte {
	header := record.CSVHeader(spec)
	row, err := r.CSVRow(header)
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range row {
		if column := header[i]; cell != "" && bytes.ContainsAny([]byte(cell[:1]), "=@\t\r") {
			t.Fatalf("column %s: %q is a formula to a spreadsheet", column, cell)
		}
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll([][]string{header, row}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzRead looks for files that could hurt.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"config.lr,value.loss\n0.1,1\n", `{"trial":0,"state":"completed","config":{"lr":0.1},"values":{"loss":[1,"nan"]}}`,
		`[{"number":0,"params":{"lr":0.1},"state":"COMPLETE","value":NaN}]`, `{"space":{},"trials":[{"params":{}}]}`, "\ufeffstate\n", "[", `{"params":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for item, err := range record.Read(data, record.Detect(data)) {
			if err == nil {
				_, _ = item.Trial.Bind([]study.Objective{{Name: "loss", Direction: study.Minimize}}).Add(&space.Space{})
			}
		}
		_, _, _, _ = record.OptunaStudy(data)
	})
}

// Files of spreadsheets and old programs have other delimiters and line ends. What could be
// two things is refused.
func TestDialects(t *testing.T) {
	const rows = "config.lr,config.word,value.loss,message\n0.5,a b,3,fine\n0.25,,4,\n"
	for name, text := range map[string]string{
		"commas":       rows,
		"spaces":       strings.ReplaceAll(rows, ",", ", "),
		"semicolons":   strings.ReplaceAll(rows, ",", ";"),
		"around":       strings.ReplaceAll(rows, ",", " ; "),
		"bars":         strings.ReplaceAll(rows, ",", "|"),
		"tabs":         strings.ReplaceAll(rows, ",", "\t"),
		"CRLF":         strings.ReplaceAll(rows, "\n", "\r\n"),
		"CR":           strings.ReplaceAll(rows, "\n", "\r"),
		"CR and a BOM": "\ufeff" + strings.ReplaceAll(strings.ReplaceAll(rows, "\n", "\r"), ",", ";"),
	} {
		var got []string
		for item, err := range record.Read([]byte(text), record.CSV) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			lr, _ := item.Trial.Config.Get("lr")
			word, _ := item.Trial.Config.Get("word")
			got = append(got, fmt.Sprint(strings.TrimSpace(lr.String()), strings.TrimSpace(word.String()), item.Trial.Values["loss"], item.Trial.Message))
		}
		if want := []string{"0.5a b[3]fine", "0.25<none>[4]"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for item, err := range record.Read([]byte("config.lr,config.word,value.loss\n1,NA,\"1.0,234.5\"\n1,NA, N/A\n1,NA,<NA>\n1,NA,None\n"), record.CSV) {
		values := item.Trial.Values["loss"]
		if word, _ := item.Trial.Config.Get("word"); err != nil || word.String() != "NA" || item.Trial.Unfinished() != (values == nil) || values != nil && !slices.Equal(values, record.Numbers{1, 234.5}) {
			t.Errorf("%s, %v of %v, %v", word, values, item.Trial, err)
		}
	}
	for text, want := range map[string]string{
		"config.lr;value.loss\n1;0,5\n":         "could be a decimal comma",
		"config.lr\tvalue.loss\n1\t-1,5e-3\n":   "could be a decimal comma",
		"config.lr;value.loss\n1;1.234,5\n":     "write 1234.5, or for replicates 1.2340,5",
		"config.lr;value.loss\n1;1,234.5\n":     "write 1234.5, or for replicates 1.0,234.5",
		"config.lr,value.loss\n1,\"1,234.5\"\n": "write 1234.5, or for replicates 1.0,234.5",
		"config.lr,value.loss\n1,\"0,5\"\n":     "write 0.5, or for replicates 0.0,5",
		"config.lr:value.loss\n1:2\n":           "none of the delimiters",
		"config.lr;value.loss;what\n1;2;3\n":    `there is no column "what"`,
	} {
		var err error
		for _, err = range record.Read([]byte(text), record.CSV) {
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The infinity on the good side of an objective cannot be measured, so its trial failed.
func TestMeasurable(t *testing.T) {
	objectives := []study.Objective{{Name: "loss", Direction: study.Minimize}, {Name: "acc", Direction: study.Maximize}}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		state            string
		loss, acc, steps float64
		want             string
		values, reports  int
	}{
		"finite":      {"completed", 1, 2, 3, "completed", 2, 1},
		"bad side":    {"completed", inf, -inf, inf, "completed", 2, 1},
		"best loss":   {"completed", -inf, 2, 3, "failed", 1, 1},
		"best acc":    {"completed", 1, inf, 3, "failed", 1, 1},
		"both":        {"completed", -inf, inf, -inf, "failed", 0, 0},
		"best step":   {"completed", 1, 2, -inf, "completed", 2, 0},
		"pruned":      {"pruned", -inf, 2, 3, "pruned", 1, 1},
		"had crashed": {"failed", -inf, 2, 3, "failed", 1, 1},
	} {
		r := record.Trial{
			State: c.state, Values: map[string]record.Numbers{"loss": {c.loss}, "acc": {c.acc}},
			Reports: []record.Report{{Step: 1, Values: map[string]record.Number{"loss": record.Number(c.steps)}}},
		}
		got, ok := r.Measurable(objectives)
		if got.State != c.want || ok != (c.state == c.want) || len(got.Values) != c.values || len(got.Reports) != c.reports {
			t.Errorf("%s: %t, %+v", name, ok, got)
		}
		var s study.Study
		sp, _ := space.New(space.NewFloat("x", 0, 1))
		_, events, err := s.Decide(time.Now(), study.Create{Spec: study.Spec{Space: sp, Objectives: objectives}})
		if err != nil || s.Apply(events[0]) != nil {
			t.Fatal(err)
		}
		got.Config = space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.5)})
		add, err := got.Add(sp)
		if err == nil {
			_, _, err = s.Decide(time.Now(), add)
		}
		if err != nil {
			t.Errorf("%s: the study refuses it: %v", name, err)
		}
	}
}

// The forms read the same trials: numbers that are not finite as Python writes them, and none
// where a value is missing.
func TestFormsAgree(t *testing.T) {
	const csv = "config.x,value.v\n0.1,1\n0.2,-Infinity\n0.3,nan\n0.4,\n0.5, \n0.6,\"1,inf\"\n"
	objects := []string{
		`{"config": {"x": 0.1}, "values": {"v": 1}}`,
		`{"config": {"x": 0.2}, "values": {"v": -Infinity}}`,
		`{"config": {"x": 0.3}, "values": {"v": NaN}}`,
		`{"config": {"x": 0.4}, "values": {"v": null}}`,
		`{"config": {"x": 0.5}}`,
		`{"config": {"x": 0.6}, "values": {"v": [1, Infinity]}}`,
	}
	want := "completed[1] completed[-Inf] completed[NaN] queued[] queued[] completed[1 +Inf] "
	for form, text := range map[record.Form]string{
		record.CSV:   csv,
		record.JSONL: strings.Join(objects, "\n"),
		record.JSON:  "[" + strings.Join(objects, ",\n") + "]",
	} {
		got := ""
		for item, err := range record.Read([]byte(text), form) {
			if err != nil {
				t.Fatalf("%s: %v", form, err)
			}
			got += fmt.Sprintf("%s%v ", item.Trial.State, item.Trial.Values["v"])
		}
		if got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
}

// TestWideHeader reads a file of 400,000 columns, all of which are different but the last. Work
// that grows with the square of their number would take longer than tests may.
func TestWideHeader(t *testing.T) {
	header := make([]string, 400_000)
	for i := range header {
		header[i] = fmt.Sprintf("config.p%d", i)
	}
	for _, last := range []string{"value.loss", "config.p7"} {
		header[len(header)-1] = last
		var failed error
		for _, err := range record.Read([]byte(strings.Join(header, ",")+"\n"), record.Form("csv")) {
			failed = err
		}
		if (failed != nil) != (last == "config.p7") || failed != nil && !strings.Contains(failed.Error(), `two columns "config.p7"`) {
			t.Errorf("with %s: %v", last, failed)
		}
	}
}
