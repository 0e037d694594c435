package experiment

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/bench/report"
)

func TestEnvironmentsAreChecked(t *testing.T) {
	ran := false
	e := Experiment{Name: "x", Parts: []string{"a", "b"}, Measure: func(context.Context, *Env) (*report.Result, error) {
		ran = true
		return nil, nil
	}}
	var part *PartError
	var value *ValueError
	if _, err := e.Run(context.Background(), &Env{Only: []string{"a", "c"}}); !errors.As(err, &part) || part.Part != "c" || !strings.Contains(err.Error(), "it has a, b") {
		t.Errorf("part c: %v", err)
	}
	for _, env := range []Env{{Repeats: -1}, {Workers: -1}, {Scale: 2}, {Scale: -2}} {
		if _, err := e.Run(context.Background(), &env); !errors.As(err, &value) {
			t.Errorf("%+v: %v", env, err)
		}
	}
	over, end := context.WithCancel(context.Background())
	end()
	if _, err := e.Run(over, &Env{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if ran {
		t.Error("it was measured all the same")
	}
}

func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		own, asked int
		scale      Scale
		want       int
	}{{10, 0, Standard, 10}, {10, 0, Quick, 2}, {10, 3, Quick, 3}, {0, 0, Full, 1}, {1, 0, Quick, 1}} {
		got := 0
		e := Experiment{Repeats: c.own, Measure: func(_ context.Context, env *Env) (*report.Result, error) {
			got = env.Repeats
			return nil, nil
		}}
		env := &Env{Scale: c.scale, Repeats: c.asked}
		if _, err := e.Run(context.Background(), env); err != nil || got != c.want || env.Repeats != c.asked {
			t.Errorf("%+v: %d repeats, %v; the caller's are %d", c, got, err, env.Repeats)
		}
	}
}

func TestFiles(t *testing.T) {
	var missing *DataError
	if _, err := (&Env{}).File("a/b.csv"); !errors.As(err, &missing) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("no folder: %v", err)
	}
	dir := t.TempDir()
	env := &Env{Data: dir}
	if _, err := env.File("b.csv"); !errors.As(err, &missing) || missing.Folder != dir {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if path, err := env.File("b.csv"); err != nil || path != filepath.Join(dir, "b.csv") {
		t.Errorf("%s, %v", path, err)
	}
}

func TestStopwatch(t *testing.T) {
	w := StartWatch()
	sum := 0.0
	for w.Wall() < 0.03 {
		for i := range 1000 {
			sum += math.Sqrt(float64(i))
		}
	}
	if cpu := w.CPU(); sum == 0 || cpu <= 0 || cpu > 60 {
		t.Errorf("CPU time %v s in %v s", cpu, w.Wall())
	}
}
