package training

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// open reads text as a table.
func open(t *testing.T, text string, o dataset.Options) *dataset.Table {
	t.Helper()
	return openAs(t, "data.csv", text, o)
}

// openAs reads text as a table of a file with this name.
func openAs(t *testing.T, name, text string, o dataset.Options) *dataset.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(t.Context(), o, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// labelled is 120 rows, a third of which have class b.
func labelled() string {
	var b strings.Builder
	b.WriteString("x,z,label\n")
	rng := stream.New(1)
	for i := range 120 {
		class := "a"
		if i%3 == 0 {
			class = "b"
		}
		b.WriteString(strings.Join([]string{num(rng.NormFloat64()), num(10 + 5*rng.NormFloat64()), class}, ",") + "\n")
	}
	return b.String()
}

func num(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func TestPartsHaveSharesOfRowsAndClasses(t *testing.T) {
	table := open(t, labelled(), dataset.Options{})
	d, err := Prepare(t.Context(), table, Split{Validation: 0.25, Test: 0.25, Seed: 3}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name   string
		src    data.Source
		rows   int
		second int // rows of class b
	}{{"training", d.Train, 60, 20}, {"validation", d.Validation, 30, 10}, {"test", d.Test, 30, 10}} {
		y, err := data.Targets(t.Context(), part.src)
		if err != nil {
			t.Fatal(err)
		}
		second := 0
		for _, v := range y {
			if v > 0 {
				second++
			}
		}
		if part.src.Len() != part.rows || second != part.second {
			t.Errorf("%s has %d rows, %d of class b; want %d, %d", part.name, part.src.Len(), second, part.rows, part.second)
		}
	}
}

func TestEncodingSeesTrainingRowsOnly(t *testing.T) {
	table := open(t, labelled(), dataset.Options{})
	d, err := Prepare(t.Context(), table, Split{Test: 0.5, Seed: 4}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mean := func(src data.Source) float64 {
		m, err := data.Load(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		x := m.Rows().(*kernel.Points[float64])
		s := 0.0
		for i := range x.Len() {
			s += x.Row(i)[1]
		}
		return s / float64(x.Len())
	}
	if m := mean(d.Train); math.Abs(m) > 1e-12 {
		t.Errorf("training inputs have mean %v, want 0", m)
	}
	if m := mean(d.Test); math.Abs(m) < 1e-6 {
		t.Errorf("test inputs have mean %v: they were fitted too", m)
	}
}

func TestSplitsThatLeaveNothingAreRefused(t *testing.T) {
	table := open(t, labelled(), dataset.Options{})
	for _, s := range []Split{{Validation: -0.1}, {Test: 1}, {Validation: 0.5, Test: 0.5}, {Validation: math.NaN()}, {Test: 1e-6}} {
		if _, err := Prepare(t.Context(), table, s, data.EncodingOptions{}); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

func TestMedianDistanceAgainstAllPairs(t *testing.T) {
	const seed = 5
	rng := stream.New(seed)
	const n, d = 301, 4
	x := make([]float64, n*d)
	for i := range x {
		x[i] = rng.NormFloat64() + 100
	}
	var all []float64
	for i := range n {
		for j := range i {
			s := 0.0
			for c := range d {
				s += (x[i*d+c] - x[j*d+c]) * (x[i*d+c] - x[j*d+c])
			}
			all = append(all, math.Sqrt(s))
		}
	}
	slices.Sort(all)
	want := all[len(all)/2]
	got, err := MedianDistance(t.Context(), kernel.FromRows(kernel.NewPoints(n, d, x)), seed)
	if err != nil || math.Abs(got/want-1) > 1e-9 {
		t.Errorf("seed %d: %v, %v; want %v", seed, got, err, want)
	}
}

func TestMedianDistanceOfEqualRowsIsOne(t *testing.T) {
	for _, n := range []int{1, 2, 50} {
		x := make([]float64, n*3)
		for i := range x {
			x[i] = 0.1
		}
		if got, err := MedianDistance(t.Context(), kernel.FromRows(kernel.NewPoints(n, 3, x)), 1); err != nil || got != 1 {
			t.Errorf("n = %d: %v, %v", n, got, err)
		}
	}
}

func TestEvaluateInUnitsOfTheTarget(t *testing.T) {
	table := open(t, "x,y\n1,10\n2,20\n4,60\n", dataset.Options{Target: []string{"y"}})
	d, err := Prepare(t.Context(), table, Split{}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The model outputs y's mean, which is 30 in the encoding, so the errors are 20, 10
	// and 30.
	m, err := learners.NewLinear(nil, 1, []float64{0}, 1)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := Evaluate(t.Context(), m, d.Encoding, d.Train, learners.Scoring{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Score{{"rmse", math.Sqrt(1400.0 / 3)}, {"mae", 20}, {"r2", 0}}
	for i, s := range scores {
		if s.Name != want[i].Name || math.Abs(s.Value-want[i].Value) > 1e-9 {
			t.Errorf("%+v, want %+v", s, want[i])
		}
	}
	name, measure, err := MeasureNamed("", d.Encoding, learners.Scoring{})
	y, _ := data.Targets(t.Context(), d.Train)
	if got := measure(make([]float64, 3), y, 1); err != nil || name != "rmse" || math.Abs(got-want[0].Value) > 1e-9 {
		t.Errorf("measure %s is %v, %v", name, got, err)
	}
	for _, name := range []string{"auc", "1-auc", "class-error", "log-loss", "calibration-error"} {
		if _, _, err := MeasureNamed(name, d.Encoding, learners.Scoring{Link: learners.Logistic}); err == nil {
			t.Errorf("%s was taken for numbers", name)
		}
	}
}

func TestValuesAreChecked(t *testing.T) {
	p := Problem{Rows: 100, Dim: 2, Outputs: 1, Task: data.Regression, MedianDistance: 1, Metric: &Metric{L: times(2, 1)}}
	for _, a := range Algorithms() {
		t.Run(a.Name, func(t *testing.T) {
			p := p
			if a.Name == "log-falkon" {
				p.Task = data.Classification
			}
			if _, err := a.Estimator(nil, p); err != nil {
				t.Errorf("defaults: %v", err)
			}
			for _, x := range a.Parameters {
				if want := x.refuse(x.Default); want != "" {
					t.Errorf("default %s = %q, want %s", x.Name, x.Default, want)
				}
				if x.Kind == Choice {
					for _, c := range x.Choices {
						if x.Name == "kernel" || x.Name == "features" || c == learnedRelevance {
							continue // some combinations are not valid
						}
						if _, err := a.Estimator(Values{x.Name: c}, p); err != nil {
							t.Errorf("%s = %s: %v", x.Name, c, err)
						}
					}
				}
				var e *ValueError
				if _, err := a.Estimator(Values{x.Name: "?"}, p); !errors.As(err, &e) || e.What != x.Name {
					t.Errorf("%s = ?: %v", x.Name, err)
				}
			}
			var e *ValueError
			if _, err := a.Estimator(Values{"lambada": "1"}, p); !errors.As(err, &e) || e.What != "lambada" {
				t.Errorf("unknown name: %v", err)
			}
		})
	}
}

// Known rows are those of training and validation, each once, in the encoding of
// the training rows.
func TestKnownRows(t *testing.T) {
	table := open(t, labelled(), dataset.Options{})
	for _, validation := range []float64{0, 0.25} {
		d, err := Prepare(t.Context(), table, Split{Validation: validation, Test: 0.25, Seed: 3}, data.EncodingOptions{})
		if err != nil {
			t.Fatal(err)
		}
		known, err := d.Known()
		if err != nil {
			t.Fatal(err)
		}
		parts := []data.Source{d.Train}
		if d.Validation != nil {
			parts = append(parts, d.Validation)
		}
		var want []string
		for _, p := range parts {
			want = append(want, rowsOf(t, p)...)
		}
		got := rowsOf(t, known)
		slices.Sort(got)
		slices.Sort(want)
		if len(got) != 90 || !slices.Equal(got, want) {
			t.Errorf("validation %v: %d known rows, %d of the parts", validation, len(got), len(want))
		}
	}
}

// rowsOf writes each row with its targets as text.
func rowsOf(t *testing.T, src data.Source) []string {
	t.Helper()
	m, err := data.Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := kernel.NewLinear(1)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range m.Len() {
		// ‖x‖² and y identify the rows of this table.
		g, err := kernel.Gramian(inner, m.Rows().Slice(i, i+1))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, num(g[0])+" "+num(m.Targets()[i*m.Outputs()]))
	}
	return out
}

func TestSeveralTargetsHaveScoresEach(t *testing.T) {
	table := open(t, "x,u,v\n1,10,5\n2,20,5\n4,60,8\n", dataset.Options{Target: []string{"u", "v"}})
	d, err := Prepare(t.Context(), table, Split{}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := learners.NewLinear(nil, 1, []float64{0, 0}, 2) // the means, 30 and 6
	if err != nil {
		t.Fatal(err)
	}
	scores, err := Evaluate(t.Context(), m, d.Encoding, d.Train, learners.Scoring{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Score{
		{"rmse", math.Sqrt(1406.0 / 6)},
		{"mae", 64.0 / 6},
		{"r2", 0},
		{"rmse(u)", math.Sqrt(1400.0 / 3)},
		{"mae(u)", 20},
		{"r2(u)", 0},
		{"rmse(v)", math.Sqrt(6.0 / 3)},
		{"mae(v)", 4.0 / 3},
		{"r2(v)", 0},
	}
	if len(scores) != len(want) {
		t.Fatalf("%+v, want %+v", scores, want)
	}
	for i, s := range scores {
		if s.Name != want[i].Name || math.Abs(s.Value-want[i].Value) > 1e-9 {
			t.Errorf("%+v, want %+v", s, want[i])
		}
	}
}

func TestScoresWithoutAValueAreNullInJSON(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{{0.5, `{"name":"r2","value":0.5}`}, {math.NaN(), `{"name":"r2","value":null}`}, {math.Inf(-1), `{"name":"r2","value":null}`}} {
		text, err := json.Marshal(Score{"r2", c.value})
		if err != nil || string(text) != c.want {
			t.Errorf("%v: %s, %v; want %s", c.value, text, err, c.want)
		}
	}
}
