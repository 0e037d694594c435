package training

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// One data set in eight forms gives the same model. The files are from
// testdata/forms/forms.py. Each model also reads the forms of the others, except the
// array, which has no names.
func TestEightFormsOfOneDataSet(t *testing.T) {
	forms := []string{
		"pandas.csv", "semicolons.csv", "quoted.csv", "duckdb.tsv", "pandas.parquet", "decimals.parquet", "duckdb.parquet", "numbers.npy",
	}
	algorithm, err := Find("krr")
	if err != nil {
		t.Fatal(err)
	}
	open := func(form string, o dataset.Options) *dataset.Table {
		t.Helper()
		table, err := dataset.Open(t.Context(), o, filepath.Join("testdata", "forms", form))
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		t.Cleanup(func() { table.Close() })
		return table
	}
	predict := func(form string, model learners.Model, table *dataset.Table, e *data.Encoding) []float64 {
		t.Helper()
		src, err := table.EncodeInputs(t.Context(), e)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		out := make([]float64, src.Len())
		if err := model.Predict(t.Context(), out, src); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		e.Decode(out)
		return out
	}
	same := func(what string, got, want []float64) {
		t.Helper()
		for i, v := range want {
			if len(got) != len(want) || !(math.Abs(got[i]-v) <= 1e-9) {
				t.Errorf("%s: prediction %d is %v, want %v", what, i+1, got[i], v)
				return
			}
		}
	}
	var want []float64
	for _, form := range forms {
		var o dataset.Options
		if form == "numbers.npy" {
			o.Target = []string{"-1"}
		}
		table := open(form, o)
		d, err := Prepare(t.Context(), table, Split{Validation: 0.2, Seed: 5}, data.EncodingOptions{})
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		problem, err := NewProblem(t.Context(), d, 5)
		if err != nil {
			t.Fatal(err)
		}
		estimator, err := algorithm.Estimator(Values{"lambda": "1e-4", "length-scale": "3"}, problem)
		if err != nil {
			t.Fatal(err)
		}
		model, err := estimator.Fit(t.Context(), d.Train, learners.Options{Seed: 5})
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		got := predict(form, model, table, d.Encoding)
		if want == nil {
			want = got
		}
		same(form, got, want)
		if form == "numbers.npy" {
			continue
		}
		for _, other := range forms[:len(forms)-1] {
			same(form+" on "+other, predict(other, model, open(other, dataset.Options{Model: d.Encoding}), d.Encoding), want)
		}
	}
	if spread := want[0] - want[1]; math.Abs(spread) < 0.1 {
		t.Errorf("the model predicts the constant %v", want[0])
	}
}
