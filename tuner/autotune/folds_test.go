package autotune_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/study"
)

// The objective is the mean error of the folds. Each fold fits to the other folds alone, with some 10√n
// centres where the final fit may have twice as many.
func TestFoldsAreCrossValidation(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		rows, k   int
		fixed     training.Values
		centers   string
	}{
		{"krr", 120, 4, nil, ""},
		{"falkon", 820, 2, training.Values{"precision": "float32", "sampler": "uniform"}, "202"},
	} {
		d := wave(t, c.rows, false)
		tn := tuning(t, c.algorithm, d, autotune.Options{Seed: 3, Folds: c.k, Fixed: c.fixed})
		svc := newStudy(t, tn, 1, nil)
		work(t.Context(), t, tn, svc, "w")
		trial := trialsOf(t, svc)[0]
		if len(trial.Reports) != c.k {
			t.Fatalf("%d reports of %d folds", len(trial.Reports), c.k)
		}

		known := knownOf(t, d)
		folds, err := data.KFold(known.Len(), nil, c.k, 3)
		if err != nil {
			t.Fatal(err)
		}
		other := maps.Clone(c.fixed)
		if c.centers != "" {
			other["centers"] = c.centers
		}
		e := firstEstimator(t, c.algorithm, d, trial, other)
		sum := 0.0
		for i, f := range folds {
			want := errorOf(t, e, d, f.Train, f.Test)
			sum += want * float64(len(f.Test))
			if got := valueOf(trial.Reports[i], "fold-error"); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %d rows: fold %d has the error %v, want %v", c.algorithm, c.rows, i, got, want)
			}
		}
		if got, want := objective(t, tn, trial), sum/float64(known.Len()); math.Abs(got-want) > 1e-7*want {
			t.Errorf("%s, %d rows: the objective is %v, want %v", c.algorithm, c.rows, got, want)
		}
	}
}

