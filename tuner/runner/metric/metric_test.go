package metric_test

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/tuner/runner/metric"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

func TestNumbersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		y, err := metric.ParseNumber(metric.FormatNumber(x))
		if err != nil {
			t.Fatal(err)
		}
		if x != y && !(math.IsNaN(x) && math.IsNaN(y)) {
			t.Fatalf("%v came back as %v", x, y)
		}
	})
}

func TestStrangeNumbersAreRefused(t *testing.T) {
	for _, text := range []string{"", " 1", "0x10", "1_000", "1e400", "--1", "1e", "one", "1,5", "0.1f", "-nan", "1 2", "∞"} {
		if x, err := metric.ParseNumber(text); err == nil {
			t.Errorf("%q was read as %v", text, x)
		}
	}
	for text, want := range map[string]float64{"INF": math.Inf(1), "-Infinity": math.Inf(-1), "+.5": 0.5, "1E3": 1000, "-0": 0} {
		if x, err := metric.ParseNumber(text); err != nil || x != want {
			t.Errorf("%q was read as %v, %v; want %v", text, x, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  []study.Metric
	}{
		{[]string{"-0.3"}, []study.Metric{{Name: "loss", Values: []float64{-0.3}}}},
		{[]string{"=-0.3"}, []study.Metric{{Name: "loss", Values: []float64{-0.3}}}},
		{[]string{"acc=0.9", "loss=1,2.5"}, []study.Metric{{Name: "acc", Values: []float64{0.9}}, {Name: "loss", Values: []float64{1, 2.5}}}},
		{[]string{"loss=1", "loss=2"}, []study.Metric{{Name: "loss", Values: []float64{1, 2}}}},
		{[]string{"loss=0.3±0.01"}, []study.Metric{{Name: "loss", Values: []float64{0.3}, StdErr: 0.01, HasStdErr: true}}},
		{[]string{"loss=-0.3+-1e-2"}, []study.Metric{{Name: "loss", Values: []float64{-0.3}, StdErr: 0.01, HasStdErr: true}}},
	} {
		got, err := metric.Parse(c.words, "loss")
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%q: %v, %v", c.words, got, err)
			continue
		}
		for i := range got {
			if !got[i].Equal(c.want[i]) {
				t.Errorf("%q: got %v, want %v", c.words, got[i], c.want[i])
			}
			again, err := metric.Read(got[i].Name, metric.Format(got[i]))
			if err != nil || !again.Equal(got[i]) {
				t.Errorf("%v came back as %v, %v", got[i], again, err)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, words := range [][]string{{"0.3"}, {"=1"}, {"loss="}, {"loss=1,"}, {"loss=1,2±3"}, {"loss=1±"}, {"loss=1±1", "loss=2"}, {"loss=a"}, {"loss=0,31"}, {"loss=-2,5"}, {"loss=1,2"}, {"loss=1,234.5"}, {"loss=1.234,5"}, {"loss=-1,234,567"}} {
		if got, err := metric.Parse(words, ""); err == nil {
			t.Errorf("%q was read as %v", words, got)
		}
	}
}

// Python's words for numbers become strings where they are values, and nowhere else.
func TestQuoteWords(t *testing.T) {
	for text, want := range map[string]string{
		`[NaN,Infinity, -Infinity]`:        `["NaN","Infinity", "-Infinity"]`,
		`{"NaN": NaN, "a\"NaN": [1]}`:      `{"NaN": "NaN", "a\"NaN": [1]}`,
		`{NaN: 1, -Infinity :2}`:           `{NaN: 1, -Infinity :2}`,
		`{"a": {"b": NaN}, "c":-Infinity}`: `{"a": {"b": "NaN"}, "c":"-Infinity"}`,
	} {
		if got := string(metric.QuoteWords([]byte(text))); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}
