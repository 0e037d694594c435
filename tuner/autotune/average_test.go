package autotune_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/autotune"
)

// averaged runs trials of a new study and averages the best models.
func averaged(t *testing.T, algorithm string, d *training.Data, o autotune.Options, trials int) (*autotune.Averaged, *autotune.Fitted) {
	t.Helper()
	tn := tuning(t, algorithm, d, o)
	svc := newStudy(t, tn, trials, nil)
	work(t.Context(), t, tn, svc, "w")
	best, ok, err := tn.Best(t.Context(), svc, "s")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f, err := tn.Refit(t.Context(), best, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := tn.Average(t.Context(), svc, "s", f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		return nil, f
	}

	// The candidates are the best of each kernel and relevance.
	least := map[[3]string]float64{}
	values := map[int]training.Values{}
	for _, trial := range trialsOf(t, svc) {
		v := autotune.Values(trial.Config)
		values[trial.Number] = v
		key, x := [3]string{v["kernel"], v["relevance"], v["metric"]}, objective(t, tn, trial)
		if old, ok := least[key]; !ok || x < old {
			least[key] = x
		}
	}
	last, sum := 0.0, 0.0
	for _, m := range a.Members {
		v := values[m.Trial]
		x := objective(t, tn, trialsOf(t, svc)[m.Trial])
		if want := least[[3]string{v["kernel"], v["relevance"], v["metric"]}]; x != want {
			t.Errorf("trial %d has the error %v, and the best of its kind %v", m.Trial, x, want)
		}
		if x < last {
			t.Errorf("trial %d has the error %v after %v", m.Trial, x, last)
		}
		last, sum = x, sum+m.Weight
	}
	if math.Abs(sum-1) > 1e-9 || len(a.Members) < 2 {
		t.Errorf("%d weights with the sum %v", len(a.Members), sum)
	}

	// Another worker makes the same model.
	again, err := tuning(t, algorithm, d, o).Average(t.Context(), svc, "s", f, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.File.Report.Seconds, again.File.Report.Seconds = 0, 0
	if x, y := fileOf(t, a.File), fileOf(t, again.File); !bytes.Equal(x, y) {
		t.Error("the models of two workers differ")
	}
	return a, f
}

func fileOf(t *testing.T, f *learners.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The error of the average is that of the averaged outputs of leaving out rows, each alone or the
// validation rows, and the model is the average of fits to all known rows.
func TestAverage(t *testing.T) {
	d := wave(t, 160, false)
	known := knownOf(t, d)
	n := known.Len()
	for _, c := range []struct {
		algorithm string
		folds     int
	}{{"krr", n}, {"falkon", n}, {"krr", 0}, {"falkon", 0}} {
		algorithm := c.algorithm
		a, best := averaged(t, algorithm, d, autotune.Options{Seed: 3, Folds: c.folds}, 60)
		if a == nil {
			t.Fatalf("%s: no average", algorithm)
		}
		learner, err := training.Find(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		whole, judge := *d, d.Validation
		if c.folds > 0 {
			whole.Train, judge = known, known
		}
		p, err := training.NewProblem(t.Context(), &whole, 3)
		if err != nil {
			t.Fatal(err)
		}
		if p.Learned, err = training.Learn(t.Context(), "matern52", whole.Train, nil, p, 3, 1); err != nil {
			t.Fatal(err)
		}
		if p.Laplace, err = training.Learn(t.Context(), "laplace", whole.Train, nil, p, 3, 1); err != nil {
			t.Fatal(err)
		}
		y, err := learners.Targets(t.Context(), judge)
		if err != nil {
			t.Fatal(err)
		}
		o := learners.Options{Seed: 3, Workers: 1}
		out, left, want, got := make([]float64, len(y)), make([]float64, len(y)), make([]float64, n), make([]float64, n)
		for _, m := range a.Members {
			e, err := learner.Estimator(m.Values, p)
			if err != nil {
				t.Fatal(err)
			}
			if c.folds > 0 {
				left, err = e.(leaveOneOuter).LeaveOneOut(t.Context(), known, o)
			} else {
				part, failed := e.Fit(t.Context(), d.Train, o)
				if failed != nil {
					t.Fatal(failed)
				}
				err = part.Predict(t.Context(), left, judge)
			}
			if err != nil {
				t.Fatal(err)
			}
			model, err := e.Fit(t.Context(), known, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := model.Predict(t.Context(), got, known); err != nil {
				t.Fatal(err)
			}
			for i, f := range left {
				out[i] += m.Weight * f
			}
			for i, f := range got {
				want[i] += m.Weight * f
			}
		}
		sum := 0.0
		for i := range y {
			sum += (out[i] - y[i]) * (out[i] - y[i])
		}
		scale := d.Encoding.Targets[0].Scale
		if rmse := scale * math.Sqrt(sum/float64(len(y))); math.Abs(a.Validation-rmse) > 1e-9*rmse {
			t.Errorf("%s: the error is %v, want %v", algorithm, a.Validation, rmse)
		}
		if limit := 1.015 * best.Validation; a.Validation > limit {
			t.Errorf("%s: the error is %v, above the bound %v of the penalty", algorithm, a.Validation, limit)
		}
		if err := a.File.Model.Predict(t.Context(), got, known); err != nil {
			t.Fatal(err)
		}
		for i, f := range got {
			if math.Abs(f-want[i]) > 1e-7 {
				t.Fatalf("%s: row %d has %v, want %v", algorithm, i, f, want[i])
			}
		}
		if len(a.Test) != len(best.Test) || !(a.Test[0].Value < 1.5*best.Test[0].Value) {
			t.Errorf("%s: test errors %v, those of the best %v", algorithm, a.Test, best.Test)
		}
	}
}

type leaveOneOuter interface {
	LeaveOneOut(ctx context.Context, train data.Source, o learners.Options) ([]float64, error)
}

// Classes, folds, steps that regularise, one kernel and other measures than squares have no average.
func TestNoAverage(t *testing.T) {
	numbers, classes := wave(t, 80, false), wave(t, 80, true)
	for name, c := range map[string]struct {
		algorithm string
		d         *training.Data
		o         autotune.Options
	}{
		"classes":    {"krr", classes, autotune.Options{Folds: knownOf(t, classes).Len()}},
		"steps":      {"sgdrf", numbers, autotune.Options{}},
		"folds":      {"nystrom", numbers, autotune.Options{Folds: 3}},
		"one kernel": {"krr", numbers, autotune.Options{Folds: knownOf(t, numbers).Len(), Fixed: training.Values{"kernel": "matern52", "relevance": "equal"}}},
		"mae":        {"krr", numbers, autotune.Options{Folds: knownOf(t, numbers).Len(), Measure: "mae"}},
	} {
		if a, _ := averaged(t, c.algorithm, c.d, c.o, 6); a != nil {
			t.Errorf("%s: an average of %v", name, a.Members)
		}
	}
	for _, name := range []string{"mse", "1-r2"} {
		o := autotune.Options{Folds: knownOf(t, numbers).Len(), Measure: name}
		if a, _ := averaged(t, "krr", numbers, o, 40); a == nil {
			t.Errorf("%s: no average", name)
		}
	}
}

// Rows with the weight 0 have no part in the weights of an average, however wrong they are.
func TestAverageOfWeightedRows(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,z,w,y\n")
	rng := stream.New(6)
	for i := range 160 {
		x, z, w := rng.Float64(), rng.Float64(), 1.0
		y := math.Sin(5*x) + z + 0.05*rng.NormFloat64()
		if i%4 == 0 {
			w, y = 0, 50*rng.NormFloat64()
		}
		fmt.Fprintf(&b, "%v,%v,%v,%v\n", x, z, w, y)
	}
	d := prepared(t, b.String(), dataset.Options{Target: []string{"y"}, Weights: "w"})
	a, best := averaged(t, "krr", d, autotune.Options{Seed: 1, Folds: knownOf(t, d).Len()}, 60)
	if a == nil {
		t.Fatal("no average")
	}
	if limit := 1.015 * best.Validation; a.Validation > limit || a.Test[0].Value > 1 {
		t.Errorf("validation error %v of at most %v, test error %v", a.Validation, limit, a.Test[0].Value)
	}
}

// passes counts passes over rows and their targets.
type passes struct {
	data.Source
	n *int
}

func (p passes) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	*p.n++
	return p.Source.OpenPairs(ctx)
}

// After the trials nothing is fitted to the training rows alone, because trials have the outputs that weigh
// the models of an average, and calibrate. Each model is fitted once to all rows.
func TestTrialsAreNotFittedAgain(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		classes   bool
	}{{"krr", false}, {"falkon", false}, {"krr", true}} {
		d, n, fits := wave(t, 160, c.classes), 0, 0
		d.Train = passes{d.Train, &n}
		tn := tuning(t, c.algorithm, d, autotune.Options{Seed: 3})
		svc := newStudy(t, tn, 60, nil)
		work(t.Context(), t, tn, svc, "w")
		best, _, err := tn.Best(t.Context(), svc, "s")
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		n = 0
		f, err := tn.Refit(t.Context(), best, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := tn.Average(t.Context(), svc, "s", f, func(int, int) func(learners.Progress) error {
			fits++
			return nil
		})
		if err != nil || (a == nil) != c.classes {
			t.Fatal(a, err)
		}
		if n > 0 || a != nil && fits != len(a.Members)-1 {
			t.Errorf("%+v: %d passes over the training rows, and %d fits for an average after that of the best: %+v", c, n, fits, a)
		}
		d.Test = nil
		if f, err = tn.Compare(t.Context(), best, nil); err != nil || f.Trial != best.Number || f.File != nil {
			t.Errorf("%+v: a comparison without test rows is %+v, %v", c, f, err)
		}
	}
}