// firstEstimator returns the estimator of the first trial, with some other values.
func firstEstimator(t *testing.T, algorithm string, d *training.Data, trial study.Trial, other training.Values) learners.Estimator {
	t.Helper()
	a, err := training.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	p, err := training.NewProblem(t.Context(), d, 3)
	if err != nil {
		t.Fatal(err)
	}
	v := autotune.Values(trial.Config)
	delete(v, "relevance") // equal in the first start
	maps.Copy(v, other)
	e, err := a.Estimator(v, p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// errorOf returns the error on some known rows of a fit to others.
func errorOf(t *testing.T, e learners.Estimator, d *training.Data, train, test []int) float64 {
	t.Helper()
	known := knownOf(t, d)
	fitted, err := data.Subset(known, train)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := data.Subset(known, test)
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Fit(t.Context(), fitted, learners.Options{Seed: 3, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	scores, err := training.Evaluate(t.Context(), m, d.Encoding, judged, learners.Scoring{})
	if err != nil {
		t.Fatal(err)
	}
	return scores[0].Value
}

func valueOf(r study.Report, name string) float64 {
	i := slices.IndexFunc(r.Values, func(v study.NamedValue) bool { return v.Name == name })
	if i < 0 {
		return math.NaN()
	}
	return r.Values[i].Value
}

// As many folds as rows are closed-form, and close to fits without one row each, of which
// the ridge λ(n−1) is slightly smaller.
func TestAsManyFoldsAsRowsLeaveOneOut(t *testing.T) {
	d := wave(t, 90, false)
	known := knownOf(t, d)
	n := known.Len()
	for _, name := range []string{"krr", "falkon"} {
		tn := tuning(t, name, d, autotune.Options{Seed: 3, Folds: n})
		svc := newStudy(t, tn, 1, nil)
		work(t.Context(), t, tn, svc, "w")
		trial := trialsOf(t, svc)[0]
		more := training.Values{}
		if name == "falkon" {
			more["iterations"] = "500"
		}
		e := firstEstimator(t, name, d, trial, more)
		sum := 0.0
		for i := range n {
			rmse := errorOf(t, e, d, slices.Delete(upTo(n), i, i+1), []int{i})
			sum += rmse * rmse
		}
		if got, want := objective(t, tn, trial), math.Sqrt(sum/float64(n)); math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: the objective is %v, of %d fits %v", name, got, n, want)
		}
	}
}

// The closed form is of the exact solution of the squared loss. Other losses, and a fit that
// ends early or has single precision, are fitted once for each row.
func TestAsManyFoldsAsRowsFitWhereNoClosedFormIs(t *testing.T) {
	d := wave(t, 24, false)
	known := knownOf(t, d)
	for _, fixed := range []training.Values{
		{"loss": "quantile", "quantile": "0.9"},
		{"loss": "huber"},
		{"iterations": "1"},
		{"tolerance": "0.1"},
		{"solver": "gradient"},
		{"precision": "float32"},
	} {
		tn := tuning(t, "falkon", d, autotune.Options{Seed: 3, Folds: known.Len(), Fixed: fixed})
		svc := newStudy(t, tn, 1, nil)
		work(t.Context(), t, tn, svc, "w")
		if trial := trialsOf(t, svc)[0]; len(trial.Reports) != known.Len() {
			t.Errorf("%v: %d fits for %d rows (%s)", fixed, len(trial.Reports), known.Len(), trial.Outcome)
		}
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Each class has its share of every fold, so that a rare class can be learned in each.
func TestFoldsAreStratified(t *testing.T) {
	d := wave(t, 150, true)
	for _, name := range []string{"log-falkon", "sgdrf"} {
		tn := tuning(t, name, d, autotune.Options{Seed: 1, Folds: 5})
		svc := newStudy(t, tn, 2, nil)
		work(t.Context(), t, tn, svc, "w")
		for _, trial := range trialsOf(t, svc) {
			if trial.State != study.Completed {
				t.Fatalf("%s: %s", name, trial.Outcome)
			}
			f, err := tn.Refit(t.Context(), trial, nil)
			if err != nil || f.Test[0].Value > 0.3 {
				t.Errorf("%s: %+v, %v", name, f, err)
			}
			if regularises := name == "sgdrf"; (f.Step > 0) != regularises {
				t.Errorf("%s: the fit ended at step %d", name, f.Step)
			}
		}
	}
}

// Interruptions in the middle of a cross-validation change no result. Four reports a run
// are fewer than the folds, so a trial ends only if later runs continue with the next fold.
func TestInterruptedFoldsContinue(t *testing.T) {
	const trials, k = 6, 5
	d := wave(t, 120, false)
	o := autotune.Options{Seed: 2, Folds: k, Fixed: training.Values{"random-features": "32", "passes": "6"}}
	tn := tuning(t, "sgdrf", d, o)
	whole := newStudy(t, tn, trials, nil)
	work(t.Context(), t, tn, whole, "w")
	want := history(t, whole)

	parts := newStudy(t, tn, trials, nil)
	runs := 0
	for ; runs < 100; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		s := &interrupter{Service: parts, after: 4, cancel: cancel}
		work(ctx, t, tn, s, "w")
		cancel()
		if s.after > 0 {
			break
		}
	}
	if got := history(t, parts); !slices.Equal(got, want) || len(want) != trials || runs < 3 {
		t.Errorf("%d interruptions: got\n%s\nwant\n%s", runs, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, trial := range trialsOf(t, parts) {
		if n := len(trial.CurrentReports()); trial.State == study.Completed && n != k {
			t.Errorf("trial %d has %d reports", trial.Number, n)
		}
	}
}

// A fold that was reported is taken as it is.
func TestReportedFoldsAreNotFitted(t *testing.T) {
	d := wave(t, 120, false)
	tn := tuning(t, "krr", d, autotune.Options{Seed: 2, Folds: 3})
	svc := newStudy(t, tn, 1, nil)
	asked, err := svc.Ask(t.Context(), "s", study.Ask{Count: 1, Worker: "w"})
	if err != nil {
		t.Fatal(err)
	}
	trial := asked.Trials[0]
	r := study.Report{Step: 1, Values: []study.NamedValue{
		{Name: tn.Objective(), Value: 100}, {Name: "fold-error", Value: 100}, {Name: "fold-best-step", Value: 1}, {Name: "fold-steps", Value: 1},
	}}
	if _, err := svc.Report(t.Context(), "s", study.ReportValues{RequestID: "r", Trial: 0, Epoch: trial.Epoch, Reports: []study.Report{r}}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := tn.Trial(t.Context(), svc, "s", trial, &out); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Tell(t.Context(), "s", study.Tell{Trial: 0, Epoch: trial.Epoch, Outcome: outcome(t, out.String(), nil)}); err != nil {
		t.Fatal(err)
	}
	// A fold of three has a third of the rows, and its error of 100 a third of the weight.
	if x := objective(t, tn, trialsOf(t, svc)[0]); x < 33 || x > 35 {
		t.Errorf("the objective is %v", x)
	}
}

// The pruner ends a trial between folds.
func TestFoldsArePruned(t *testing.T) {
	tn := tuning(t, "krr", wave(t, 120, false), autotune.Options{Folds: 5})
	if s := tn.Complete(study.Spec{}); s.Pruner.Options != `{"warmup_steps":2}` {
		t.Errorf("the pruner is %+v", s.Pruner)
	}
	s := &stopper{Service: newStudy(t, tn, 1, nil)}
	work(t.Context(), t, tn, s, "w")
	if trial := trialsOf(t, s)[0]; trial.State != study.Pruned || len(trial.Reports) != 3 {
		t.Errorf("%s after %d folds", trial.Outcome, len(trial.Reports))
	}
}

func TestFoldsRefused(t *testing.T) {
	a, err := training.Find("krr")
	if err != nil {
		t.Fatal(err)
	}
	d := wave(t, 40, false)
	if _, err := autotune.New(t.Context(), a, d, autotune.Options{Folds: 31}); err == nil || !strings.Contains(err.Error(), "31 folds for 30 training and validation rows; use at most 30") {
		t.Error(err)
	}
	one, several := tuning(t, "krr", d, autotune.Options{}), tuning(t, "krr", d, autotune.Options{Folds: 3})
	svc := newStudy(t, one, 1, nil)
	if _, _, err := several.Study(t.Context(), svc, "s", study.Spec{}); err == nil {
		t.Error("a study of one split was continued with folds")
	}
	for _, c := range []struct {
		algorithm string
		fixed     training.Values
		n, want   int
	}{
		{"sgdrf", nil, 9, 1},
		{"sgdrf", nil, 10, 5},
		{"sgdrf", nil, 1999, 5},
		{"falkon", nil, 9, 1},
		{"falkon", nil, 1999, 1999},
		{"falkon", training.Values{"loss": "huber"}, 1999, 5},
		{"falkon", training.Values{"lambda": "1e-3"}, 1999, 1999},
		{"falkon", training.Values{"iterations": "1"}, 1999, 5},
		{"falkon", training.Values{"tolerance": "1e-3"}, 1999, 5},
		{"falkon", training.Values{"solver": "gradient"}, 1999, 5},
		{"falkon", training.Values{"precision": "float32"}, 1999, 5},
		{"falkon", training.Values{"precision": "float64"}, 1999, 1999},
		{"falkon", training.Values{"epsilon": "1e-6"}, 1999, 1999},
		{"krr", nil, 300, 300},
		{"krr", nil, 2000, 1},
	} {
		a, err := training.Find(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		if got := autotune.DefaultFolds(a, c.fixed, c.n); got != c.want {
			t.Errorf("%s with %v: %d rows have %d folds, want %d", c.algorithm, c.fixed, c.n, got, c.want)
		}
	}
}
