package record_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
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
		space.NewCategorical("word", space.String(""), space.String("=1+1"), space.String("'quoted"), space.String("-x"), space.String("a,b\n\"c\""), space.String("7")),
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
