package training

import (
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// Parts have the weights of their rows.
func TestPartsHaveTheirWeights(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,w,y\n")
	for i := range 50 {
		b.WriteString(num(float64(i)) + "," + num(float64(i)/2) + "," + num(float64(i%7)) + "\n")
	}
	table := open(t, b.String(), dataset.Options{Weights: "w"})
	d, err := Prepare(t.Context(), table, Split{Validation: 0.2, Test: 0.2, Seed: 3}, data.EncodingOptions{KeepInputs: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name    string
		src     data.Source
		weights []float64
	}{
		{"training", d.Train, d.Weights},
		{"validation", d.Validation, d.ValidationWeights},
		{"test", d.Test, d.TestWeights},
	} {
		m, err := data.Load(t.Context(), part.src)
		if err != nil {
			t.Fatal(err)
		}
		x := inputsOf(t, m)
		if len(part.weights) != len(x) {
			t.Fatalf("%s: %d weights of %d rows", part.name, len(part.weights), len(x))
		}
		for i, v := range x {
			if part.weights[i] != v/2 {
				t.Errorf("%s: row %d with input %g has the weight %g", part.name, i, v, part.weights[i])
			}
		}
	}
}

func TestClassWeights(t *testing.T) {
	table := open(t, "x,w,label\n1,1,a\n2,1,a\n3,2,b\n4,1,a\n5,4,c\n", dataset.Options{Weights: "w", Target: []string{"label"}})
	d, err := Prepare(t.Context(), table, Split{}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]float64{
		"":             {1, 1, 2, 1, 4},
		"balanced":     {1.0 / 3, 1.0 / 3, 1, 1.0 / 3, 1},
		"a=3, c=0.5":   {3, 3, 2, 3, 2},
		"b=0":          {1, 1, 0, 1, 4},
		"a=1,b=1,c=10": {1, 1, 2, 1, 40},
	} {
		got, err := ClassWeights(t.Context(), text, d.Encoding, d.Train, d.Weights)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"a": "must be balanced, or weights such as a=2", "d=1": `no class "d"; the classes are a, b, c`,
		"a=1,a=2": "has a weight already", "a=-1": "≥ 0", "a=x": "a finite number", "a=NaN": "a finite number",
	} {
		if _, err := ClassWeights(t.Context(), text, d.Encoding, d.Train, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ClassWeights(t.Context(), Balanced, &data.Encoding{Task: data.Regression}, d.Train, nil); err == nil || !strings.Contains(err.Error(), "is a number") {
		t.Errorf("numbers: %v", err)
	}
}

// Balanced weights find the rare class, which the plain fit ignores.
func TestBalancedWeightsFindTheRareClass(t *testing.T) {
	d, err := Prepare(t.Context(), open(t, rare(600), dataset.Options{Target: []string{"label"}}), Split{Test: 0.5, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProblem(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"falkon", "log-falkon", "krr", "nystrom", "sgdrf"} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		accuracy := map[string]float64{}
		for _, text := range []string{"", Balanced} {
			w, err := ClassWeights(t.Context(), text, d.Encoding, d.Train, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := a.Estimator(Values{"lambda": "1e-2"}, p)
			if err != nil {
				t.Fatal(err)
			}
			m, err := e.Fit(t.Context(), d.Train, learners.Options{Weights: w})
			if err != nil {
				t.Fatal(err)
			}
			scores, err := Evaluate(t.Context(), m, d.Encoding, d.Test, learners.Scoring{})
			if err != nil {
				t.Fatal(err)
			}
			accuracy[text] = scores[1].Value
		}
		if !(accuracy[Balanced] > accuracy[""]+0.1) {
			t.Errorf("%s: balanced accuracy %v", name, accuracy)
		}
	}
}

// rare is n rows with noisy classes, one of which has about an eighth of the rows.
func rare(n int) string {
	var b strings.Builder
	b.WriteString("x,z,label\n")
	rng := stream.New(4)
	for range n {
		x, z := rng.NormFloat64(), rng.NormFloat64()
		label := "often"
		if x+z+rng.NormFloat64() > 2 {
			label = "rare"
		}
		b.WriteString(num(x) + "," + num(z) + "," + label + "\n")
	}
	return b.String()
}

// inputsOf returns the only input of each row.
func inputsOf(t *testing.T, m *data.Memory) []float64 {
	t.Helper()
	x, ok := m.Rows().(*kernel.Points[float64])
	if !ok {
		t.Fatalf("rows of type %T", m.Rows())
	}
	return x.Data()
}
