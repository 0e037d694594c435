package autotune_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// wave returns n rows of y = sin(5x) + z with a little noise. With classes, y is the sign.
func wave(t *testing.T, n int, classes bool) *training.Data {
	t.Helper()
	var b strings.Builder
	b.WriteString("x,z,y\n")
	rng := stream.New(5)
	for range n {
		x, z := rng.Float64(), rng.Float64()
		y := math.Sin(5*x) + z + 0.05*rng.NormFloat64()
		text := strconv.FormatFloat(y, 'g', -1, 64)
		if classes {
			text = map[bool]string{true: "up", false: "down"}[y > 0.5]
		}
		fmt.Fprintf(&b, "%v,%v,%s\n", x, z, text)
	}
	return prepared(t, b.String(), dataset.Options{Target: []string{"y"}})
}

// knownOf returns the training and validation rows.
func knownOf(t *testing.T, d *training.Data) data.Source {
	t.Helper()
	known, err := d.Known()
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func prepared(t *testing.T, text string, o dataset.Options) *training.Data {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(t.Context(), o, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	d, err := training.Prepare(t.Context(), table, training.Split{Validation: 0.25, Test: 0.25, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func tuning(t *testing.T, algorithm string, d *training.Data, o autotune.Options) *autotune.Tuning {
	t.Helper()
	a, err := training.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	o.Workers = 1
	tn, err := autotune.New(t.Context(), a, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return tn
}

// newStudy makes a study "s" for a tuning.
func newStudy(t *testing.T, tn *autotune.Tuning, trials int, change func(*study.Spec)) tuner.Service {
	t.Helper()
	svc := engine.Open(memory.New(), engine.Options{})
	t.Cleanup(func() { svc.Close() })
	spec := study.Spec{MaxTrials: trials, MaxRetries: 3, Seed: 1}
	if change != nil {
		change(&spec)
	}
	if _, made, err := tn.Study(t.Context(), svc, "s", spec); err != nil || !made {
		t.Fatal(made, err)
	}
	return svc
}

// work runs trials of "s" as a worker until none are left or ctx ends. It does what package
// runner does, without the retries.
func work(ctx context.Context, t *testing.T, tn *autotune.Tuning, svc tuner.Service, worker string) {
	t.Helper()
	for ctx.Err() == nil {
		asked, err := svc.Ask(t.Context(), "s", study.Ask{Count: 1, Worker: worker})
		switch tuner.CodeOf(err) {
		case tuner.OK:
		case tuner.Finished, tuner.NoneLeft:
			return
		default:
			t.Error(err)
			return
		}
		trial := asked.Trials[0]
		var out bytes.Buffer
		err = tn.Trial(ctx, svc, "s", trial, &out)
		if ctx.Err() != nil {
			return
		}
		if _, err := svc.Tell(t.Context(), "s", study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: outcome(t, out.String(), err)}); err != nil {
			t.Error(err)
			return
		}
	}
}

func outcome(t *testing.T, text string, err error) study.Outcome {
	t.Helper()
	stopped := (*autotune.StoppedError)(nil)
	if errors.As(err, &stopped) {
		return study.Outcome{State: study.Pruned, Message: stopped.Reason}
	} else if err != nil {
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash, Message: err.Error()}
	}
	text = strings.TrimSpace(text)
	if reason, ok := strings.CutPrefix(text, "infeasible="); ok {
		return study.Outcome{State: study.Infeasible, Message: reason}
	}
	o := study.Outcome{State: study.Completed}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Error(err)
		}
		o.Metrics = append(o.Metrics, study.Metric{Name: name, Values: []float64{x}})
	}
	return o
}

func trialsOf(t *testing.T, svc tuner.Service) []study.Trial {
	t.Helper()
	trials, _, err := svc.Trials(t.Context(), "s", tuner.Filter{Reports: true})
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

func objective(t *testing.T, tn *autotune.Tuning, trial study.Trial) float64 {
	t.Helper()
	m, ok := trial.Outcome.Metric(tn.Objective())
	if !ok {
		t.Fatalf("trial %d: %s", trial.Number, trial.Outcome)
	}
	return m.Mean()
}

// TestEveryAlgorithm tunes every algorithm. The best error is at most that of theory's
// settings, and it holds on test rows.
func TestEveryAlgorithm(t *testing.T) {
	for _, a := range training.Algorithms() {
		t.Run(a.Name, func(t *testing.T) {
			tn := tuning(t, a.Name, wave(t, 160, a.Name == "log-falkon"), autotune.Options{Seed: 3})
			svc := newStudy(t, tn, 5, nil)
			work(t.Context(), t, tn, svc, "w")
			first, ok, err := autotune.Default(t.Context(), svc, "s")
			if err != nil || !ok || first.Number != 0 || !first.Config.Equal(tn.Starts()[0]) {
				t.Fatal(first, ok, err)
			}
			best, err := svc.Best(t.Context(), "s")
			if err != nil || len(best) != 1 {
				t.Fatal(best, err)
			}
			least := math.Inf(1)
			for _, trial := range trialsOf(t, svc) {
				if trial.State == study.Completed {
					least = min(least, objective(t, tn, trial))
				}
			}
			if x := objective(t, tn, first); least > x {
				t.Errorf("the least error is %v, theory's %v", least, x)
			}
			f, err := tn.Refit(t.Context(), best[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			if f.File.Report.Rows != 120 || f.Validation != objective(t, tn, best[0]) || len(f.Test) == 0 {
				t.Errorf("fitted: %+v, %+v", f, f.File.Report)
			}
			// Constant outputs have an error of 1 standard deviation, or of the
			// share of the rarer class.
			if x := f.Test[0].Value; !(x < 0.6) {
				t.Errorf("test %s = %v", f.Test[0].Name, x)
			}
			var file bytes.Buffer
			if err := f.File.Write(&file); err != nil {
				t.Fatal(err)
			}
			if _, err := learners.Read(&file, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A trial that diverges is infeasible, and the next ones run.
func TestDivergence(t *testing.T) {
	tn := tuning(t, "nystrom", wave(t, 100, false), autotune.Options{Fixed: training.Values{"solver": "gradient", "step-size": "1e9", "lambda": "0"}})
	svc := newStudy(t, tn, 3, nil)
	work(t.Context(), t, tn, svc, "w")
	for _, trial := range trialsOf(t, svc) {
		if trial.State != study.Infeasible || !strings.Contains(trial.Outcome.Message, "diverged") {
			t.Errorf("trial %d: %s", trial.Number, trial.Outcome)
		}
	}
}

// stopper says that every trial should stop at its third report, or panics.
type stopper struct {
	tuner.Service
	panics  bool
	reports int
}

func (s *stopper) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	if s.panics {
		panic("no luck")
	}
	s.reports++
	v, err := s.Service.Report(ctx, name, c)
	if s.reports == 3 {
		return tuner.Verdict{Stop: true, Reason: "enough"}, err
	}
	return v, err
}

func TestStoppedTrial(t *testing.T) {
	tn := tuning(t, "landweber", wave(t, 100, false), autotune.Options{})
	s := &stopper{Service: newStudy(t, tn, 1, nil)}
	work(t.Context(), t, tn, s, "w")
	if trial := trialsOf(t, s)[0]; trial.State != study.Pruned || trial.Outcome.Message != "enough" || len(trial.Reports) != 3 || s.reports != 3 {
		t.Errorf("%s after %d reports", trial.Outcome, len(trial.Reports))
	}
}

func TestPanicIsAFailure(t *testing.T) {
	tn := tuning(t, "krr", wave(t, 40, false), autotune.Options{})
	s := &stopper{Service: newStudy(t, tn, 1, nil), panics: true}
	work(t.Context(), t, tn, s, "w")
	if trial := trialsOf(t, s)[0]; trial.State != study.Failed || !strings.Contains(trial.Outcome.Message, "no luck") {
		t.Errorf("%s", trial.Outcome)
	}
}

// history returns what happened in a study, without times.
func history(t *testing.T, svc tuner.Service) []string {
	t.Helper()
	var out []string
	for _, trial := range trialsOf(t, svc) {
		o := trial.Outcome
		o.Attributes = nil
		out = append(out, fmt.Sprintf("%d %s %s", trial.Number, trial.Config, o))
	}
	return out
}

// interrupter cancels a context after a number of reports.
type interrupter struct {
	tuner.Service
	after  int
	cancel context.CancelFunc
}

func (s *interrupter) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	if s.after--; s.after == 0 {
		s.cancel()
	}
	return s.Service.Report(ctx, name, c)
}

// Equal seeds give equal histories, even if one run was interrupted again and again in the
// middle of trials.
func TestInterruptionsChangeNothing(t *testing.T) {
	d := wave(t, 120, false)
	tn := tuning(t, "sgdrf", d, autotune.Options{Seed: 2, Fixed: training.Values{"random-features": "32", "passes": "6"}})
	whole := newStudy(t, tn, 12, nil)
	work(t.Context(), t, tn, whole, "w")
	want := history(t, whole)

	parts := newStudy(t, tn, 12, nil)
	runs := 0
	for ; runs < 100; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		s := &interrupter{Service: parts, after: 8, cancel: cancel}
		if _, made, err := tn.Study(t.Context(), parts, "s", study.Spec{}); err != nil || made {
			t.Fatal(made, err)
		}
		work(ctx, t, tn, s, "w")
		cancel()
		if s.after > 0 {
			break
		}
	}
	if got := history(t, parts); !slices.Equal(got, want) || len(want) != 12 || runs < 3 {
		t.Errorf("%d interruptions: got\n%s\nwant\n%s", runs, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTwoWorkers(t *testing.T) {
	tn := tuning(t, "falkon", wave(t, 120, true), autotune.Options{})
	svc := newStudy(t, tn, 10, nil)
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() { work(t.Context(), t, tn, svc, fmt.Sprint("w", i)) })
	}
	both.Wait()
	trials := trialsOf(t, svc)
	for _, trial := range trials {
		if !trial.State.Terminal() || trial.State == study.Failed {
			t.Errorf("trial %d: %s", trial.Number, trial.Outcome)
		}
	}
	if len(trials) != 10 {
		t.Errorf("%d trials", len(trials))
	}
}

// A study that was not made by this tuning is refused. The error names the difference.
func TestStudyOfSomethingElse(t *testing.T) {
	d := wave(t, 60, false)
	svc := newStudy(t, tuning(t, "krr", d, autotune.Options{}), 3, nil)
	for _, c := range []struct {
		tn   *autotune.Tuning
		want string
	}{
		{tuning(t, "falkon", d, autotune.Options{}), "tunes krr, not falkon"},
		{tuning(t, "krr", d, autotune.Options{Measure: "mae"}), "another objective than validation-mae"},
		{tuning(t, "krr", wave(t, 61, false), autotune.Options{}), "other data"},
		{tuning(t, "krr", d, autotune.Options{Seed: 9}), "other data or weights, or another split, encoding, seed or number of folds, or of an earlier version"},
		{tuning(t, "krr", d, autotune.Options{Fixed: training.Values{"lambda": "0.1"}}), "another search space"},
	} {
		_, _, err := c.tn.Study(t.Context(), svc, "s", study.Spec{})
		mismatch := (*autotune.MismatchError)(nil)
		if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.CreateStudy(t.Context(), "t", study.Create{Spec: study.Spec{Space: sp, Objectives: []study.Objective{{Name: "y", Direction: study.Minimize}}}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tuning(t, "krr", d, autotune.Options{}).Study(t.Context(), svc, "t", study.Spec{}); err == nil || !strings.Contains(err.Error(), "not made by tuner auto") {
		t.Error(err)
	}
}

// A study with other ranges is a different study, but it can take trials over. Where the
// ranges exclude theory's settings, the first trial is not called theory's.
func TestStudyInOtherRanges(t *testing.T) {
	d := wave(t, 60, false)
	svc := newStudy(t, tuning(t, "krr", d, autotune.Options{}), 3, nil)
	source, err := svc.Study(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	narrow := tuning(t, "krr", d, autotune.Options{Ranges: map[string]autotune.Range{"lambda": {Low: 1e-13, High: 1e-8}}})
	mismatch := (*autotune.MismatchError)(nil)
	if _, _, err := narrow.Study(t.Context(), svc, "s", study.Spec{}); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "another search space (lambda: 1e-12…0.1 there, 1e-13…1e-08 here)") {
		t.Error(err)
	}
	if err := narrow.CheckSource(source); err != nil {
		t.Error(err)
	}
	for _, o := range []autotune.Options{{Fixed: training.Values{"lambda": "0.1"}}, {Fixed: training.Values{"kernel": "laplace"}}, {Seed: 9}} {
		if err := tuning(t, "krr", d, o).CheckSource(source); !errors.As(err, &mismatch) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, made, err := narrow.Study(t.Context(), svc, "t", study.Spec{MaxTrials: 3}); err != nil || !made {
		t.Fatal(made, err)
	}
	first, err := svc.Trial(t.Context(), "t", 0)
	if lambda, _ := first.Config.Get("lambda"); err != nil || lambda != space.Float(1e-8) {
		t.Errorf("begins with %v, %v", first.Config, err)
	}
	if theory, ok, err := autotune.Default(t.Context(), svc, "t"); ok || err != nil || theory.State != 0 {
		t.Errorf("%v is taken for theory's", theory)
	}
	if theory, _, err := autotune.Default(t.Context(), svc, "s"); err != nil || theory.State != study.Queued {
		t.Errorf("%v is not taken for theory's", theory)
	}
}

// In closed form, a study with a range of centres and one without take over each other's trials.
// One with a fixed number takes over only those of that number.
func TestStudyInOtherCenters(t *testing.T) {
	d := wave(t, 60, false)
	known := knownOf(t, d)
	n := known.Len()
	withRange := func(low, high int) autotune.Options {
		return autotune.Options{Ranges: map[string]autotune.Range{"centers": {Low: float64(low), High: float64(high)}}}
	}
	fixed := func(m int) autotune.Options {
		return autotune.Options{Fixed: training.Values{"centers": strconv.Itoa(m)}}
	}
	for _, c := range []struct {
		from, to autotune.Options
		ok       bool
	}{
		{autotune.Options{}, withRange(5, n), true},
		{autotune.Options{}, withRange(5, 20), true},
		{withRange(5, n), autotune.Options{}, true},
		{withRange(5, n), fixed(n), false},
		{fixed(20), autotune.Options{}, false},
		{fixed(20), withRange(5, n), false},
		{autotune.Options{}, fixed(20), false},
	} {
		c.from.Folds, c.to.Folds = n, n
		svc := newStudy(t, tuning(t, "falkon", d, c.from), 3, nil)
		source, err := svc.Study(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		to := tuning(t, "falkon", d, c.to)
		mismatch := (*autotune.MismatchError)(nil)
		if err := to.CheckSource(source); (err == nil) != c.ok || err != nil && !errors.As(err, &mismatch) {
			t.Errorf("from %+v to %+v: %v", c.from, c.to, err)
		}
	}
}

// The best step is reported as an end of the range where the error falls until the last
// step. It is not reported where the error has risen again.
func TestLastStep(t *testing.T) {
	d := wave(t, 60, false)
	for _, c := range []struct {
		algorithm  string
		fixed      training.Values
		best, last float64
		name       string
		value      int
	}{
		{"sgdrf", nil, 20, 20, "passes", 20},
		{"sgdrf", nil, 19, 20, "", 0},
		{"sgdrf", training.Values{"passes": "3"}, 3, 3, "passes", 3},
		{"landweber", training.Values{"iterations": "300"}, 300, 300, "iterations", 300},
		{"doublyonline", nil, 60, 60, "passes", 1}, // many steps in a pass
		{"doublyonline", nil, 59, 60, "", 0},
		{"krr", nil, 0, 1, "", 0}, // has no best step
	} {
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "steps", Values: []float64{c.last}}}}
		if c.best > 0 {
			o.Metrics = append(o.Metrics, study.Metric{Name: "best-step", Values: []float64{c.best}})
		}
		name, value, ok := tuning(t, c.algorithm, d, autotune.Options{Fixed: c.fixed}).LastStep(study.Trial{State: study.Completed, Outcome: o})
		if name != c.name || value != c.value || ok != (c.name != "") {
			t.Errorf("%s, %v, step %v of %v: %q, %d, %v", c.algorithm, c.fixed, c.best, c.last, name, value, ok)
		}
	}
}

// Without a target no trial can run, so New fails.
func TestNoTarget(t *testing.T) {
	a, err := training.Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	d := prepared(t, "x\n1\n2\n3\n5\n8\n13\n21\n34\n", dataset.Options{})
	missing := (*learners.DataError)(nil)
	if _, err := autotune.New(t.Context(), a, d, autotune.Options{}); !errors.As(err, &missing) || !strings.Contains(err.Error(), "there is no target") {
		t.Errorf("%v; want that there is no target", err)
	}
}

// Best returns the least of all completed errors over several pages, and the first of equal
// ones.
func TestBest(t *testing.T) {
	tn := tuning(t, "krr", wave(t, 60, false), autotune.Options{})
	svc := newStudy(t, tn, 0, nil)
	if _, ok, err := tn.Best(t.Context(), svc, "s"); ok || err != nil {
		t.Fatal("a study without results has a best trial", err)
	}
	rng := stream.New(11)
	want, least := -1, math.Inf(1)
	start := tn.Starts()[0]
	for range tuner.MaxPage + 40 {
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: tn.Objective(), Values: []float64{float64(rng.IntN(2000)) / 100}}}}
		if rng.IntN(4) == 0 {
			o = study.Outcome{State: study.Infeasible}
		}
		trial, err := svc.Add(t.Context(), "s", study.Add{Config: start, Outcome: o})
		if err != nil {
			t.Fatal(err)
		}
		if o.State == study.Completed && o.Metrics[0].Values[0] < least {
			want, least = trial.Number, o.Metrics[0].Values[0]
		}
	}
	best, ok, err := tn.Best(t.Context(), svc, "s")
	if !ok || err != nil || best.Number != want {
		t.Errorf("seed 11: trial %d with %v, %v, %v; want %d with %v", best.Number, best.Outcome, ok, err, want, least)
	}
}

func TestRefusals(t *testing.T) {
	a, err := training.Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	d := wave(t, 60, false)
	for _, o := range []autotune.Options{{Measure: "auc"}, {Measure: "class-error"}, {Fixed: training.Values{"depth": "3"}}, {Fixed: training.Values{"lambda": "small"}}, {Fixed: training.Values{"lambda": "-1"}}} {
		if _, err := autotune.New(t.Context(), a, d, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	logistic, err := training.Find("log-falkon")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autotune.New(t.Context(), logistic, d, autotune.Options{}); err == nil {
		t.Error("numbers were accepted for classes")
	}
	d.Validation = nil
	if _, err := autotune.New(t.Context(), a, d, autotune.Options{}); err == nil {
		t.Error("no validation rows were accepted")
	}
}

// idle returns n rows of y = sin(3x), beside two inputs without effect.
func idle(t *testing.T, n int) *training.Data {
	t.Helper()
	var b strings.Builder
	b.WriteString("u,x,v,y\n")
	rng := stream.New(6)
	for range n {
		x := 2 * rng.Float64()
		fmt.Fprintf(&b, "%v,%v,%v,%v\n", rng.NormFloat64(), x, rng.NormFloat64(), math.Sin(3*x)+0.05*rng.NormFloat64())
	}
	return prepared(t, b.String(), dataset.Options{Target: []string{"y"}})
}

// Learned length scales are searched where there are several inputs. One of the starts has
// them, it is better than theory's, and the model that is saved has them as numbers.
func TestLearnedLengthScalesAreSearched(t *testing.T) {
	d := idle(t, 200)
	tn := tuning(t, "falkon", d, autotune.Options{Seed: 1})
	svc := newStudy(t, tn, 3, nil)
	work(t.Context(), t, tn, svc, "w")
	trials := trialsOf(t, svc)
	if got := trials[2].Attributes["autotune.start"]; got != "learned length scales" {
		t.Fatalf("the third start is %q", got)
	}
	one, learned := objective(t, tn, trials[0]), objective(t, tn, trials[2])
	if !(learned < 0.7*one) {
		t.Errorf("the error is %v with learned length scales and %v with theory's settings", learned, one)
	}
	f, err := tn.Refit(t.Context(), trials[2], nil)
	if err != nil {
		t.Fatal(err)
	}
	var params training.Values
	if err := json.Unmarshal(f.File.Params, &params); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(params["length-scale"], ","); n != 2 || params["relevance"] != "equal" {
		t.Errorf("the model has %v", params)
	}
	if got := tn.Idle(f.Values); !slices.Equal(got, []string{"u", "v"}) {
		t.Errorf("inputs without effect: %v", got)
	}
	if got := tn.Idle(autotune.Values(trials[0].Config)); got != nil {
		t.Errorf("with one length scale: %v", got)
	}

	for _, c := range []struct {
		algorithm string
		fixed     training.Values
		want      bool
	}{
		{"sgdrf", nil, true},
		{"krr", training.Values{"kernel": "gaussian"}, true},
		{"krr", training.Values{"kernel": "linear"}, false},
		{"krr", training.Values{"length-scale": "1"}, false},
		{"krr", training.Values{"length-scale": "auto"}, false},
		{"krr", training.Values{"relevance": "equal"}, false},
		{"krr", training.Values{"relevance": "learned"}, false},
		{"avgsgd", training.Values{"kernel": "none"}, false},
	} {
		tn := tuning(t, c.algorithm, d, autotune.Options{Fixed: c.fixed})
		p, ok := tn.Space().Lookup("relevance")
		if searched := ok && p.Type == space.TypeCategorical; searched != c.want {
			t.Errorf("%s, %v: relevance is searched: %v", c.algorithm, c.fixed, searched)
		}
	}
}

// Where a full metric takes away much of the error of a sample, trials choose between it and
// relevance, and its start has far less error than that with learned length scales, also where each
// row is left out. Few rows and folds have no such choice, nor have targets of single inputs.
func TestFullMetricIsSearched(t *testing.T) {
	ridge := func(n, d int) *training.Data {
		var b strings.Builder
		rng := stream.New(9)
		b.WriteString("a,b,c,d,y\n")
		for range n {
			sum := 0.0
			for j := range 4 {
				x := rng.NormFloat64()
				if j < d {
					sum += x
				}
				fmt.Fprintf(&b, "%.6g,", x)
			}
			fmt.Fprintf(&b, "%.6g\n", math.Sin(1.2*sum)+0.1*rng.NormFloat64())
		}
		return prepared(t, b.String(), dataset.Options{})
	}
	large, small := ridge(1100, 4), ridge(200, 4)
	for name, o := range map[string]autotune.Options{"falkon": {Seed: 1, Fixed: training.Values{"centers": "150"}}, "krr": {Seed: 1, Folds: 160}} {
		d := large
		if o.Folds > 0 {
			d, o.Folds = small, knownOf(t, small).Len()
		}
		tn := tuning(t, name, d, o)
		svc := newStudy(t, tn, 5, nil)
		work(t.Context(), t, tn, svc, "w")
		trials := trialsOf(t, svc)
		if got := trials[4].Attributes["autotune.start"]; got != "full metric" {
			t.Fatalf("%s: the fifth start is %q", name, got)
		}
		v := autotune.Values(trials[4].Config)
		if _, active := v["relevance"]; active || v["metric"] != "full" || v["kernel"] != "matern52" {
			t.Errorf("%s: the start is %v", name, v)
		}
		if full, learned := objective(t, tn, trials[4]), objective(t, tn, trials[2]); !(full < 0.8*learned) {
			t.Errorf("%s: the error is %v with the full metric and %v with learned length scales", name, full, learned)
		}
		queued, _, err := newStudy(t, tn, 60, nil).Trials(t.Context(), "s", tuner.Filter{States: []study.TrialState{study.Queued}})
		if n, want := len(queued), map[string]int{"falkon": 10, "krr": 19}[name]; n != want || err != nil {
			t.Errorf("%s: %d starts of 60 trials, want %d (%v)", name, n, want, err)
		}
	}
	for name, c := range map[string]struct {
		algorithm string
		d         *training.Data
		o         autotune.Options
	}{
		"few rows": {"krr", ridge(120, 4), autotune.Options{Folds: 1}},
		"single":   {"krr", ridge(200, 1), autotune.Options{Folds: 1}},
		"folds":    {"krr", large, autotune.Options{Folds: 5}},
		"given":    {"krr", large, autotune.Options{Fixed: training.Values{"metric": "diagonal"}}},
	} {
		if p, ok := tuning(t, c.algorithm, c.d, c.o).Space().Lookup("metric"); ok && p.Type == space.TypeCategorical {
			t.Errorf("%s: metric is searched", name)
		}
	}
}

// A trial whose number of centres is not searched fits a few of them first. The pruner judges
// that fit, whose centres are among those of the next one, and the result is that of all.
func TestFewCentersFirst(t *testing.T) {
	tn := tuning(t, "falkon", wave(t, 1200, false), autotune.Options{Seed: 1, Fixed: training.Values{"kernel": "matern32", "sampler": "uniform"}})
	svc := newStudy(t, tn, 6, nil)
	work(t.Context(), t, tn, svc, "w")
	completed := 0
	for _, trial := range trialsOf(t, svc) {
		v := autotune.Values(trial.Config)
		if v["centers"] != "600" || len(trial.Reports) == 0 || trial.Reports[0].Step != 1 {
			t.Fatalf("trial %d, %s: %d reports", trial.Number, trial.Config, len(trial.Reports))
		}
		if trial.State != study.Completed {
			continue
		}
		completed++
		if got := trial.Reports[len(trial.Reports)-1]; got.Step != 2 || math.Abs(got.Values[0].Value-objective(t, tn, trial)) > 1e-6 {
			t.Errorf("trial %d: the last report is %+v, the result %v", trial.Number, got, objective(t, tn, trial))
		}
	}
	if completed < 5 {
		t.Errorf("%d of 6 trials completed", completed)
	}
}

// Classes are tuned by a proper score, with the class error beside it.
func TestProperScoreForClasses(t *testing.T) {
	for algorithm, want := range map[string]string{"log-falkon": "log-loss", "falkon": "rmse", "sgdrf": "rmse"} {
		for _, folds := range []int{1, 3, 120} {
			tn := tuning(t, algorithm, wave(t, 160, true), autotune.Options{Seed: 1, Folds: folds})
			if tn.Measure() != want {
				t.Errorf("%s: the measure is %s, want %s", algorithm, tn.Measure(), want)
			}
			if folds == 120 && algorithm != "falkon" {
				continue
			}
			svc := newStudy(t, tn, 1, nil)
			work(t.Context(), t, tn, svc, "w")
			trial := trialsOf(t, svc)[0]
			if m, ok := trial.Outcome.Metric("class-error"); !ok || m.Mean() < 0 || m.Mean() > 0.5 {
				t.Errorf("%s, %d folds: %s", algorithm, folds, trial.Outcome)
			}
			f, err := tn.Refit(t.Context(), trial, nil)
			if err != nil || f.ValidationClasses == nil || learners.LinkOf(f.File.Model) == learners.Expected {
				t.Errorf("%s, %d folds: %+v, %v", algorithm, folds, f, err)
			}
		}
	}
}

// Where rows are left out in closed form, the space is that of training and validation rows
// together, and all of them are centres unless a range says otherwise.
func TestClosedFormHasAllRowsAsCenters(t *testing.T) {
	d := wave(t, 60, false)
	known := knownOf(t, d)
	n := int64(known.Len())
	for _, c := range []struct {
		folds  int
		ranges map[string]autotune.Range
		want   []string // the first and the last value
	}{
		{int(n), nil, []string{fmt.Sprint(n)}},
		{int(n), map[string]autotune.Range{"centers": {Low: 5, High: float64(n)}}, []string{"5", fmt.Sprint(n)}},
		{5, nil, []string{fmt.Sprint(d.Train.Len())}},
	} {
		p, ok := tuning(t, "falkon", d, autotune.Options{Folds: c.folds, Ranges: c.ranges}).Space().Lookup("centers")
		if !ok {
			t.Fatal("centers are not in the space")
		}
		got := []string{p.Low.String(), p.High.String()}
		if p.Type == space.TypeConstant {
			got = []string{p.Values[0].String()}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d folds, %v: %v, want %v", c.folds, c.ranges, got, c.want)
		}
	}
}

// In closed form a study with enough trials starts with each kernel and relevance. One with few
// trials or only a time budget does not.
func TestClosedFormStartsWithEachKernel(t *testing.T) {
	d := wave(t, 60, false)
	known := knownOf(t, d)
	tn := tuning(t, "krr", d, autotune.Options{Folds: known.Len()})
	if n := len(tn.Starts()); n != 4+14 {
		t.Fatalf("%d starts, want theory's, half its length scale, learned length scales of two kernels, and at 2 settings 4 kernels with equal relevance and 3 with learned: %v", n, tn.Starts())
	}
	if v := autotune.Values(tn.Starts()[3]); v["kernel"] != "laplace" || v["relevance"] != "learned" {
		t.Errorf("the fourth start is %v", v)
	}
	for _, c := range []struct {
		trials int
		budget float64
		want   int
	}{{2, 0, 2}, {53, 0, 4}, {54, 0, 18}, {0, 0, 18}, {0, 600, 4}, {2, 600, 2}, {54, 600, 18}} {
		want := c.want
		svc := newStudy(t, tn, c.trials, func(s *study.Spec) { s.MaxCost = c.budget })
		queued, _, err := svc.Trials(t.Context(), "s", tuner.Filter{States: []study.TrialState{study.Queued}})
		if err != nil {
			t.Fatal(err)
		}
		cells := map[string]bool{}
		for _, trial := range queued {
			v := autotune.Values(trial.Config)
			cells[v["kernel"]+" "+v["relevance"]] = true
		}
		if len(queued) != want || want == 18 && len(cells) != 8 {
			t.Errorf("%d trials in %g s begin with %d, want %d: %v", c.trials, c.budget, len(queued), want, cells)
		}
	}
	if n := len(tuning(t, "krr", d, autotune.Options{Folds: 5}).Starts()); n != 4 {
		t.Errorf("%d starts with five folds, want 4", n)
	}
	fixed := autotune.Options{Folds: known.Len(), Fixed: training.Values{"kernel": "laplace"}}
	if n := len(tuning(t, "krr", d, fixed).Starts()); n != 3 {
		t.Errorf("%d starts with one kernel, want 3", n)
	}
}

// With one split the learned length scales of falkon, krr, nystrom and log-falkon start with each kernel. Folds and few
// trials have no such starts.
func TestOneSplitStartsWithEachKernel(t *testing.T) {
	for _, c := range []struct {
		algorithm          string
		folds, trials, all int
	}{{"krr", 0, 60, 6}, {"log-falkon", 0, 60, 6}, {"falkon", 1, 18, 6}, {"nystrom", 0, 0, 6}, {"sgdrf", 0, 60, 4}, {"krr", 1, 17, 4}, {"krr", 5, 60, 4}} {
		d := wave(t, 160, c.algorithm == "log-falkon")
		svc := newStudy(t, tuning(t, c.algorithm, d, autotune.Options{Folds: c.folds}), c.trials, nil)
		queued, _, err := svc.Trials(t.Context(), "s", tuner.Filter{States: []study.TrialState{study.Queued}})
		if err != nil {
			t.Fatal(err)
		}
		kernels := map[string]bool{}
		for _, trial := range queued {
			if v := autotune.Values(trial.Config); v["relevance"] == "learned" {
				kernels[v["kernel"]] = true
			}
		}
		if len(queued) != c.all || len(kernels) != c.all-2 {
			t.Errorf("%+v: %d starts, with the kernels %v", c, len(queued), kernels)
		}
	}
}

// If all training rows of the best trial are centres, all rows of the final fit are. Fewer
// centres, and a number that was set, stay.
func TestRefitHasAllRowsAsCenters(t *testing.T) {
	d := wave(t, 60, false)
	known := knownOf(t, d)
	n, all := d.Train.Len(), known.Len()
	for _, c := range []struct {
		o             autotune.Options
		centers, want int
	}{
		{autotune.Options{}, n, all},
		{autotune.Options{Ranges: map[string]autotune.Range{"centers": {Low: 5, High: float64(n)}}}, n - 1, n - 1},
		{autotune.Options{Fixed: training.Values{"centers": strconv.Itoa(n)}}, n, n},
	} {
		tn := tuning(t, "falkon", d, c.o)
		var values []space.Assignment
		for name, v := range tn.Starts()[0].All() {
			if name == "centers" {
				v = space.Int(int64(c.centers))
			}
			values = append(values, space.Assignment{Name: name, Value: v})
		}
		f, err := tn.Refit(t.Context(), study.Trial{Config: space.NewConfig(values...)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var used map[string]any
		if err := json.Unmarshal(f.File.Params, &used); err != nil {
			t.Fatal(err)
		}
		if want := strconv.Itoa(c.want); f.Values["centers"] != want || fmt.Sprint(used["centers"]) != want {
			t.Errorf("%d centers of %v: %s, in the file %v, want %s", c.centers, c.o, f.Values["centers"], used["centers"], want)
		}
	}
}

// The Laplace kernel has learned length scales of its own where these are asked for, too.
func TestFixedRelevanceLearnsForTheLaplaceKernel(t *testing.T) {
	for name, fixed := range map[string]training.Values{
		"relevance": {"relevance": "learned"}, "length scale": {"length-scale": "auto"}, "neither": nil,
	} {
		for _, kernel := range []string{"", "laplace", "matern32"} {
			v := maps.Clone(fixed)
			if kernel != "" {
				if v == nil {
					v = training.Values{}
				}
				v["kernel"] = kernel
			}
			euclidean, laplace := autotune.LearnedKernels(tuning(t, "krr", wave(t, 60, false), autotune.Options{Fixed: v}))
			want := kernel == ""
			if euclidean == "" || (laplace == "laplace") != want {
				t.Errorf("fixed %s, kernel %q: length scales are learned with %q and %q", name, kernel, euclidean, laplace)
			}
		}
	}
}
