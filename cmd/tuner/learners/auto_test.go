package learners

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		best, theory float64
		want         string
	}{
		{0, 0.5, "Its validation rmse is 100% below that of theory's settings."},
		{0.5, 0.504, "Its validation rmse is 0.79% below that of theory's settings."},
		{0.25, 1, "Its validation rmse is 75% below that of theory's settings."},
		{5, 2, "Its validation rmse is 150% above that of theory's settings."},
		{1, 0, ""},
	} {
		r := tuned{Measure: "rmse", Best: &autotune.Fitted{Validation: c.best}, Theory: &autotune.Fitted{Validation: c.theory}}
		if got := r.verdict(); got != c.want {
			t.Errorf("%v, theory %v: %q, want %q", c.best, c.theory, got, c.want)
		}
	}
}

// The model in the file is the average, which is compared with theory's settings.
func TestVerdictOfAverage(t *testing.T) {
	f := &autotune.Fitted{Validation: 1, Test: []training.Score{{Name: "rmse", Value: 4}}}
	a := &autotune.Averaged{
		Members:    []autotune.Member{{Trial: 12, Weight: 0.625}, {Trial: 3, Weight: 0.25}, {Trial: 40, Weight: 0.125}},
		Validation: 0.9, Test: []training.Score{{Name: "rmse", Value: 3}},
	}
	r := tuned{Measure: "rmse", Best: f, Theory: f, Average: a}
	if got, want := r.verdict(), "Its test rmse is 25% below that of theory's settings."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.Test = nil
	if got, want := r.verdict(), "Its validation rmse is 10% below that of theory's settings."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := membersText(a.Members), "It averages trials 12 (62%), 3 (25%) and 40 (12%)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := membersText(a.Members[:2]), "It averages trials 12 (62%) and 3 (25%)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The model of the best trial is saved if an average fails, or is interrupted, or has no members.
func TestModelWithoutAverage(t *testing.T) {
	file := func(slope float64) *learners.File {
		m, err := learners.NewLinear(nil, 1, []float64{slope}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return &learners.File{Algorithm: "krr", Model: m}
	}
	failure := errors.New("too few")
	for _, c := range []struct {
		averaged *autotune.Averaged
		err      error
		slope    float64
	}{
		{&autotune.Averaged{File: file(2)}, nil, 2},
		{nil, nil, 1},
		{nil, failure, 1},
		{nil, context.Canceled, 1},
	} {
		g, cmd := &cli.Globals{}, &cobra.Command{}
		var notes strings.Builder
		cmd.SetErr(&notes)
		a := &autoRun{job: job{out: filepath.Join(t.TempDir(), "a.model")}}
		got, err := a.save(g, cmd, file(1), c.averaged, c.err)
		if got != c.averaged || !errors.Is(err, c.err) {
			t.Errorf("%v, %v, want %v, %v", got, err, c.averaged, c.err)
		}
		if said := strings.Contains(notes.String(), "is that of the best trial"); said != (c.err != nil) {
			t.Errorf("error %v: %q", c.err, notes.String())
		}
		saved, err := learners.Load(a.out, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := make([]float64, 1)
		if err := saved.Model.Predict(t.Context(), f, kernel.FromRows(kernel.NewPoints(1, 1, []float64{1}))); err != nil || f[0] != c.slope {
			t.Errorf("error %v: the model has the slope %v, want %v (%v)", c.err, f[0], c.slope, err)
		}
	}
}

// The command that continues in a wider range is the one that was given, except the flags
// of the first study.
func TestCommandForAWiderRange(t *testing.T) {
	edge := space.Edge{Parameter: "lambda", Low: space.Float(1e-4), High: space.Float(1e-2), Upper: true}
	for line, want := range map[string]string{
		"auto krr --data a.csv": "auto krr --data a.csv --from s --range lambda=0.0001..1",
		"auto krr --data a.csv --data 'b --target y,z --set kernel=laplace -j 3 --float32 --study s --out m -v -q --budget 10m --server unix:x": `auto krr --data a.csv --data ''\''b' --target y --target z --set kernel=laplace --workers 3 --float32=true --budget 10m0s --server unix:x --from s --range lambda=0.0001..1`,
		"auto krr --data a.csv --db d --from r --range lambda=1e-4..1e-2 --range length-scale=1..2":                                             "auto krr --data a.csv --db d --from s --range lambda=0.0001..1 --range length-scale=1..2",
	} {
		g, a := &cli.Globals{}, &autoRun{job: job{algorithm: training.Algorithm{Name: "krr"}}}
		cmd := newAuto(g)
		a.study = "s"
		root := &cobra.Command{Use: "tuner"}
		g.Flags(root)
		root.AddCommand(cmd)
		if err := cmd.ParseFlags(strings.Fields(line)[2:]); err != nil {
			t.Fatal(err)
		}
		a.ranges, _ = cmd.Flags().GetStringArray("range")
		got := a.wider(g, cmd, study.Spec{})([]space.Edge{edge})
		if !strings.HasSuffix(got, "\n  "+cli.ProgramName()+" "+want) {
			t.Errorf("%s:\n%s\nwant %s", line, got, want)
		}
	}
}
