package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// A model of a quantile is validated by the pinball loss, and a file knows its τ.
func TestRobustLossesHaveTheirMeasures(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,y\n")
	rng := stream.New(5)
	for range 800 {
		x := rng.NormFloat64()
		b.WriteString(num(x) + "," + num(100+10*math.Sin(2*x)+3*rng.NormFloat64()) + "\n")
	}
	d, err := Prepare(t.Context(), open(t, b.String(), dataset.Options{}), Split{Test: 0.5, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProblem(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		algorithm string
		values    Values
		measure   string
		below     float64
	}{
		{"falkon", Values{"loss": "quantile", "quantile": "0.8"}, "pinball", 0.8},
		{"sgdrf", Values{"loss": "quantile", "quantile": "0.3", "step-decay": "0.5", "passes": "20"}, "pinball", 0.3},
		{"falkon", Values{"loss": "huber"}, "huber", 0},
		{"sgdrf", Values{"loss": "huber", "delta": "0.1"}, "huber", 0},
		{"falkon", nil, "rmse", 0},
	} {
		a, err := Find(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		s := a.Scoring(c.values, p)
		name, measure, err := MeasureNamed("", d.Encoding, s)
		if err != nil || name != c.measure {
			t.Errorf("%s %v: measure %q, %v", c.algorithm, c.values, name, err)
			continue
		}
		m := fitted(t, a, c.values, p, d)
		params, err := json.Marshal(a.Used(c.values, p, m))
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := (&learners.File{Algorithm: a.Name, Params: params, Encoding: d.Encoding, Model: m}).Write(&file); err != nil {
			t.Fatal(err)
		}
		f, err := learners.Read(&file, nil)
		if err != nil {
			t.Fatal(err)
		}
		scores, err := Evaluate(t.Context(), f.Model, d.Encoding, d.Test, ScoringOf(f))
		if err != nil {
			t.Fatal(err)
		}
		y, err := data.Targets(t.Context(), d.Test)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, len(y))
		if err := m.Predict(t.Context(), out, d.Test); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(scores, func(s Score) bool { return s.Name == c.measure })
		if at < 0 || math.Abs(scores[at].Value-measure(out, y, 1)) > 1e-9 {
			t.Errorf("%s %v: scores %v, want %s of %v", c.algorithm, c.values, scores, c.measure, measure(out, y, 1))
		}
		if c.below > 0 {
			if below := scores[len(scores)-1]; below.Name != "below" || math.Abs(below.Value-c.below) > 0.06 {
				t.Errorf("%s %v: %v, want a share of %g", c.algorithm, c.values, below, c.below)
			}
		}
	}
}

func TestRobustLossesAreForNumbers(t *testing.T) {
	for _, name := range []string{"falkon", "sgdrf"} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var bad *ValueError
		_, err = a.Estimator(Values{"loss": "huber"}, Problem{Rows: 10, Dim: 1, Outputs: 1, Task: data.Classification, MedianDistance: 1})
		if !errors.As(err, &bad) || bad.What != "loss" || !strings.Contains(bad.Want, "log-falkon") {
			t.Errorf("%s: %v", name, err)
		}
		_, err = a.Estimator(Values{"loss": "quantile", "quantile": "1.5"}, Problem{Rows: 10, Dim: 1, Outputs: 1, Task: data.Regression, MedianDistance: 1})
		var value *learners.ParameterError
		if !errors.As(err, &value) || value.Parameter != "quantile" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
