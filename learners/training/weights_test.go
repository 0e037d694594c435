package training

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
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

// weighed is rows of a table, each with its weight and the cells "x,z,c,y".
type weighed struct {
	weights []int
	cells   []string
}

// csv writes the rows with their weights, or as often as their weights say.
func (w weighed) csv(copies bool) string {
	var b strings.Builder
	b.WriteString("x,z,c,y,w\n")
	for i, cells := range w.cells {
		weight, times := w.weights[i], 1
		if copies {
			weight, times = 1, weight
		}
		b.WriteString(strings.Repeat(cells+","+strconv.Itoa(weight)+"\n", times))
	}
	return b.String()
}

// weighedRows returns 50 rows with weights from 1 to 3, with and without rows of weight 0
// between them that are wrong by far.
func weighedRows(rng *rand.Rand, classes bool) (good, wild weighed) {
	for range 50 {
		for rng.IntN(3) == 0 {
			y := [...]string{"1e9", "-7", ""}[rng.IntN(3)]
			if classes {
				y = [...]string{"other", "yes", ""}[rng.IntN(3)]
			}
			x := [...]string{"1e6", "-1e300", ""}[rng.IntN(3)]
			wild.weights, wild.cells = append(wild.weights, 0), append(wild.cells, x+","+num(rng.NormFloat64())+",wild,"+y)
		}
		x, z := rng.NormFloat64(), 3+2*rng.NormFloat64()
		y := math.Sin(2*x) + z/3 + 0.2*rng.NormFloat64()
		text := num(y)
		if classes {
			text = [...]string{"no", "yes"}[rng.IntN(6)/5]
			if y > 1 {
				text = "yes"
			}
		}
		cells, w := num(x)+","+num(z)+","+[...]string{"a", "b"}[rng.IntN(2)]+","+text, 1+rng.IntN(3)
		good.weights, good.cells = append(good.weights, w), append(good.cells, cells)
		wild.weights, wild.cells = append(wild.weights, w), append(wild.cells, cells)
	}
	return good, wild
}

// outputsOf fits an algorithm to a table, and returns the outputs for 20 rows in the units of
// the targets, the encoding and the measured errors.
func outputsOf(t *testing.T, name, csv string, v Values, split Split) (out []float64, e *data.Encoding, errors []float64) {
	t.Helper()
	a, err := Find(name)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	table, _, err := open(t, csv, dataset.Options{Weights: "w", Target: []string{"y"}}).Labelled(t.Context(), nil)
	check(err)
	d, err := Prepare(t.Context(), table, split, data.EncodingOptions{})
	check(err)
	p, err := NewProblem(t.Context(), d, 4)
	check(err)
	check(a.Learn(t.Context(), v, d.Train, d.Weights, &p, 4, 1))
	fit, err := a.Estimator(v, p)
	check(err)
	s := a.Scoring(v, p)
	s.Weights = d.ValidationWeights
	_, measure, err := MeasureNamed("", d.Encoding, s)
	check(err)
	o := learners.Options{Seed: 4, Weights: d.Weights, Validation: d.Validation, Measure: measure, Progress: func(p learners.Progress) error {
		errors = append(errors, p.ValidationError)
		return nil
	}}
	m, err := fit.Fit(t.Context(), d.Train, o)
	check(err)
	rng, rows := stream.New(9), make([]float64, 20*d.Train.Dim())
	for i := range rows {
		rows[i] = rng.NormFloat64()
	}
	out = make([]float64, 20*m.Outputs())
	check(m.Predict(t.Context(), out, kernel.FromRows(kernel.NewPoints(20, d.Train.Dim(), rows))))
	d.Encoding.Decode(out)
	return out, d.Encoding, errors
}

// Rows of weight 0 have no effect on any learner, to the bit, and whole weights are copies. The
// last are compared where no row is drawn at random. avgsgd and doublyonline take copies.
func TestWeightsInAllLearners(t *testing.T) {
	all := Values{"centers": "1000"}
	for _, c := range []struct {
		name      string
		values    Values
		tolerance float64 // of copies, or 0 where rows are drawn
	}{
		{"krr", nil, 1e-9},
		{"krr", Values{"length-scale": "auto"}, 1e-5},
		{"falkon", Values{"centers": "1000", "iterations": "300", "tolerance": "1e-14"}, 1e-9},
		{"falkon", Values{"centers": "1000", "loss": "huber"}, 1e-4},
		{"falkon", Values{"centers": "20"}, 0},
		{"falkon", Values{"centers": "20", "sampler": "bless"}, 0},
		{"log-falkon", Values{"centers": "1000", "tolerance": "1e-11", "steps": "300", "iterations": "60"}, 1e-9},
		{"nystrom", all, 1e-9},
		{"nystrom", Values{"centers": "1000", "solver": "cg", "iterations": "400", "tolerance": "1e-14"}, 1e-9},
		{"nystrom", Values{"centers": "15", "sampler": "squeak"}, 0},
		{"sgdrf", nil, 0},
		{"sgdrf", Values{"random-features": "64", "batch-size": "10000", "step-size": "0.5", "sampling": "cycle"}, 1e-9},
		{"landweber", nil, 1e-3}, // the step is an estimate
		{"landweber", Values{"step-size": "0.5"}, 1e-9},
		{"avgsgd", nil, 1e-9},
		{"avgsgd", Values{"kernel": "none", "sampling": "cycle"}, 1e-9},
		{"doublyonline", nil, 1e-9},
	} {
		for seed := range uint64(racetest.Size(1, 3)) {
			t.Run(fmt.Sprintf("%s %v seed %d", c.name, c.values, seed), func(t *testing.T) {
				good, wild := weighedRows(stream.New(seed), c.name == "log-falkon")
				split := Split{Validation: 0.25, Seed: seed}
				want, _, wantErrors := outputsOf(t, c.name, good.csv(false), c.values, split)
				got, _, gotErrors := outputsOf(t, c.name, wild.csv(false), c.values, split)
				if !slices.Equal(got, want) || !slices.Equal(gotErrors, wantErrors) {
					t.Errorf("with rows of weight 0 the outputs are %v with errors %v, without them %v with %v", got, gotErrors, want, wantErrors)
				}
				if c.tolerance == 0 {
					return
				}
				got, ours, _ := outputsOf(t, c.name, wild.csv(false), c.values, Split{})
				want, theirs, _ := outputsOf(t, c.name, wild.csv(true), c.values, Split{})
				near := func(what string, got, want, scale float64) {
					if !(math.Abs(got-want) <= scale) {
						t.Errorf("%s is %v with weights and %v of copies", what, got, want)
					}
				}
				for i, in := range ours.Inputs {
					near(in.Name+"'s center", in.Center, theirs.Inputs[i].Center, 1e-9)
					near(in.Name+"'s scale", in.Scale, theirs.Inputs[i].Scale, 1e-9)
				}
				for i := range want {
					near("an output", got[i], want[i], c.tolerance*10)
				}
			})
		}
	}
}
