package training

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/krr"
)

// relevant returns n rows of d inputs, of which the target uses the first five, with
// inputs divided by scales.
func relevant(t *testing.T, n, d int, noise float64, rng *rand.Rand, scales []float64) *data.Memory {
	t.Helper()
	x, y := make([][]float64, n), make([]float64, n)
	for i := range x {
		row := make([]float64, d)
		for c := range row {
			row[c] = rng.NormFloat64()
		}
		y[i] = math.Sin(2*row[0]) + row[1]*row[2] + math.Cos(row[3]+row[4]) + noise*rng.NormFloat64()
		for c := range row {
			if scales != nil {
				row[c] /= scales[c]
			}
		}
		x[i] = row
	}
	m, err := data.FromSlices(x, y)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// problemOf describes src.
func problemOf(t *testing.T, src data.Source) Problem {
	t.Helper()
	p, err := NewProblem(t.Context(), &Data{Encoding: &data.Encoding{Task: data.Regression}, Train: src}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A length scale for each input is the same as dividing the inputs by them, also in the
// model that is saved and read again.
func TestLengthScalesDivideInputs(t *testing.T) {
	scales := []float64{0.5, 2, 3, 1, 4, 8}
	plain := relevant(t, 300, 6, 0.1, stream.New(3), nil)
	divided := relevant(t, 300, 6, 0.1, stream.New(3), scales)
	p := problemOf(t, plain)
	for _, c := range []struct {
		algorithm string
		values    Values
	}{
		{"falkon", Values{"iterations": "100"}},
		{"falkon", Values{"kernel": "matern52", "sampler": "bless", "iterations": "100"}},
		{"krr", Values{"kernel": "laplace"}},
		{"nystrom", Values{"kernel": "matern32"}},
		{"sgdrf", nil},
		{"sgdrf", Values{"kernel": "matern52", "lambda": "1e-3"}},
	} {
		a, err := Find(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		with := func(text string) Values {
			v := Values{"length-scale": text, "lambda": "1e-4"}
			for name, text := range c.values {
				v[name] = text
			}
			return v
		}
		want := outputs(t, fitted(t, a, with("1"), p, &Data{Train: divided}), &Data{Train: divided})
		m := fitted(t, a, with(FormatLengths(scales)), p, &Data{Train: plain})
		var file bytes.Buffer
		f := learners.File{Algorithm: a.Name, Model: m}
		if err := f.Write(&file); err != nil {
			t.Fatal(err)
		}
		back, err := learners.Read(&file, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]learners.Model{"the model": m, "the saved model": back.Model} {
			got := outputs(t, m, &Data{Train: plain})
			for i := range want {
				if math.Abs(got[i]-want[i]) > 1e-6 {
					t.Errorf("%s %v, %s: row %d has %v, want %v", c.algorithm, c.values, name, i, got[i], want[i])
					break
				}
			}
		}
	}
}

// The Laplace kernel has length scales and a λ of its own.
func TestTheLaplaceKernelHasItsLengthScales(t *testing.T) {
	a, err := Find("krr")
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{
		Rows: 100, Dim: 2, Outputs: 1, MedianDistance: 2,
		Learned: &Learned{Kernel: "matern52", Lengths: []float64{1, 4}, Ridge: 3, MedianDistance: 0.5},
		Laplace: &Learned{Kernel: LaplaceKernel, Lengths: []float64{30, 20}, Ridge: 7, MedianDistance: 0.1},
	}
	for _, c := range []struct {
		kernel, scale string
		lengths       []float64
		lambda        float64
	}{
		{LaplaceKernel, Auto, []float64{30, 20}, 0.07},
		{"matern32", Auto, []float64{1, 4}, 0.03},
		{LaplaceKernel, "6", []float64{9, 6}, 0.01}, // × 0.1·6/2, and κ²/n
		{"gaussian", "6", []float64{1.5, 6}, 0.01},
	} {
		e, err := a.Estimator(Values{"kernel": c.kernel, lengthScaleName: c.scale, relevanceName: learnedRelevance}, p)
		if err != nil {
			t.Fatal(err)
		}
		fit := e.(krr.Params)
		got := fit.Kernel.(*kernel.Base).LengthScales()
		if !floats.EqualApprox(got, c.lengths, 1e-12) || math.Abs(fit.Lambda-c.lambda) > 1e-12 {
			t.Errorf("%s %s: length scales %v with λ = %g, want %v with %g", c.kernel, c.scale, got, fit.Lambda, c.lengths, c.lambda)
		}
	}
}

func TestDefaultCenters(t *testing.T) {
	for _, c := range []struct {
		rows   int
		values Values
		want   int
	}{
		{10, nil, 10},
		{900, nil, 600},
		{2500, nil, 1000},
		{10_001, nil, 1001},
		{250_000, nil, 5000},
		{900, Values{"centers": "7"}, 7},
		{900, Values{"sampler": "bless"}, 0},
		{900, Values{relevanceName: learnedRelevance}, 900},
		{90_000, Values{relevanceName: learnedRelevance}, 3000},
	} {
		for _, a := range []Algorithm{falkonAlgorithm, logFalkon, nystromAlgorithm} {
			if got := (reader{&a, c.values}).centers(Problem{Rows: c.rows}); got != c.want {
				t.Errorf("%s, %d rows, %v: %d centres, want %d", a.Name, c.rows, c.values, got, c.want)
			}
		}
	}
}

func TestLengthScalesAreChecked(t *testing.T) {
	a, err := Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{Rows: 100, Dim: 3, Outputs: 1, MedianDistance: 2}
	for text, want := range map[string]string{
		"1,2":    `falkon: length-scale is "2 numbers", want 1 number, or 3 with commas between, one for each encoded input`,
		"1,0,2":  `want a number > 0, one for each encoded input with commas between, median or auto`,
		"1,,2":   "want a number > 0",
		"1,x,2":  "want a number > 0",
		"1,-2,3": "want a number > 0",
		"+Inf":   "want a number > 0",
		"median": "",
		"1,2,3":  "",
		"0.5":    "",
	} {
		_, err := a.Estimator(Values{"length-scale": text}, p)
		var value *ValueError
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
		case !errors.As(err, &value) || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	lengths := []float64{0.1, 1.0 / 3, 1e-12}
	back, err := parseLengths(FormatLengths(lengths))
	if err != nil || len(back) != 3 || back[0] != lengths[0] || back[1] != lengths[1] || back[2] != lengths[2] {
		t.Errorf("%v are read back as %v, %v", lengths, back, err)
	}
}
